use std::time::UNIX_EPOCH;

use super::*;

const LIMITS: Limits = Limits {
    timeout: Duration::from_mins(20),
    start_timeout: Duration::from_mins(5),
    settle: Duration::from_secs(5),
    post_commands: false,
};

fn nothing() -> Observations {
    Observations {
        success: Mark::Absent,
        failure: Mark::Absent,
        failure_whole: false,
        bootstrap: Bootstrap::NotSeen,
        started: false,
        interrupted: false,
    }
}

fn with(bootstrap: Bootstrap) -> Observations {
    Observations { bootstrap, started: true, ..nothing() }
}

fn ended() -> Bootstrap {
    Bootstrap::Ended(End::plain("cloud-init has ended"))
}

fn there(second: u64) -> Mark {
    Mark::There(UNIX_EPOCH + Duration::from_secs(second))
}

/// A wait of this many seconds, all of which count against the limit.
fn at(seconds: u64) -> Clock {
    let waited = Duration::from_secs(seconds);
    Clock { waited, used: Some(waited), ..Clock::default() }
}

fn over(seen: &Observations, clock: &Clock) -> Option<Ending> {
    match verdict(seen, clock, &LIMITS) {
        Verdict::Wait(_) => None,
        Verdict::Over(ending) => Some(ending),
    }
}

#[test]
fn a_sentinel_decides_whatever_else_is_seen() {
    for bootstrap in [Bootstrap::NotSeen, Bootstrap::Running, ended()] {
        let seen = Observations { success: there(1), interrupted: true, ..with(bootstrap) };
        assert_eq!(over(&seen, &at(9_999)), Some(Ending::Succeeded));
    }
}

#[test]
fn of_a_success_and_a_failure_sentinel_the_newer_one_counts() {
    let seen = |success, failure| Observations {
        success: there(success),
        failure: there(failure),
        failure_whole: true,
        ..nothing()
    };
    assert_eq!(over(&seen(5, 4), &at(0)), Some(Ending::Succeeded));
    assert_eq!(over(&seen(5, 5), &at(0)), Some(Ending::Failed));
    assert_eq!(over(&seen(5, 6), &at(0)), Some(Ending::Failed));
}

#[test]
fn a_failure_sentinel_that_is_being_written_gets_time_to_settle() {
    let seen = Observations { failure: there(1), ..nothing() };
    assert_eq!(verdict(&seen, &at(0), &LIMITS), Verdict::Wait(LIMITS.settle));
    let settled = Clock { failed_for: LIMITS.settle, ..at(0) };
    assert_eq!(over(&seen, &settled), Some(Ending::Failed));
}

#[test]
fn the_end_of_the_bootstrap_gives_the_sentinel_time_to_settle() {
    let just = Clock { ended_for: Duration::from_secs(2), ..at(60) };
    assert_eq!(
        verdict(&with(ended()), &just, &LIMITS),
        Verdict::Wait(Duration::from_secs(3)),
        "no longer than what is left of the time to settle"
    );
    let settled = Clock { ended_for: LIMITS.settle, ..at(60) };
    assert_eq!(over(&with(ended()), &settled), Some(Ending::EndedWithoutSentinel));
    assert_eq!(over(&with(ended()), &at(20 * 60)), Some(Ending::EndedWithoutSentinel));
}

#[test]
fn a_beginning_that_nobody_can_see_is_not_awaited_for_ever() {
    let unknown = Bootstrap::Unknown("no answer".to_owned());
    let seen = Observations { bootstrap: unknown, ..nothing() };
    let unbegun = |waited: Duration| Clock { waited, used: None, ..Clock::default() };
    let most = LIMITS.start_timeout + LIMITS.timeout;
    let almost = most.saturating_sub(Duration::from_secs(1));
    assert_eq!(verdict(&seen, &unbegun(almost), &LIMITS), Verdict::Wait(Duration::from_secs(1)));
    assert_eq!(over(&seen, &unbegun(most)), Some(Ending::StateUnknown));
}

#[test]
fn when_time_is_up_it_counts_what_was_seen_last() {
    let late = at(20 * 60);
    assert_eq!(over(&with(Bootstrap::Running), &late), Some(Ending::StillRunning));
    let unknown = Bootstrap::Unknown("no answer".to_owned());
    assert_eq!(over(&with(unknown), &late), Some(Ending::StateUnknown));
    assert_eq!(over(&with(Bootstrap::NotSeen), &late), Some(Ending::StateUnknown));
    assert_eq!(over(&nothing(), &late), Some(Ending::NeverStarted));
}

#[test]
fn the_start_limit_ends_with_the_first_sign() {
    assert_eq!(verdict(&nothing(), &at(299), &LIMITS), Verdict::Wait(Duration::from_secs(1)));
    assert_eq!(over(&nothing(), &at(300)), Some(Ending::NeverStarted));
    assert_eq!(over(&with(Bootstrap::Running), &at(300)), None);
    assert_eq!(over(&with(Bootstrap::NotSeen), &at(300)), None, "it was seen before");
}

