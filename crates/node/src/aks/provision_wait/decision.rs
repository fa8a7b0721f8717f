//! Decides when the waiter stops waiting: a pure function of one observation.

use std::time::Duration;

use jiff::Timestamp;

use crate::aks::result_files::Leftovers;
use crate::run::{Identity, Run};

/// The longest time for the last steps of an attempt: the mark after `provision.complete`, and the result
/// after the end of the processes.
const SETTLE: Duration = Duration::from_secs(5);

/// One observation of everything that the decision needs.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The results on disk.
    pub(crate) left: Leftovers,
    /// The record of the attempt.
    pub(crate) run: Option<Run>,
    /// The identity of this machine.
    pub(crate) identity: Identity,
    pub(crate) work: Work,
    /// How long the waiter has waited.
    pub(crate) waited: Duration,
    /// How long the results have existed.
    pub(crate) complete_for: Duration,
    /// How long no provisioning process has run.
    pub(crate) idle_for: Duration,
    /// When this machine was booted, if known.
    pub(crate) booted: Option<Timestamp>,
}

/// Which process provisions the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// This program's agent.
    Agent,
    /// The scripts, without an agent.
    Scripts,
    /// A launcher, or a provisioner of another project.
    Others,
    /// No process.
    None,
}

/// The next step of the waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Continue to wait.
    Wait,
    /// Use the results.
    Judge,
    /// The attempt had to prepare only the base of an image, and it succeeded.
    BasePrepared,
    /// No process ever began.
    NeverStarted,
    /// A process began and ended without a result.
    Died,
    /// The time limit is over.
    TimedOut,
}

