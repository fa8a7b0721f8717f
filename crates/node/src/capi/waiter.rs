//! The wait itself: look, decide, wait for a change, look again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::conclusion::{self, Ended};
use super::failure::Failure;
use super::mark::Marks;
use super::memory::{Memory, Now, Remembered};
use super::settings::Settings;
use super::verdict::{Bootstrap, Clock, Ending, Mark, Observations, Verdict, verdict};
use crate::host::paths::Root;
use crate::host::system::{self, Alarm, Observer, Owner, Places, files};

/// A wait in progress.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) root: &'a Root,
    /// The paths of sentinels, logs and other files.
    pub(crate) places: &'a Places,
    /// Observes the bootstrap.
    pub(crate) observer: Observer,
    /// The stored state.
    pub(crate) memory: Memory,
    /// Problems that do not end the wait.
    pub(crate) warnings: Vec<String>,
    marks: Marks,
    ended_since: Option<Duration>,
    failed_since: Option<Duration>,
}

/// The progress of a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Whether the bootstrap has begun.
    pub(crate) started: bool,
    /// How long the wait has lasted, including reboots.
    pub(crate) waited: Duration,
    /// The longest wait.
    pub(crate) limit: Duration,
}

/// Waits. A wait that already has a result returns the same result again.
pub(crate) fn wait(
    settings: &Settings,
    root: &Root,
    places: &Places,
    tell: &mut dyn FnMut(&Progress),
) -> Remembered {
    let now = system::now(root);
    let mut marks = Marks::new(Owner::of(root), now.booted());
    let trusted = marks.belongs_to_owner(&places.state);
    let saved = Memory::load(&places.state).filter(|_| trusted);
    let mut warnings = Vec::new();
    if !trusted && places.state.symlink_metadata().is_ok() {
        warnings.push(format!("{} is not ours and is ignored", places.told(&places.state)));
    }
    let other = saved.as_ref().filter(|saved| saved.verdict.is_none()).map(|saved| saved.pid);
    if let Some(pid) = other.filter(|pid| system::waits_as(*pid)) {
        warnings.push(format!("another wait runs (process {pid}); both go on"));
    }
    let memory = Memory::resume(saved, settings, system::identity(root), &now);
    if let Some(known) = &memory.verdict {
        let there = matches!(marks.look_at_any(&settings.sentinels), Mark::There(_));
        return conclusion::again(known, there, places);
    }
    let waiter = Waiter {
        settings,
        root,
        places,
        observer: Observer::new(root, places),
        memory,
        warnings,
        marks,
        ended_since: None,
        failed_since: None,
    };
    waiter.run(tell)
}

impl Waiter<'_> {
    fn run(mut self, tell: &mut dyn FnMut(&Progress)) -> Remembered {
        let directories = self.directories();
        let mut alarm = Alarm::new();
        self.save();
        loop {
            alarm.arm(&directories);
            let (seen, failure) = self.look(alarm.interrupted());
            let now = system::now(self.root);
            self.memory.advance(&now);
            self.note(&seen);
            let clock = self.clock(&seen, &now);
            tell(&Progress {
                started: seen.started,
                waited: clock.waited,
                limit: self.settings.limits.timeout,
            });
            match verdict(&seen, &clock, &self.settings.limits) {
                Verdict::Wait(limit) => alarm.wait(limit),
                Verdict::Over(ending) => return self.conclude(ending, seen, failure, &now),
            }
        }
    }

    fn directories(&self) -> Vec<PathBuf> {
        let sentinels = self.settings.sentinels.iter().chain([&self.settings.failure]);
        let parents = sentinels.filter_map(|path| path.parent()).map(Path::to_owned);
        parents.chain(self.places.watched(&self.settings.watch)).collect()
    }

    fn look(&mut self, interrupted: bool) -> (Observations, Failure) {
        let failure_mark = self.marks.look(&self.settings.failure);
        let failure = match &failure_mark {
            Mark::There(_) => {
                let text = files::head(&self.settings.failure, 64 * 1024).unwrap_or_default();
                Failure::read(&text)
            }
            _ => Failure::default(),
        };
        let mut success = self.marks.look_at_any(&self.settings.sentinels);
        // A sentinel in memory does not survive a reboot; the record that it existed does.
        if self.memory.succeeded && !matches!(success, Mark::There(_)) {
            success = Mark::There(self.memory.began.into());
        }
        let bootstrap = self.observer.observe(&self.settings.watch, &mut self.marks);
        let seen = Observations {
            started: self.memory.since_start().is_some() || has_begun(&bootstrap),
            success,
            failure: failure_mark,
            failure_whole: failure.whole,
            bootstrap,
            interrupted,
        };
        (seen, failure)
    }

    /// Records the facts that must survive a reboot.
    fn note(&mut self, seen: &Observations) {
        let started = seen.started && self.memory.start();
        let succeeded = matches!(seen.success, Mark::There(_)) && !self.memory.succeeded;
        self.memory.succeeded |= succeeded;
        if started || succeeded {
            self.save();
        }
    }

    fn clock(&mut self, seen: &Observations, now: &Now) -> Clock {
        let since = |mark: &mut Option<Duration>, holds: bool| {
            if !holds {
                *mark = None;
            }
            let from = if holds { *mark.get_or_insert(now.clock) } else { now.clock };
            now.clock.saturating_sub(from)
        };
        let ended = matches!(seen.bootstrap, Bootstrap::Ended(_));
        let failed = matches!(seen.failure, Mark::There(_));
        Clock {
            waited: self.memory.waited(),
            used: self.memory.used(self.settings.deadline_from),
            ended_for: since(&mut self.ended_since, ended),
            failed_for: since(&mut self.failed_since, failed),
        }
    }

    /// Saves the state. A wait that cannot save its state continues anyway.
    pub(crate) fn save(&mut self) {
        if let Err(error) = self.memory.save(&self.places.state) {
            let warning =
                format!("{} is not written: {error}", self.places.told(&self.places.state));
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    fn conclude(
        mut self,
        ending: Ending,
        seen: Observations,
        failure: Failure,
        now: &Now,
    ) -> Remembered {
        for mark in [&seen.success, &seen.failure] {
            if let Mark::Ignored(why) = mark {
                self.warnings.push(why.clone());
            }
        }
        if let Bootstrap::Unknown(why) = &seen.bootstrap {
            self.warnings.push(why.clone());
        }
        conclusion::conclude(self, &Ended { ending, seen, failure }, now)
    }
}

fn has_begun(bootstrap: &Bootstrap) -> bool {
    match bootstrap {
        Bootstrap::Running | Bootstrap::Ended(_) | Bootstrap::Succeeded => true,
        Bootstrap::NotSeen | Bootstrap::Unknown(_) => false,
    }
}
