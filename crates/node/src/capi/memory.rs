//! `wait.json`: the state of a wait, for a wait that is started again, also after a reboot: when the wait
//! began and its result.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::{DeadlineFrom, Settings};
use crate::host::system::files;
use crate::summary::Summary;

/// The longest reboot; if the clock shows more, the clock was set.
const LONGEST_REBOOT: SignedDuration = SignedDuration::from_hours(24);

/// The state of a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    v: u8,
    /// The question that the wait answers. Another question is another wait.
    question: Question,
    machine: Identity,
    boot: Option<String>,
    /// The number of boots that this wait has seen.
    pub(crate) boots: u32,
    /// When the wait began.
    pub(crate) began: Timestamp,
    waited_ms: u64,
    saved: Timestamp,
    clock_ms: u64,
    /// How long the machine had been up when the wait began.
    up_before_ms: u64,
    /// How long the wait had lasted when it saw the first sign of the bootstrap.
    started_ms: Option<u64>,
    /// Whether the wait saw the sentinel.
    pub(crate) succeeded: bool,
    /// The result.
    pub(crate) verdict: Option<Remembered>,
    /// The ID of the waiting process.
    pub(crate) pid: u32,
}

/// The identity of a machine. A disk that was copied to another machine also contains the file of this wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Differs between machines.
    pub(crate) machine: Option<String>,
    /// Differs between the VM instances that use the same disk image.
    pub(crate) instance: Option<String>,
}

impl Identity {
    /// Whether both may be the same machine: no known value differs.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        let alike = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        alike(&self.machine, &other.machine) && alike(&self.instance, &other.instance)
    }
}

/// The parameters that identify a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    sentinels: Vec<PathBuf>,
    failure: PathBuf,
    watch: String,
}

/// The result of a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(crate) exit: u8,
    pub(crate) summary: Summary,
    /// The line for human readers.
    pub(crate) sentence: String,
    pub(crate) report: Value,
}

/// The readings of the clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Now {
    /// The time since the boot, by a clock that cannot be set.
    pub(crate) clock: Duration,
    /// The time since the boot to compare file times with: a root may have been up for another time.
    pub(crate) up: Duration,
    /// The time of day.
    pub(crate) wall: Timestamp,
    /// The ID of the boot.
    pub(crate) boot: Option<String>,
}

impl Now {
    /// When the machine was booted.
    pub(crate) fn booted(&self) -> Option<SystemTime> {
        SystemTime::from(self.wall).checked_sub(self.up)
    }
}

impl Memory {
    /// Begins a wait, or continues the saved one if it is the same wait.
    pub(crate) fn resume(
        saved: Option<Self>,
        settings: &Settings,
        machine: Identity,
        now: &Now,
    ) -> Self {
        let question = Question {
            sentinels: settings.sentinels.clone(),
            failure: settings.failure.clone(),
            watch: settings.watch.word(),
        };
        let same = |saved: &Self| saved.question == question && saved.machine.may_be(&machine);
        let mut memory = saved.filter(same).unwrap_or_else(|| Self {
            v: 1,
            question,
            machine,
            boot: now.boot.clone(),
            boots: 1,
            began: now.wall,
            waited_ms: 0,
            saved: now.wall,
            clock_ms: milliseconds(now.clock),
            up_before_ms: milliseconds(now.up),
            started_ms: None,
            succeeded: false,
            verdict: None,
            pid: 0,
        });
        memory.pid = std::process::id();
        memory.advance(now);
        memory
    }

    /// Adds the time since the last call.
    pub(crate) fn advance(&mut self, now: &Now) {
        let clock = milliseconds(now.clock);
        // Not every system identifies its boots; a clock that has moved back shows a reboot as well.
        let same_boot = self.boot == now.boot && clock >= self.clock_ms;
        let gone = if same_boot {
            clock.saturating_sub(self.clock_ms)
        } else {
            // The clock of the last boot ended with it; the time of day spans both boots, unless it was set.
            let by_wall = now.wall.duration_since(self.saved);
            let sane = !by_wall.is_negative() && by_wall <= LONGEST_REBOOT;
            let by_wall = u64::try_from(by_wall.as_millis()).ok().filter(|_| sane);
            by_wall.unwrap_or(clock)
        };
        if !same_boot {
            self.boots += 1;
            self.boot.clone_from(&now.boot);
        }
        self.waited_ms = self.waited_ms.saturating_add(gone);
        self.saved = now.wall;
        self.clock_ms = clock;
    }

