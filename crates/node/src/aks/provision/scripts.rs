//! Runs the scripts, and follows scripts that already run.

use std::os::fd::AsFd as _;
use std::time::Duration;

use super::Attempt;
use crate::aks::config::Command;
use crate::aks::exit_code;
use crate::aks::keeper::{Keeper, KeeperMessage};
use crate::crash_points;
use crate::host::linux::watch::Watch;
use crate::outcome::Outcome;

/// How often the agent checks files, although the kernel also notifies it of changes.
const LOOK: Duration = Duration::from_secs(1);
/// How often the waiter checks a process that has no keeper.
const LOOK_AT_PROCESS: Duration = Duration::from_millis(100);

impl Attempt<'_> {
    /// Runs the scripts; returns their exit code.
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

    /// Lets the scripts begin after their process is recorded.
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

    /// Waits for the end of the scripts or for their result: the scripts upload logs after they have written
    /// the result, and the mark does not wait for the upload.
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

    /// Waits for scripts without a keeper. Returns their exit code, if they left a result.
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

/// How the wait for the scripts ended.
enum Ended {
    /// With the exit code in the result of the scripts, which is already reported.
    Exited(i32),
    /// With the last message of the keeper, if it sent one.
    Reported(Option<KeeperMessage>),
}
