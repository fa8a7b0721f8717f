//! Decisions without a cluster and without Azure: snapshots in, steps out.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use bringup_azure::Priority;
use bringup_diagnosis::{Evidence, Piece, Source};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, Status, condition, find};
use bringup_objects::report::{BootstrapReport, Phase};
use bringup_observe::outputs::conditions;

use bringup_observe::observation::{Cse, Observation, Vm};
use bringup_observe::plan::Step;
use bringup_observe::schedule;
use bringup_observe::snapshot::{Joined, Looks, Snapshot};
use bringup_observe::subject::{Launch, Subject};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::claim::{at, bear, failed_cse, report, said, snapshot, subject};

#[test]
fn a_claim_whose_vm_is_not_accepted_is_left_alone() {
    let subject = Subject { launch: Launch::NotYet, ..subject() };
    assert!(matches!(snapshot(&subject, None, None, at(5)).next_step(), Step::Rest));
}

#[test]
fn what_its_provider_tells_is_looked_at_once() {
    let told = Subject { provider_failure: Some(at(9)), ..subject() };
    let wanted = conditions::desired(&told, None, None, false, at(10));
    let told = bear(told, &wanted);
    let step = |looked: Option<Timestamp>| {
        let looks = Looks { provider_failure: looked, ..Looks::default() };
        Snapshot { looks, ..snapshot(&told, None, None, at(10)) }.next_step()
    };
    assert!(matches!(step(None), Step::Look(Priority::Event)), "{:?}", step(None));
    assert!(
        matches!(step(Some(at(5))), Step::Look(Priority::Event)),
        "it was told of something else"
    );
    assert!(matches!(step(Some(at(9))), Step::Wait(_)), "{:?}", step(Some(at(9))));
}

#[test]
fn reads_that_azure_refuses_for_minutes_are_told_before_they_are_waited_for() {
    let seen = Observation {
        at: at(45),
        denied: Some("it refuses reads".to_owned()),
        ..Observation::default()
    };
    let signal = said(50, "failed");
    let step = |subject: &Subject, until| {
        Snapshot {
            signal: Some(signal.clone()),
            reads_refused_until: until,
            ..snapshot(subject, Some(&seen), None, at(60))
        }
        .next_step()
    };
    let subject = subject();
    let open = step(&subject, None);
    assert!(matches!(open, Step::Look(Priority::Event)), "evidence first: {open:?}");
    let told = step(&subject, Some(at(300)));
    let Step::Apply(conditions) = told else { panic!("{told:?}") };
    assert!(conditions.iter().any(|one| one.message.contains("Azure cannot be read")));
    let after = step(&bear(subject.clone(), &conditions), Some(at(300)));
    assert!(matches!(after, Step::Look(Priority::Event)), "then it waits: {after:?}");
    let over = step(&subject, Some(at(59)));
    assert!(matches!(over, Step::Look(Priority::Event)), "the refusal is over: {over:?}");
}

#[test]
fn a_report_is_created_before_anything_else_is_written() {
    let (subject, seen) = (subject(), failed_cse());
    let step = snapshot(&subject, Some(&seen), None, at(90)).next_step();
    assert!(matches!(step, Step::Publish(_)), "{step:?}");
    let report = report();
    let step = snapshot(&subject, Some(&seen), Some(&report), at(91)).next_step();
    let Step::Apply(conditions) = step else { panic!("{step:?}") };
    let subject = bear(subject, &conditions);
    let step = snapshot(&subject, Some(&seen), Some(&report), at(92)).next_step();
    assert!(matches!(step, Step::Announce), "{step:?}");
}

#[test]
fn a_subject_that_is_held_is_observed_and_reported_and_not_written_to() {
    let held = Subject { held: Some("Cluster prod is paused".to_owned()), ..subject() };
    let step = snapshot(&held, None, None, at(3)).next_step();
    assert!(matches!(step, Step::Wait(_)), "{step:?}");
    let seen = failed_cse();
    let Step::Publish(report) = snapshot(&held, Some(&seen), None, at(90)).next_step() else {
        panic!("it is reported")
    };
    let collectors = &report.status.as_ref().unwrap().collectors;
    let said = collectors.iter().find(|one| one.name == "conditions").unwrap();
    assert_eq!(said.detail, "not written for now: Cluster prod is paused");
    let step = snapshot(&held, Some(&seen), Some(&report), at(91)).next_step();
    assert!(matches!(step, Step::Announce), "{step:?}");
    let step = snapshot(&subject(), Some(&seen), Some(&report), at(92)).next_step();
    assert!(matches!(step, Step::Apply(_)), "it goes on: {step:?}");
}