pub(crate) fn next_step(seen: &Seen, timeout: Duration, start_timeout: Duration) -> Step {
    let open = seen.run.as_ref().filter(|run| run.open(&seen.identity));
    // The attempt is of this boot, and the last steps of its end are missing.
    let unfinished = seen.run.as_ref().filter(|run| run.is_of(&seen.identity));
    let unfinished = unfinished.filter(|run| !seen.left.concludes(run));
    let of_this_run = seen.run.as_ref().is_none_or(|run| seen.left.is_of(run));
    let foreign = seen.left.foreign(&seen.identity, seen.run.as_ref()).is_some();
    if seen.left.complete.is_some() && of_this_run && !foreign {
        let stamped = open.is_none();
        return match seen.work {
            Work::Agent if !stamped && seen.complete_for < SETTLE => Step::Wait,
            Work::Agent | Work::Scripts | Work::Others | Work::None => Step::Judge,
        };
    }
    // A captured image contains the file, and the record of the run that prepared the image.
    let run = seen.run.as_ref().filter(|run| run.is_of(&seen.identity));
    let since = run.map(|run| run.started).or(seen.booted);
    if let (Some(prepared), Some(since)) = (seen.left.base_prep, since)
        && prepared >= since
    {
        // Older scripts write the base-prep mark even after a failure.
        let failed = seen.left.counts_since(since) && !foreign;
        return if failed { Step::Judge } else { Step::BasePrepared };
    }
    if let Some(run) = unfinished
        && seen.work == Work::None
        && seen.idle_for >= SETTLE
    {
        // The agent and the scripts were killed before they could write the end of the attempt.
        let counts = !foreign && seen.left.counts_since(run.started);
        return if counts { Step::Judge } else { Step::Died };
    }
    if seen.waited >= timeout {
        return Step::TimedOut;
    }
    if seen.waited >= start_timeout && seen.work == Work::None && unfinished.is_none() {
        return Step::NeverStarted;
    }
    Step::Wait
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    const TIMEOUT: Duration = Duration::from_secs(100);
    const START: Duration = Duration::from_secs(10);

    fn seen(work: Work, waited: u64) -> Seen {
        Seen {
            left: Leftovers::default(),
            run: None,
            identity: Identity::default(),
            work,
            waited: Duration::from_secs(waited),
            complete_for: Duration::ZERO,
            idle_for: Duration::ZERO,
            booted: Some(at(0)),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(started: i64) -> Run {
        Run::begin(&Identity::default(), at(started), None)
    }

    fn with_result(seen: Seen, second: i64) -> Seen {
        let left = Leftovers {
            complete: Some(at(second)),
            result: Some(Ok(Outcome::own(0, "", ""))),
            ..Leftovers::default()
        };
        Seen { left, ..seen }
    }

    fn step(seen: &Seen) -> Step {
        next_step(seen, TIMEOUT, START)
    }

    #[test]
    fn nobody_in_sight_is_waited_for_until_the_start_limit_and_somebody_until_the_end() {
        assert_eq!(step(&seen(Work::None, 9)), Step::Wait);
        assert_eq!(step(&seen(Work::None, 10)), Step::NeverStarted);
        assert_eq!(step(&seen(Work::Others, 99)), Step::Wait);
        assert_eq!(step(&seen(Work::Others, 100)), Step::TimedOut);
    }

    #[test]
    fn a_result_counts_unless_it_is_older_than_the_run_or_of_another_machine() {
        assert_eq!(step(&with_result(seen(Work::None, 0), 5)), Step::Judge);
        let older = Seen { run: Some(run(6)), ..with_result(seen(Work::Agent, 0), 5) };
        assert_eq!(step(&older), Step::Wait);
        let copied = Identity { copied: true, ..Identity::default() };
        let foreign = Seen { identity: copied, ..with_result(seen(Work::None, 0), 5) };
        assert_eq!(step(&foreign), Step::Wait);
    }

    #[test]
    fn the_agent_gets_five_seconds_to_put_its_mark() {
        let fresh = Seen { run: Some(run(1)), ..with_result(seen(Work::Agent, 0), 5) };
        assert_eq!(step(&fresh), Step::Wait);
        assert_eq!(step(&Seen { complete_for: SETTLE, ..fresh.clone() }), Step::Judge);
        assert_eq!(step(&Seen { work: Work::Scripts, ..fresh }), Step::Judge);
    }

    #[test]
    fn who_is_gone_without_a_result_has_died_after_five_seconds() {
        let gone = Seen { run: Some(run(1)), ..seen(Work::None, 0) };
        assert_eq!(step(&gone), Step::Wait);
        assert_eq!(step(&Seen { idle_for: SETTLE, ..gone.clone() }), Step::Died);
        assert_eq!(step(&Seen { work: Work::Scripts, idle_for: SETTLE, ..gone }), Step::Wait);
    }

    #[test]
    fn a_failure_that_was_written_comes_out_though_nobody_was_left_to_say_that_it_is_over() {
        let result = |exit, second| Leftovers {
            result: Some(Ok(Outcome::own(exit, "", ""))),
            written: Some(at(second)),
            ..Leftovers::default()
        };
        let seen = |left| Seen { left, run: Some(run(6)), idle_for: SETTLE, ..seen(Work::None, 0) };
        assert_eq!(step(&seen(result(50, 7))), Step::Judge);
        assert_eq!(step(&seen(result(50, 5))), Step::Died);
        assert_eq!(step(&seen(result(0, 7))), Step::Died);
        let mut ended = run(6);
        ended.ended(50, "", at(8));
        let ended = Seen { run: Some(ended), ..seen(result(50, 7)) };
        assert_eq!(step(&ended), Step::Judge);
    }

    #[test]
    fn a_prepared_base_counts_only_if_it_was_prepared_now() {
        let base = |second| Leftovers { base_prep: Some(at(second)), ..Leftovers::default() };
        let now = Seen { left: base(7), run: Some(run(6)), ..seen(Work::Agent, 0) };
        assert_eq!(step(&now), Step::BasePrepared);
        let brought = Seen { left: base(5), run: Some(run(6)), ..seen(Work::Agent, 0) };
        assert_eq!(step(&brought), Step::Wait);
        let identity = |name: &str| Identity {
            boot: Some(format!("boot of {name}")),
            machine: Some(name.to_owned()),
            copied: false,
        };
        let captured = Some(Run::begin(&identity("another"), at(-9), None));
        let (left, identity) = (base(-8), identity("this"));
        let captured = Seen { left, run: captured, identity, ..seen(Work::None, 0) };
        assert_eq!(step(&captured), Step::Wait, "the run that prepared it was on another machine");
        let late = Seen { waited: START, ..captured };
        assert_eq!(step(&late), Step::NeverStarted);
    }

    #[test]
    fn a_base_whose_result_is_a_failure_is_not_prepared() {
        let left = |exit| Leftovers {
            base_prep: Some(at(7)),
            result: Some(Ok(Outcome::own(exit, "", ""))),
            written: Some(at(7)),
            ..Leftovers::default()
        };
        let seen = |exit| Seen { left: left(exit), run: Some(run(6)), ..seen(Work::Agent, 0) };
        assert_eq!(step(&seen(50)), Step::Judge);
        assert_eq!(step(&seen(0)), Step::BasePrepared);
    }
}
