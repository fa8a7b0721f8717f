//! What `enable` does. The guest agent calls it again at every start of its own and with every
//! change of any extension, so most calls find that there is nothing to do.

use std::path::Path;

use super::record::{Phase, Record};
use crate::capi::Identity;

/// What is known when `enable` is called.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// The number of the settings that count.
    pub(crate) number: u64,
    /// This machine.
    pub(crate) machine: &'a Identity,
    /// The folder of this handler.
    pub(crate) handler: &'a Path,
    /// What was recorded.
    pub(crate) record: Option<&'a Record>,
    /// A waiter that runs: its number and the folder of its handler.
    pub(crate) waiter: Option<(u64, &'a Path)>,
}

/// What `enable` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A new wait.
    Begin,
    /// The same wait goes on in a new process, with the same deadline.
    Resume,
    /// It is being waited already.
    LeaveAlone,
    /// It is over; only its status may have to be written again.
    Restore,
}

/// Decides.
pub(crate) fn step(seen: &Seen<'_>) -> Step {
    let ours = |record: &&Record| {
        // A disk that was captured brings the record of another machine along.
        record.number == seen.number && record.machine.may_be(seen.machine)
    };
    let waits = seen.waiter == Some((seen.number, seen.handler));
    match (seen.record, seen.record.filter(ours).map(|record| record.phase)) {
        (_, Some(Phase::Done)) => Step::Restore,
        // On a full disk there may be no record of a waiter that runs.
        (_, Some(Phase::Waiting)) | (None, None) if waits => Step::LeaveAlone,
        (_, Some(Phase::Waiting)) => Step::Resume,
        (_, None) => Step::Begin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> Identity {
        Identity { machine: Some(name.to_owned()), instance: None }
    }

    fn record(number: u64, phase: Phase) -> Record {
        let began = "2026-01-01T00:00:00Z".parse().unwrap();
        Record { phase, ..Record::begin(number, machine("a"), None, began, None) }
    }

    fn decided(
        number: u64,
        name: &str,
        record: Option<&Record>,
        waiter: Option<(u64, &str)>,
    ) -> Step {
        let machine = machine(name);
        let waiter = waiter.map(|(number, handler)| (number, Path::new(handler)));
        step(&Seen { number, machine: &machine, handler: Path::new("/h-1"), record, waiter })
    }

    #[test]
    fn another_number_is_another_wait_also_a_smaller_one() {
        for phase in [Phase::Waiting, Phase::Done] {
            let record = record(5, phase);
            assert_eq!(decided(2, "a", Some(&record), Some((5, "/h-1"))), Step::Begin);
            assert_eq!(decided(6, "a", Some(&record), None), Step::Begin);
        }
        assert_eq!(decided(0, "a", None, None), Step::Begin);
    }

    #[test]
    fn the_same_number_is_not_waited_for_twice() {
        let record = record(5, Phase::Waiting);
        assert_eq!(decided(5, "a", Some(&record), Some((5, "/h-1"))), Step::LeaveAlone);
        assert_eq!(decided(5, "a", Some(&record), None), Step::Resume);
        assert_eq!(decided(5, "a", None, Some((5, "/h-1"))), Step::LeaveAlone);
    }

    #[test]
    fn a_waiter_of_another_version_gives_way() {
        let record = record(5, Phase::Waiting);
        assert_eq!(decided(5, "a", Some(&record), Some((5, "/h-2"))), Step::Resume);
    }

    #[test]
    fn what_is_over_stays_over_but_not_on_another_machine() {
        let record = record(5, Phase::Done);
        assert_eq!(decided(5, "a", Some(&record), None), Step::Restore);
        assert_eq!(decided(5, "b", Some(&record), None), Step::Begin);
    }
}
