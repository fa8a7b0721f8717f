//! The budget, with time as an argument.

use std::time::Duration;

use azure_core::http::headers::Headers;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ArmFailure;

const DATE: &str = "Tue, 27 Jan 2026 14:30:40 GMT";

fn start() -> Timestamp {
    "2026-01-27T14:30:00Z".parse().unwrap()
}

fn at(seconds: f64) -> Timestamp {
    start() + SignedDuration::from_secs_f64(seconds)
}

fn read(machine: &str) -> Call {
    let operation = Operation::GetVirtualMachine;
    Call::new(operation, Door::Reads, Family::LowCostGet, "s", machine)
}

/// Takes as many requests as the budget allows at this time, up to `most`.
fn drain(budget: &mut Budget, call: &Call, now: Timestamp, most: usize) -> usize {
    (0..most)
        .take_while(|_| {
            let ready = budget.ready_at(call, now) <= now;
            if ready {
                budget.take(call, now);
                budget.ended(call);
            }
            ready
        })
        .count()
}

fn throttled(throttling: Throttling, retry_after: Option<u64>) -> Signals {
    Signals {
        throttled: Some(throttling),
        retry_after: retry_after.map(Duration::from_secs),
        ..Signals::default()
    }
}

#[test]
fn a_burst_is_followed_by_a_steady_rate() {
    let mut budget = Budget::new(Limits::default());
    let taken: usize =
        (0..1000).map(|n| drain(&mut budget, &read(&format!("vm-{n}")), start(), 1)).sum();
    assert_eq!(taken, 125);
    let call = read("another");
    let next = budget.ready_at(&call, start());
    assert!(next > start() && next <= at(0.084), "{next}");
    let taken: usize =
        (0..1000).map(|n| drain(&mut budget, &read(&format!("more-{n}")), at(10.0), 1)).sum();
    assert!((119..=120).contains(&taken), "{taken}");
}

#[test]
fn one_machine_has_a_limit_of_its_own_that_does_not_concern_others() {
    let mut budget = Budget::new(Limits::default());
    assert_eq!(drain(&mut budget, &read("a"), start(), 100), 24);
    assert_eq!(budget.ready_at(&read("A"), start()), budget.ready_at(&read("a"), start()));
    assert_eq!(budget.ready_at(&read("b"), start()), start());
    assert_eq!(drain(&mut budget, &read("a"), at(61.0), 100), 12);
}

/// Compute refills once a minute, at an undocumented second.
#[test]
fn the_steady_limit_of_a_machine_stays_within_compute_s_steps_wherever_they_lie() {
    for phase in 0..60_i64 {
        let mut budget = Budget::new(Limits::default());
        let (mut tokens, mut minute) = (36, start().as_second().div_euclid(60));
        for second in 0..600 {
            let now = start() + SignedDuration::from_secs(second);
            let passed = (now.as_second() + phase).div_euclid(60) - minute;
            minute += passed;
            tokens = (tokens + 12 * passed).min(36);
            tokens -= i64::try_from(drain(&mut budget, &read("a"), now, 100)).unwrap();
            assert!(tokens >= 0, "phase {phase}, second {second}");
        }
    }
}

#[test]
fn a_refusal_for_one_machine_stops_that_machine_alone() {
    let mut budget = Budget::new(Limits::default());
    let refusal = throttled(Throttling::Policy("LowCostGetResource".to_owned()), Some(40));
    budget.heed(&read("a"), &refusal, start());
    assert_eq!(budget.ready_at(&read("a"), start()), at(40.0));
    assert_eq!(budget.ready_at(&read("b"), start()), start());
    assert_eq!(drain(&mut budget, &read("a"), at(40.0), 10), 1, "and then not all at once");
}

#[test]
fn a_refusal_for_the_subscription_stops_its_family_alone() {
    let mut budget = Budget::new(Limits::default());
    let policy = Throttling::Policy("LowCostGetSubscriptionMaximum".to_owned());
    budget.heed(&read("a"), &throttled(policy, Some(40)), start());
    assert_eq!(budget.ready_at(&read("b"), start()), at(40.0));
    let machine =
        Call::new(Operation::GetMachine, Door::Reads, Family::Aks, "s", "cluster/machine");
    assert_eq!(budget.ready_at(&machine, start()), start());
}

#[test]
fn a_refusal_of_the_front_door_stops_everything_behind_it() {
    let mut budget = Budget::new(Limits::default());
    budget.heed(&read("a"), &throttled(Throttling::Door, Some(5)), start());
    let machine = Call::new(Operation::GetMachine, Door::Reads, Family::Aks, "S", "m");
    for call in [read("a"), read("b"), machine] {
        assert_eq!(budget.ready_at(&call, start()), at(5.0));
    }
    let operation = Operation::GetVirtualMachine;
    let elsewhere = Call::new(operation, Door::Reads, Family::LowCostGet, "other", "a-elsewhere");
    assert_eq!(budget.ready_at(&elsewhere, start()), start());
}

