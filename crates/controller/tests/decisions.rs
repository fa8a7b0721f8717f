//! What is decided, without a cluster and without Azure: snapshots in, steps out.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::collections::HashMap;
use std::sync::LazyLock;

use bringup_azure::Priority;
use bringup_controller::faces::conditions;
use bringup_controller::judge::{Joined, Signal};
use bringup_controller::listening::Ear;
use bringup_controller::observation::{Agent, Cse, Mode, Observation, Vm};
use bringup_controller::plan::{Looks, Snapshot, Step};
use bringup_controller::schedule;
use bringup_controller::shape::Shape;
use bringup_controller::subject::{Kind, Labels, Launch, Parent, Place, Subject};
use bringup_diagnosis::{Evidence, Piece, Source};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, Status, condition, find};
use bringup_objects::report::{BootstrapReport, Phase};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

const VM: &str =
    "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/aks-a";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn subject() -> Subject {
    Subject {
        kind: Kind::NodeClaim,
        shape: Shape::of_claims(),
        namespace: None,
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        resource_version: "1".to_owned(),
        generation: Some(1),
        created: at(0),
        deleting: None,
        parent: Some(Parent {
            group: "karpenter.sh".to_owned(),
            kind: "NodePool".to_owned(),
            namespace: None,
            name: "default".to_owned(),
        }),
        launch: Launch::Accepted(at(2)),
        registered: None,
        place: Place::Known(VM.parse().unwrap()),
        machine: None,
        node_name: None,
        image: None,
        labels: Labels::default(),
        conditions: Vec::new(),
        counted_from: Some(at(0)),
        allowed: schedule::FORCED,
        has_room: true,
        held: None,
        trouble: None,
        api_server: None,
        told_of: None,
        mirror: None,
    }
}

/// Nobody else has failed.
static NOBODY: LazyLock<HashMap<String, usize>> = LazyLock::new(HashMap::new);

fn snapshot<'a>(
    subject: &'a Subject,
    observation: Option<&'a Observation>,
    report: Option<&'a BootstrapReport>,
    now: Timestamp,
) -> Snapshot<'a> {
    Snapshot {
        now,
        subject,
        departed: false,
        node: None,
        report,
        observation,
        looks: Looks::default(),
        signal: None,
        ear: Ear::default(),
        namespace: "bringup-system",
        was_pending: true,
        warned: false,
        alike: &NOBODY,
    }
}

/// What Karpenter said.
fn said(seconds: i64, text: &str) -> Signal {
    Signal { stamped: at(seconds), heard: at(seconds), text: text.to_owned() }
}

fn failed_cse() -> Observation {
    let text = "timeout: failed to run command 'oras': No such file or directory";
    Observation {
        at: at(90),
        vm: Vm::Failed,
        agent: Agent::Ready,
        cse: Cse::Failed { at: Some(at(88)) },
        evidence: Evidence {
            pieces: vec![Piece::seen(Source::Extension, "extension cse", text)],
            ..Evidence::default()
        },
        ..Observation::default()
    }
}

fn report() -> BootstrapReport {
    let subject = subject();
    let seen = failed_cse();
    match snapshot(&subject, Some(&seen), None, at(90)).next_step() {
        Step::Publish(report) => *report,
        step => panic!("{step:?}"),
    }
}

/// The conditions as the API server would hold them, and what Karpenter knows of them.
fn bear(mut subject: Subject, conditions: &[Condition]) -> Subject {
    subject.conditions = conditions.to_vec();
    subject
}

#[test]
fn a_claim_whose_vm_is_not_accepted_is_left_alone() {
    let subject = Subject { launch: Launch::NotYet, ..subject() };
    assert!(matches!(snapshot(&subject, None, None, at(5)).next_step(), Step::Rest));
}

