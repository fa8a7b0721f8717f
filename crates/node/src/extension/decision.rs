//! Decides the action of `enable`. The guest agent calls `enable` again at each of its own starts and with
//! every change of any extension, so most calls have nothing to do.

use std::path::Path;

use super::record::{Phase, Record};
use crate::capi::Identity;

/// The input of the decision.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// The number of the current settings.
    pub(crate) number: u64,
    pub(crate) machine: &'a Identity,
    pub(crate) handler: &'a Path,
    /// The record of the last wait.
    pub(crate) record: Option<&'a Record>,
    /// A running waiter: its number and the folder of its handler.
    pub(crate) waiter: Option<(u64, &'a Path)>,
}

/// The action of `enable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Begin a new wait.
    Begin,
    /// Continue the same wait in a new process, with the same deadline.
    Resume,
    /// A process already waits.
    LeaveAlone,
    /// The wait is over; at most its status must be written again.
    Restore,
}

pub(crate) fn step(seen: &Seen<'_>) -> Step {
    let ours = |record: &&Record| {
        // The disk of a captured image contains the record of another machine.
        record.number == seen.number && record.machine.may_be(seen.machine)
    };
    let waits = seen.waiter == Some((seen.number, seen.handler));
    match (seen.record, seen.record.filter(ours).map(|record| record.phase)) {
        (_, Some(Phase::Done)) => Step::Restore,
        // On a full disk, a running waiter may have no record.
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