#[test]
fn a_refusal_that_names_no_moment_has_one_all_the_same_and_none_is_for_ever() {
    let mut budget = Budget::new(Limits::default());
    budget.heed(&read("a"), &throttled(Throttling::Door, None), start());
    assert_eq!(budget.ready_at(&read("a"), start()), at(10.0));
    budget.heed(&read("a"), &throttled(Throttling::Door, Some(u64::MAX)), start());
    assert_eq!(budget.ready_at(&read("a"), start()), at(300.0));
}

#[test]
fn what_azure_says_is_left_lowers_what_we_count_on() {
    let mut budget = Budget::new(Limits::default());
    let call = read("a");
    let left = |door, remaining: &[(&str, u64)]| Signals {
        door,
        remaining: remaining.iter().map(|(name, left)| ((*name).to_owned(), *left)).collect(),
        ..Signals::default()
    };
    budget.heed(&call, &left(Some(249), &[("LowCostGetResource", 35)]), start());
    assert_eq!(budget.available(&call, start()), 23);
    budget.heed(&call, &left(None, &[("LowCostGetResource", 3)]), start());
    assert_eq!(budget.available(&call, start()), 2, "half of it is for others");
    assert_eq!(drain(&mut budget, &call, start(), 100), 2);
    assert_eq!(drain(&mut budget, &call, at(50.0), 100), 0, "the next step may not have come");
    assert_eq!(drain(&mut budget, &call, at(66.0), 100), 2);
    budget.heed(&call, &left(None, &[("LowCostGetResource", 30)]), at(66.0));
    assert_eq!(budget.available(&call, at(66.0)), 15, "others have let go");
    budget.heed(&call, &left(Some(5), &[]), at(66.0));
    assert_eq!(budget.available(&read("b"), at(66.0)), 2, "here, too");
    budget.heed(&call, &left(None, &[("LowCostGetSubscriptionMaximum", 0)]), at(66.0));
    assert_eq!(budget.available(&read("b"), at(66.0)), 0);
    assert_eq!(budget.remaining().get("LowCostGetSubscriptionMaximum"), Some(&0));
    assert_eq!(budget.remaining().get("LowCostGetResource"), None, "machines come and go");
}

#[test]
fn what_is_under_way_comes_off_what_is_left() {
    let mut budget = Budget::new(Limits::default());
    let call = read("a");
    (0..4).for_each(|_| budget.take(&call, start()));
    budget.ended(&call);
    let remaining = vec![("LowCostGetResource".to_owned(), 7)];
    budget.heed(&call, &Signals { remaining, ..Signals::default() }, start());
    assert_eq!(budget.available(&call, start()), 2);
}

#[test]
fn what_is_given_back_is_there_again_and_shortens_no_stop() {
    let mut budget = Budget::new(Limits::default());
    let call = read("a");
    budget.take(&call, start());
    budget.give_back(&call);
    assert_eq!(budget.available(&call, start()), 24);

    budget.take(&call, start());
    budget.heed(&read("b"), &throttled(Throttling::Door, Some(5)), start());
    budget.give_back(&call);
    assert_eq!(budget.ready_at(&call, start()), at(5.0));
}

#[test]
fn a_clock_that_is_set_back_stops_nothing() {
    let mut budget = Budget::new(Limits::default());
    budget.tick(at(100_000.0));
    assert_eq!(drain(&mut budget, &read("a"), at(100_000.0), 100), 24);
    budget.tick(start());
    assert!(budget.ready_at(&read("a"), start()) <= at(6.0));
}

#[test]
fn meters_that_say_nothing_are_forgotten() {
    let mut budget = Budget::new(Limits { reads_at_once: 10_000, ..Limits::default() });
    for n in 0..5_000_u32 {
        let now = at(f64::from(n));
        drain(&mut budget, &read(&format!("vm-{n}")), now, 1);
    }
    assert!(budget.meters.len() <= MANY_METERS + 3, "{}", budget.meters.len());
}

#[test]
fn machines_of_which_azure_has_said_how_much_is_left_are_forgotten_too() {
    let mut budget = Budget::new(Limits::default());
    let left = "Microsoft.Compute/LowCostGetResource".to_owned();
    let signals = Signals { remaining: vec![(left, 35)], ..Signals::default() };
    for n in 0..10_000 {
        // Twelve requests a second, as in a cluster that is busy for a quarter of an hour.
        let now = at(f64::from(n) / 12.0);
        let call = read(&format!("vm-{n}"));
        budget.take(&call, now);
        budget.ended(&call);
        budget.heed(&call, &signals, now);
    }
    assert!(budget.meters.len() < 5_000, "{}", budget.meters.len());
}