#[test]
fn what_its_provider_tells_is_looked_at_once() {
    let told = Subject { told_of: Some(at(9)), ..subject() };
    let wanted = conditions::desired(&told, None, None, false, at(10));
    let told = bear(told, &wanted);
    let step = |looked: Option<Timestamp>| {
        let looks = Looks { told_of: looked, ..Looks::default() };
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
    told.signal = Some(&signal);
    assert!(matches!(told.next_step(), Step::Look(Priority::Event)));
}

#[test]
fn what_is_about_to_be_gone_is_read_before_anything_is_written() {
    let (bare, signal) = (subject(), said(9, "Failed"));
    let mut told = snapshot(&bare, None, None, at(10));
    assert!(matches!(told.next_step(), Step::Apply(_)), "there is time");
    told.signal = Some(&signal);
    assert!(matches!(told.next_step(), Step::Look(Priority::Event)));
    told.looks.signalled = 1;
    assert!(matches!(told.next_step(), Step::Apply(_)), "it has been read");
    let going = Subject { deleting: Some(at(8)), ..subject() };
    let going = snapshot(&going, None, None, at(10));
    assert!(matches!(going.next_step(), Step::Look(Priority::Deletion)));
}

#[test]
fn a_vm_that_still_shows_its_failure_but_not_the_words_has_lost_its_evidence() {
    let subject = subject();
    let signal = said(89, "Failed to register: ");
    let seen = Observation {
        cse: Cse::Failed { at: None },
        evidence: Evidence::default(),
        ..failed_cse()
    };
    let mut snapshot = snapshot(&subject, Some(&seen), None, at(90));
    snapshot.signal = Some(&signal);
    let step = snapshot.next_step();
    let Step::Publish(report) = step else { panic!("{step:?}") };
    assert_eq!((report.phase(), report.cause()), (Phase::Lost, Some("Unknown")));
}

#[test]
fn a_signal_that_came_after_the_deletion_is_its_consequence() {
    let subject = Subject { deleting: Some(at(20)), ..subject() };
    let borne = conditions::desired(&subject, None, None, false, at(10));
    let subject = bear(subject, &borne);
    let gone = Observation { at: at(30), vm: Vm::Gone, ..Observation::default() };
    let signal = said(25, "preempted");
    let mut told = snapshot(&subject, Some(&gone), None, at(31));
    told.signal = Some(&signal);
    assert!(matches!(told.next_step(), Step::Rest));
    let signal = said(19, "failed");
    told.signal = Some(&signal);
    let Step::Publish(report) = told.next_step() else { panic!("it had failed before") };
    assert_eq!(report.phase(), Phase::Lost);
}

#[test]
fn a_failure_without_proof_is_asked_about_once_more_before_it_is_told() {
    let mut seen = failed_cse();
    seen.evidence.pieces = vec![Piece::seen(Source::Extension, "extension cse", "exit status=1")];
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
    other.evidence.pieces = vec![Piece::seen(Source::Extension, "extension cse", text)];
    let step = snapshot(&subject, Some(&other), Some(&report), at(100)).next_step();
    let Step::Apply(conditions) = step else { panic!("{step:?}") };
    let verdict = find(&conditions, BOOTSTRAP_SUCCEEDED).unwrap();
    assert_eq!(verdict.reason, "BinaryMissing", "the first proof stands");
}

#[test]
fn a_healthy_node_is_read_at_most_six_times() {
    let subject = subject();
    // A node whose script runs for two minutes and a half.
    let joins = at(150);
    let (mut looks, mut last): (usize, Option<Observation>) = (0, None);
    while let Some(due) = schedule::next_look(&subject, looks, last.as_ref()) {
        if due >= joins {
            break;
        }
        looks += 1;
        let cse = if looks == 1 { Cse::Absent } else { Cse::Running { since: Some(at(60)) } };
        last = Some(Observation { at: due, agent: Agent::Ready, cse, ..Observation::default() });
    }
    let mut after = 0;
    while schedule::next_look_after_join(joins, after, last.as_ref()).is_some() {
        after += 1;
        let cse = Cse::Succeeded { at: Some(joins) };
        last = Some(Observation { at: joins, agent: Agent::Ready, cse, ..Observation::default() });
    }
    assert!(looks + after <= 6, "{looks} before, {after} after");
}

#[test]
fn a_vm_that_is_still_being_created_is_looked_at_again_soon_and_one_without_extension_is_not() {
    let subject = subject();
    let creating = Observation { at: at(100), vm: Vm::Present, ..Observation::default() };
    let due = schedule::next_look(&subject, 3, Some(&creating)).unwrap();
    assert!(due <= at(136), "its extension may come any moment: {due}");
    let scriptless = Observation { mode: Mode::Scriptless, ..creating };
    assert_eq!(schedule::next_look(&subject, 3, Some(&scriptless)), Some(at(242)));
}

#[test]
fn the_console_of_a_vm_that_joins_by_itself_is_read_at_each_look_and_decides() {
    let seen = Observation {
        at: at(62),
        vm: Vm::Present,
        agent: Agent::Ready,
        mode: Mode::Scriptless,
        ..Observation::default()
    };
    let step = |subject: &Subject, seen: &Observation| {
        let told = conditions::desired(subject, Some(seen), None, false, seen.at);
        let subject = bear(subject.clone(), &told);
        snapshot(&subject, Some(seen), None, seen.at).next_step()
    };
    let aks = subject();
    assert!(matches!(step(&aks, &seen), Step::Wait(_)), "an extension may come yet");
    let place = Place::Known(VM.replace("azure://", "azure-flex://").parse().unwrap());
    let flex = Subject { place, ..subject() };
    assert_eq!(format!("{:?}", step(&flex, &seen)), "Deepen(Forced)");
    let summary = "\nBRINGUP-NODE/1 {\"v\":1,\"kind\":\"join\",\"exit\":192,\"name\":\"JOIN_BASE_OS_FAILED\",\"cause\":\"KernelMismatch\",\"conf\":\"high\",\"step\":\"base-os\",\"ev\":[\"Key was rejected by service\"],\"end\":1}\n";
    let read = seen.clone().with_console(summary, false);
    assert_eq!(read.cse, Cse::Failed { at: Some(at(62)) });
    let Step::Publish(report) = step(&flex, &read) else { panic!("no report") };
    assert_eq!(report.cause(), Some("KernelMismatch"));
    let joined = summary.replace("192", "0").replace("JOIN_BASE_OS_FAILED", "JOINED");
    assert_eq!(seen.with_console(&joined, false).cse, Cse::Succeeded { at: Some(at(62)) });
}

#[test]
fn everything_is_asked_for_before_karpenters_limit() {
    let subject = subject();
    let mut last: Option<Observation> = None;
    let mut looks = 0;
    while let Some(due) = schedule::next_look(&subject, looks, last.as_ref()) {
        looks += 1;
        assert!(due <= at(0) + schedule::FORCED, "look {looks} at {due}");
        last = Some(Observation { at: due, agent: Agent::Ready, ..Observation::default() });
    }
    assert_eq!(last.map(|last| last.at), Some(at(0) + schedule::FORCED));
}

/// What can happen to a claim between two of our passes.
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

    /// Karpenter writes the whole list from a copy it made earlier; we write our entries into
    /// whatever is there. In the end ours are there, and at no time did they say anything else.
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