#[test]
fn a_subject_that_cannot_be_written_to_is_observed_and_reported_all_the_same() {
    let (subject, seen) = (subject(), failed_cse());
    let step = |seen: Option<&Observation>, report: Option<&BootstrapReport>, now: i64| {
        let refused_until = Some(at(120));
        Snapshot { refused_until, ..snapshot(&subject, seen, report, at(now)) }.next_step()
    };
    assert!(matches!(step(None, None, 100), Step::Look(_)), "the first look was due");
    assert!(matches!(step(Some(&seen), None, 100), Step::Publish(_)));
    let report = report();
    assert!(matches!(step(Some(&seen), Some(&report), 100), Step::Announce));
    let told = bringup_observe::outputs::report::announced(&report, at(100));
    assert_eq!(format!("{:?}", step(Some(&seen), Some(&told), 100)), format!("Wait({})", at(120)));
    assert!(matches!(step(Some(&seen), Some(&told), 120), Step::Apply(_)), "it is tried again");
}

#[test]
fn a_node_that_is_ready_is_no_failure_whatever_the_script_said() {
    let (subject, seen) = (subject(), failed_cse());
    let mut snapshot = snapshot(&subject, Some(&seen), None, at(90));
    snapshot.node = Some(Joined { name: "aks-a".to_owned(), ready: true });
    let Step::Apply(conditions) = snapshot.next_step() else { panic!("no conditions") };
    let verdict = find(&conditions, BOOTSTRAP_SUCCEEDED).unwrap();
    assert_eq!(verdict.status, "True");
}

#[test]
fn a_node_that_joined_long_before_anybody_looked_is_left_alone() {
    let subject = Subject { registered: Some(at(60)), ..subject() };
    let mut old = snapshot(&subject, None, None, at(3600));
    old.was_pending = false;
    assert!(matches!(old.next_step(), Step::Rest));
    old.now = at(120);
    assert!(matches!(old.next_step(), Step::Apply(_)), "one that joined just now is not");
}

#[test]
fn a_node_that_comes_after_the_verdict_closes_the_report() {
    let (subject, report) = (Subject { registered: Some(at(300)), ..subject() }, report());
    let step = snapshot(&subject, None, Some(&report), at(301)).next_step();
    let Step::Revise(closed) = step else { panic!("{step:?}") };
    assert_eq!(closed.phase(), Phase::Superseded);
}

#[test]
fn what_karpenter_says_is_looked_into_at_once_and_before_the_schedule() {
    let subject = subject();
    let borne = conditions::desired(&subject, None, None, false, at(10));
    let subject = bear(subject, &borne);
    let signal = said(9, "Failed to register");
    let mut told = snapshot(&subject, None, None, at(10));
    assert!(matches!(told.next_step(), Step::Wait(_)), "the first look is due later");
    told.signal = Some(signal.clone());
    assert!(matches!(told.next_step(), Step::Look(Priority::Event)));
}

#[test]
fn what_is_about_to_be_gone_is_read_before_anything_is_written() {
    let (bare, signal) = (subject(), said(9, "Failed"));
    let mut told = snapshot(&bare, None, None, at(10));
    assert!(matches!(told.next_step(), Step::Apply(_)), "there is time");
    told.signal = Some(signal.clone());
    assert!(matches!(told.next_step(), Step::Look(Priority::Event)));
    told.looks.signalled = 1;
    assert!(matches!(told.next_step(), Step::Apply(_)), "it has been read");
    let going = Subject { deleting: Some(at(8)), ..subject() };
    let going = snapshot(&going, None, None, at(10));
    assert!(matches!(going.next_step(), Step::Look(Priority::Deletion)));
}

#[test]
fn who_is_deleted_is_looked_at_once_more_whatever_was_seen_before() {
    let going = Subject { deleting: Some(at(95)), ..subject() };
    let told = conditions::desired(&going, None, None, false, at(10));
    let going = bear(going, &told);
    let mut seen = Observation { at: at(90), vm: Vm::Present, ..Observation::default() };
    let step = |seen: &Observation, deleting: usize| {
        let mut snapshot = snapshot(&going, Some(seen), None, at(96));
        snapshot.looks.deleting = deleting;
        format!("{:?}", snapshot.next_step())
    };
    assert_eq!(step(&seen, 0), "Look(Deletion)");
    assert_eq!(step(&seen, 1), "Deepen(Deletion)");
    seen.is_full = true;
    assert_eq!(step(&seen, 1), "Rest", "and then nothing says that it failed");
    seen.vm = Vm::Gone;
    assert_eq!(step(&seen, 0), "Rest", "there is nothing left to look at");
}

#[test]
fn a_vm_that_still_shows_its_failure_but_not_the_words_has_lost_its_evidence() {
    let subject = subject();
    let signal = said(89, "Failed to register: ");
    let seen = Observation {
        cse: Cse::Failed { at: None },
        evidence: Evidence::default().into(),
        ..failed_cse()
    };
    let mut snapshot = snapshot(&subject, Some(&seen), None, at(90));
    snapshot.signal = Some(signal.clone());
    let step = snapshot.next_step();
    let Step::Publish(report) = step else { panic!("{step:?}") };
    assert_eq!((report.phase(), report.cause()), (Phase::Lost.into(), Some("Unknown")));
}