    /// How long the wait has lasted, including reboots.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_millis(self.waited_ms)
    }

    /// Records the first sign of the bootstrap; returns whether it is the first.
    pub(crate) fn start(&mut self) -> bool {
        let news = self.started_ms.is_none();
        self.started_ms.get_or_insert(self.waited_ms);
        news
    }

    /// How long ago the first sign of the bootstrap was seen.
    pub(crate) fn since_start(&self) -> Option<Duration> {
        self.started_ms.map(|started| Duration::from_millis(self.waited_ms - started))
    }

    /// The time that counts against the limit; `None` before the limit begins to count.
    pub(crate) fn used(&self, from: DeadlineFrom) -> Option<Duration> {
        match from {
            DeadlineFrom::Extension => Some(self.waited()),
            DeadlineFrom::Boot => {
                Some(self.waited().saturating_add(Duration::from_millis(self.up_before_ms)))
            }
            DeadlineFrom::BootstrapStart => self.since_start(),
        }
    }

    /// When the limit is over. The deadline stays the same over reboots.
    pub(crate) fn deadline(&self, from: DeadlineFrom, timeout: Duration) -> Option<Timestamp> {
        let begins = match from {
            DeadlineFrom::Extension => self.began,
            DeadlineFrom::Boot => {
                self.began.checked_sub(Duration::from_millis(self.up_before_ms)).ok()?
            }
            DeadlineFrom::BootstrapStart => {
                self.began.checked_add(Duration::from_millis(self.started_ms?)).ok()?
            }
        };
        begins.checked_add(timeout).ok()
    }

    /// The stored state, if it can be read.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let saved: Self = serde_json::from_str(&files::head(path, 1 << 20).ok()?).ok()?;
        let sound = saved.started_ms.is_none_or(|started| started <= saved.waited_ms);
        Some(saved).filter(|saved| saved.v == 1 && sound)
    }

    pub(crate) fn save(&self, path: &Path) -> std::io::Result<()> {
        files::write(path, serde_json::to_string(self)?.as_bytes())
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use crate::host::paths::Root;
    use crate::host::system::{Owner, Places};

    fn settings(words: &[&str]) -> Settings {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(Some(folder.path().to_owned()));
        let places = Places::under(&root);
        let typed = ["wait"].iter().chain(words).map(|word| (*word).to_owned());
        let typed = Arguments::read(typed.chain(["--sentinel=/s".to_owned()])).unwrap();
        Settings::read(&typed, &places, &Owner::of(&root)).unwrap()
    }

    fn now(clock: u64, wall: i64, boot: &str) -> Now {
        Now {
            clock: Duration::from_secs(clock),
            up: Duration::from_secs(clock),
            wall: Timestamp::from_second(wall).unwrap(),
            boot: Some(boot.to_owned()),
        }
    }

    fn machine(name: &str) -> Identity {
        Identity { machine: Some(name.to_owned()), instance: None }
    }

    fn begin(now: &Now) -> Memory {
        Memory::resume(None, &settings(&[]), Identity::default(), now)
    }

    fn again(saved: &Memory, now: &Now) -> Memory {
        Memory::resume(Some(saved.clone()), &settings(&[]), Identity::default(), now)
    }

    #[test]
    fn a_wait_that_is_started_again_goes_on_by_the_clock_of_the_boot() {
        let first = begin(&now(100, 1_000, "a"));
        let second = again(&first, &now(130, 5_000, "a"));
        assert_eq!((second.waited(), second.boots), (Duration::from_secs(30), 1));
        assert_eq!(second.began, first.began);
    }

    #[test]
    fn over_a_reboot_the_time_of_day_counts_as_long_as_it_makes_sense() {
        let first = begin(&now(100, 1_000, "a"));
        let second = again(&first, &now(20, 1_070, "b"));
        assert_eq!((second.waited(), second.boots), (Duration::from_secs(70), 2));
        let unnamed = |clock, wall| Now { boot: None, ..now(clock, wall, "") };
        let second = again(&begin(&unnamed(100, 1_000)), &unnamed(20, 1_070));
        assert_eq!((second.waited(), second.boots), (Duration::from_secs(70), 2));
        for set in [900, 10_000_000] {
            let second = again(&first, &now(20, set, "b"));
            assert_eq!(second.waited(), Duration::from_secs(20), "the clock was set to {set}");
        }
    }

    #[test]
    fn the_start_of_the_bootstrap_is_noted_once() {
        let mut memory = begin(&now(100, 1_000, "a"));
        assert_eq!(memory.since_start(), None);
        memory.advance(&now(110, 1_010, "a"));
        assert!(memory.start());
        memory.advance(&now(115, 1_015, "a"));
        assert!(!memory.start());
        assert_eq!(memory.since_start(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn the_limit_counts_from_where_it_is_told_and_ends_at_the_same_moment_after_a_reboot() {
        use DeadlineFrom::{Boot, BootstrapStart, Extension};
        let timeout = Duration::from_secs(500);
        let mut first = begin(&now(100, 1_000, "a"));
        first.advance(&now(110, 1_010, "a"));
        first.start();
        let second = again(&first, &now(5, 1_040, "b"));
        let used = |from| second.used(from).unwrap().as_secs();
        assert_eq!([Extension, Boot, BootstrapStart].map(used), [40, 140, 30]);
        for from in [Extension, Boot, BootstrapStart] {
            assert_eq!(first.deadline(from, timeout), second.deadline(from, timeout));
        }
        assert_eq!(second.deadline(Boot, timeout).unwrap().as_second(), 1_400);
    }

    #[test]
    fn another_question_or_another_machine_is_another_wait() {
        let mut first = begin(&now(100, 1_000, "a"));
        first.machine = machine("one");
        let later = now(200, 1_100, "a");
        let other = Memory::resume(
            Some(first.clone()),
            &settings(&["--watch=aks"]),
            machine("one"),
            &later,
        );
        assert_eq!(other.waited(), Duration::ZERO);
        let copied = Memory::resume(Some(first.clone()), &settings(&[]), machine("two"), &later);
        assert_eq!(copied.waited(), Duration::ZERO);
        let same = Memory::resume(Some(first), &settings(&[]), machine("one"), &later);
        assert_eq!(same.waited(), Duration::from_secs(100));
    }

    #[test]
    fn what_is_written_is_read_again_and_what_is_broken_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wait.json");
        let memory = begin(&now(1, 2, "a"));
        memory.save(&path).unwrap();
        assert_eq!(Memory::load(&path), Some(memory));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(Memory::load(&path), None);
    }
}