#[test]
fn a_limit_that_has_not_begun_does_not_end_the_wait() {
    let clock = Clock { waited: Duration::from_hours(9), used: None, ..Clock::default() };
    assert_eq!(over(&with(Bootstrap::Running), &clock), None);
}

#[test]
fn an_interruption_beats_all_but_a_sentinel() {
    let seen = Observations { interrupted: true, ..with(ended()) };
    assert_eq!(over(&seen, &at(9_999)), Some(Ending::Interrupted));
}

#[test]
fn what_may_not_be_looked_at_is_said_at_once() {
    let seen = Observations { success: Mark::Denied, ..nothing() };
    assert_eq!(over(&seen, &at(0)), Some(Ending::NoPermission));
}

#[test]
fn what_does_not_count_is_waited_on() {
    let seen = Observations { success: Mark::Ignored("a link".to_owned()), ..nothing() };
    assert_eq!(over(&seen, &at(0)), None);
}

#[test]
fn a_bootstrap_that_says_that_all_is_well_needs_no_sentinel() {
    assert_eq!(over(&with(Bootstrap::Succeeded), &at(1)), Some(Ending::Succeeded));
}

#[test]
fn commands_after_the_sentinel_are_waited_for_only_if_asked() {
    let limits = Limits { post_commands: true, ..LIMITS };
    let seen = |bootstrap| Observations { success: there(1), ..with(bootstrap) };
    let over = |bootstrap, clock: &Clock| match verdict(&seen(bootstrap), clock, &limits) {
        Verdict::Wait(_) => None,
        Verdict::Over(ending) => Some(ending),
    };
    assert_eq!(over(Bootstrap::Running, &at(1)), None);
    assert_eq!(over(Bootstrap::Running, &at(20 * 60)), Some(Ending::StillRunning));
    assert_eq!(over(ended(), &at(1)), Some(Ending::PostCommandsEnded));
    assert_eq!(over(Bootstrap::NotSeen, &at(1)), Some(Ending::Succeeded));
}

fn facts(cause: Cause) -> Facts {
    Facts { cause, reached: Reached::Nothing, delivered: None, commands_failed: false }
}

fn exit(ending: Ending, facts: Facts) -> u8 {
    exit_for(ending, facts, false, JoinedPolicy::Warn).number()
}

fn number(facts: Facts) -> u8 {
    exit(Ending::EndedWithoutSentinel, facts)
}

#[test]
fn a_cause_with_a_number_beats_the_place_where_it_happened() {
    let failed = Facts { commands_failed: true, ..facts(Cause::DnsFailure) };
    assert_eq!(number(failed), 25);
    let refused = Facts { reached: Reached::Check, ..facts(Cause::BinaryMissing) };
    assert_eq!(number(refused), 23);
}

#[test]
fn without_a_number_the_place_decides() {
    assert_eq!(number(facts(Cause::Unknown)), 20);
    assert_eq!(number(Facts { commands_failed: true, ..facts(Cause::Unknown) }), 22);
    assert_eq!(number(Facts { commands_failed: true, ..facts(Cause::UserDataInvalid) }), 22);
    assert_eq!(number(facts(Cause::UserDataInvalid)), 21);
    let kubeadm =
        Facts { commands_failed: true, reached: Reached::Kubeadm, ..facts(Cause::Unknown) };
    assert_eq!(number(kubeadm), 20);
    assert_eq!(number(Facts { reached: Reached::Check, ..kubeadm }), 28);
    assert_eq!(number(Facts { reached: Reached::Check, ..facts(Cause::VmTooSmall) }), 28);
}

#[test]
fn user_data_that_never_came_is_told_apart() {
    let empty = Facts { delivered: Some(false), ..facts(Cause::Unknown) };
    assert_eq!(number(empty), 13);
    assert_eq!(exit(Ending::NeverStarted, empty), 13);
    assert_eq!(exit(Ending::NeverStarted, facts(Cause::Unknown)), 11);
    assert_eq!(exit(Ending::StillRunning, empty), 10);
}

#[test]
fn a_node_that_joined_without_a_sentinel_is_judged_by_the_policy() {
    let joined = Facts { reached: Reached::Joined, ..facts(Cause::PermissionDenied) };
    assert_eq!(number(joined), 3);
    assert_eq!(exit(Ending::StillRunning, joined), 3);
    let failed = exit_for(Ending::EndedWithoutSentinel, joined, false, JoinedPolicy::Fail);
    assert_eq!(failed, Exit::EndedWithoutSentinel);
    let there = exit_for(Ending::StillRunning, joined, true, JoinedPolicy::Warn);
    assert_eq!(there, Exit::StillRunning, "the commands after the sentinel run on");
}

#[test]
fn failed_commands_after_the_sentinel_have_a_number() {
    let joined = Facts { reached: Reached::Joined, ..facts(Cause::Unknown) };
    assert_eq!(exit(Ending::PostCommandsEnded, Facts { commands_failed: true, ..joined }), 33);
    assert_eq!(exit(Ending::PostCommandsEnded, joined), 0);
}