#[test]
fn a_signal_that_came_after_the_deletion_is_its_consequence() {
    let subject = Subject { deleting: Some(at(20)), ..subject() };
    let borne = conditions::desired(&subject, None, None, false, at(10));
    let subject = bear(subject, &borne);
    let gone = Observation { at: at(30), vm: Vm::Gone, ..Observation::default() };
    let signal = said(25, "preempted");
    let mut told = snapshot(&subject, Some(&gone), None, at(31));
    told.signal = Some(signal.clone());
    assert!(matches!(told.next_step(), Step::Rest));
    let signal = said(19, "failed");
    told.signal = Some(signal.clone());
    let Step::Publish(report) = told.next_step() else { panic!("it had failed before") };
    assert_eq!(report.phase(), Phase::Lost);
}

#[test]
fn a_failure_without_proof_is_asked_about_once_more_before_it_is_told() {
    let mut seen = failed_cse();
    seen.evidence.change().pieces =
        vec![Piece::seen(Source::Extension, "extension cse", "exit status=1")];
    let subject = subject();
    let step = snapshot(&subject, Some(&seen), None, at(90)).next_step();
    assert!(matches!(step, Step::Deepen(Priority::Event)), "{step:?}");
    seen.is_full = true;
    let step = snapshot(&subject, Some(&seen), None, at(91)).next_step();
    assert!(matches!(step, Step::Publish(_)), "{step:?}");
}

#[test]
fn a_verdict_changes_only_for_a_better_one() {
    let (subject, report) = (subject(), report());
    let subject = bear(subject, &[]);
    let mut other = failed_cse();
    let text = "no space left on device";
    other.evidence.change().pieces = vec![Piece::seen(Source::Extension, "extension cse", text)];
    let step = snapshot(&subject, Some(&other), Some(&report), at(100)).next_step();
    let Step::Apply(conditions) = step else { panic!("{step:?}") };
    let verdict = find(&conditions, BOOTSTRAP_SUCCEEDED).unwrap();
    assert_eq!(verdict.reason, "BinaryMissing", "the first proof stands");
}
#[derive(Debug, Clone)]
enum Happening {
    KarpenterReads,
    KarpenterWrites,
    WePass,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        Just(Happening::KarpenterReads),
        Just(Happening::KarpenterWrites),
        Just(Happening::WePass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Karpenter writes the whole list from an earlier copy; bringup writes its entries into the present
    /// list. In the end bringup's conditions are stored, and at no time did they contain another value.
    #[test]
    fn test_20_no_condition_flaps_whatever_karpenter_writes(
        happenings in proptest::collection::vec(happening(), 1..40)
    ) {
        let report = report();
        let seen = failed_cse();
        let launched = condition("Launched", Status::True, "Launched", "", at(2));
        let mut server = vec![launched.clone()];
        let mut copy = server.clone();
        let mut said: Vec<Condition> = Vec::new();
        for (step, happening) in happenings.iter().chain(&[Happening::WePass]).enumerate() {
            let now = at(100 + i64::try_from(step).unwrap());
            match happening {
                Happening::KarpenterReads => copy.clone_from(&server),
                Happening::KarpenterWrites => server.clone_from(&copy),
                Happening::WePass => {
                    let ours: Vec<Condition> =
                        server.iter().filter(|held| held.type_ != "Launched").cloned().collect();
                    let subject = bear(subject(), &ours);
                    let pass = snapshot(&subject, Some(&seen), Some(&report), now);
                    if let Step::Apply(wanted) = pass.next_step() {
                        for wanted in wanted {
                            server.retain(|held| held.type_ != wanted.type_);
                            said.push(wanted.clone());
                            server.push(wanted);
                        }
                    }
                    prop_assert!(server.contains(&launched));
                }
            }
        }
        prop_assert!(find(&server, BOOTSTRAP_SUCCEEDED).is_some());
        said.sort_by(|one, other| one.type_.cmp(&other.type_));
        said.dedup();
        prop_assert_eq!(said.len(), 2, "each of ours has one text and one moment");
    }
}

#[test]
fn between_two_looks_nothing_is_written_again() {
    let subject = subject();
    let borne = conditions::desired(&subject, None, None, false, at(10));
    let subject = bear(subject, &borne);
    for second in [11, 30, 44] {
        let step = snapshot(&subject, None, None, at(second)).next_step();
        assert!(matches!(step, Step::Wait(_)), "{step:?}");
    }
    let due = schedule::next_look(&subject, 0, None).unwrap();
    assert!(due.duration_since(at(2)) >= SignedDuration::from_secs(45));
}
