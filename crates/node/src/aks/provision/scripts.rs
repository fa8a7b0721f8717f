//! Runs the scripts, and follows those that run already.

use std::os::fd::AsFd as _;
use std::time::Duration;

use super::Attempt;
use crate::aks::config::Command;
use crate::aks::exit_code;
use crate::aks::keeper::{Keeper, KeeperMessage};
use crate::crash_points;
use crate::host::linux::watch::Watch;
use crate::outcome::Outcome;

/// How often is looked at what tells of itself.
const LOOK: Duration = Duration::from_secs(1);
/// How often a process without a keeper is checked.
const LOOK_AT_PROCESS: Duration = Duration::from_millis(100);

impl Attempt<'_> {
    /// Runs the scripts; the code is what they came to.
    pub(super) fn run_scripts(&mut self, command: &Command) -> i32 {
        let ended = match self.start(command) {
            Ok(keeper) => self.attend(keeper),
            Err(error) => {
                let failed = Outcome::own(exit_code::REFUSED, &error, "");
                return self.fail(&failed, Some(exit_code::REFUSED_NAME));
            }
        };
        match ended {
            Ended::Exited(exit) => exit,
            Ended::Reported(Some(KeeperMessage::NotStarted(why))) => {
                let error = format!("start {}: {why}", command.argv[0].display());
                self.fail(
                    &Outcome::own(exit_code::REFUSED, &error, ""),
                    Some(exit_code::REFUSED_NAME),
                )
            }
            Ended::Reported(told) => self.conclude(told),
        }
    }

    /// Lets the scripts begin, when it is written down which process they are.
    fn start(&mut self, command: &Command) -> Result<Keeper, String> {
        let mut keeper = Keeper::start(&self.agent.root, command)
            .map_err(|error| format!("start the keeper: {error}"))?;
        match keeper.next() {
            Some(KeeperMessage::Ready(process)) => {
                self.run.running(process);
                self.save();
                keeper.go().map_err(|error| format!("start the scripts: {error}"))?;
                Ok(keeper)
            }
            Some(KeeperMessage::NotStarted(why)) => Err(format!("start the scripts: {why}")),
            Some(KeeperMessage::Ended { .. }) | None => {
                Err("start the scripts: their keeper is gone".to_owned())
            }
        }
    }

    /// Waits for the end of the scripts, or for their result: they upload logs after they have
    /// written it, and the mark does not wait for that.
    fn attend(&mut self, mut keeper: Keeper) -> Ended {
        let containers = self.agent.root.containers();
        let watch = Watch::on(&[&containers]);
        let mut said = None;
        crash_points::reached("wait for the scripts");
        loop {
            if said.is_none() && self.left().complete.is_some() {
                said = self.conclude_by_result();
            }
            watch.wait(Some(keeper.as_fd()), LOOK);
            if !keeper.has_news() {
                continue;
            }
            let told = keeper.next();
            if told.is_none() && self.scripts_live() {
                self.agent.log.warn("the keeper of the scripts is gone; they go on");
                return match said.or_else(|| self.follow()) {
                    Some(exit) => Ended::Exited(exit),
                    None => Ended::Reported(None),
                };
            }
            return said.map_or(Ended::Reported(told), Ended::Exited);
        }
    }

    /// Waits for scripts that have no keeper. Returns their exit code, if they left a result.
    pub(super) fn follow(&mut self) -> Option<i32> {
        let containers = self.agent.root.containers();
        let watch = Watch::on(&[&containers]);
        loop {
            let live = self.scripts_live();
            let left = self.left();
            let begun = self.run.started;
            if left.complete.is_some_and(|at| at >= begun) {
                return self.conclude_by_result();
            }
            if !live {
                let prepared = left.base_prep.is_some_and(|at| at >= begun);
                let over = prepared || left.counts_since(begun);
                return over.then(|| self.conclude(None));
            }
            watch.arm(&[&containers]);
            watch.wait(None, LOOK_AT_PROCESS);
        }
    }
}

/// How it ended.
enum Ended {
    /// With what the scripts wrote; it is said already.
    Exited(i32),
    /// With what the keeper told, if it told something.
    Reported(Option<KeeperMessage>),
}