fn headers(pairs: &[(&'static str, &'static str)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in pairs {
        headers.insert(*name, *value);
    }
    headers
}

#[test]
fn headers_and_refusals_are_read_as_azure_writes_them() {
    let compute = ArmFailure::of_body(&json!({
        "code": "OperationNotAllowed", "message": "too many",
        "details": [{"code": "TooManyRequests", "target": "LowCostGetResource", "message": "{}"}],
    }));
    let door = ArmFailure::of_body(&json!({"error": {"code": "SubscriptionRequestsThrottled"}}));
    let other = ArmFailure::of_body(&json!({"error": {"code": "TooManyRequests"}}));
    let rates = "Microsoft.Compute/LowCostGetSubscriptionMaximum;23998, Microsoft.Compute/LowCostGetResource;34,junk,x;y";
    let read = |status, pairs: &[_], failure: Option<&ArmFailure>| {
        Signals::read(status, &headers(pairs), failure, Door::Reads, start())
    };

    let fine = read(
        200,
        &[
            ("x-ms-ratelimit-remaining-resource", rates),
            ("x-ms-ratelimit-remaining-subscription-reads", "249"),
        ],
        None,
    );
    assert_eq!(fine.door, Some(249));
    assert_eq!(
        fine.remaining,
        [
            ("LowCostGetSubscriptionMaximum".to_owned(), 23_998),
            ("LowCostGetResource".to_owned(), 34)
        ]
    );
    assert_eq!(fine.throttled, None);

    for (failure, pairs, expected) in [
        (Some(&compute), vec![], Throttling::Policy("LowCostGetResource".to_owned())),
        (Some(&door), vec![], Throttling::Door),
        (Some(&other), vec![], Throttling::Provider),
        (Some(&other), vec![("x-ms-failure-cause", "gateway")], Throttling::Door),
        (None, vec![], Throttling::Door),
        (
            None,
            vec![("x-ms-ratelimit-remaining-resource", "Microsoft.Compute/GetOperationResource;0")],
            Throttling::Policy("GetOperationResource".to_owned()),
        ),
    ] {
        assert_eq!(read(429, &pairs, failure).throttled, Some(expected));
    }
}

#[test]
fn a_moment_to_stay_away_until_is_seconds_or_a_date() {
    for (value, seconds) in [
        ("40", Some(40)),
        (" 0 ", Some(0)),
        (DATE, Some(40)),
        ("Tue, 27 Jan 2026 14:29:00 GMT", Some(0)),
        ("soon", None),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(retry_after(value, start()), seconds.map(Duration::from_secs), "{value}");
    }
}

proptest! {
    /// Whatever requests, responses, refusals and returns occur: no period has more requests than the burst
    /// and the rate allow.
    #[test]
    fn no_stretch_of_time_sees_more_than_burst_and_rate(
        steps in proptest::collection::vec((0_u64..400, 0_u8..8, 0_u8..40), 1..400)
    ) {
        let limits = Limits { reads_at_once: 20, reads_per_second: 7, ..Limits::default() };
        let mut budget = Budget::new(limits);
        let mut now = start();
        let mut taken: Vec<Timestamp> = Vec::new();
        let mut stopped = start();
        for (wait, what, machine) in steps {
            now = later(now, Duration::from_millis(wait));
            budget.tick(now);
            let call = read(&format!("vm-{machine}"));
            match what {
                0 => {
                    let left = Some(u64::from(machine));
                    budget.heed(&call, &Signals { door: left, ..Signals::default() }, now);
                }
                1 if machine == 7 => {
                    budget.heed(&call, &throttled(Throttling::Door, Some(2)), now);
                    stopped = stopped.max(later(now, Duration::from_secs(2)));
                }
                2 if budget.ready_at(&call, now) <= now => {
                    budget.take(&call, now);
                    budget.give_back(&call);
                }
                _ => while budget.ready_at(&call, now) <= now {
                    prop_assert!(now >= stopped);
                    budget.take(&call, now);
                    budget.ended(&call);
                    taken.push(now);
                },
            }
        }
        for (first, from) in taken.iter().enumerate() {
            for (last, to) in taken.iter().enumerate().skip(first) {
                let seconds = from.duration_until(*to).as_secs_f64();
                let count = u32::try_from(last - first + 1).unwrap();
                prop_assert!(f64::from(count) <= 20.0 + 7.0 * seconds + 1e-6);
            }
        }
    }
}

#[test]
fn whoever_shares_a_limit_with_heavy_users_still_gets_a_share() {
    let mut budget = Budget::new(Limits::default());
    let call = read("a");
    let mut asked = 0;
    for second in 0..600_u32 {
        // Other clients use all but ten of the new tokens.
        let remaining = vec![("LowCostGetSubscriptionMaximum".to_owned(), 10)];
        let now = at(f64::from(second));
        asked += drain(&mut budget, &read(&format!("vm-{second}")), now, 1);
        budget.heed(&call, &Signals { remaining, ..Signals::default() }, now);
    }
    assert_eq!(asked, 600);
}
