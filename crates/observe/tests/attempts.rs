//! A claim without a pool: Azure refuses its VM, and Karpenter tries again.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use bringup_objects::condition::{
    BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition, Status, condition, find,
};
use bringup_objects::report::{BootstrapReport, Phase};
use bringup_observe::observation::{Observation, Vm};
use bringup_observe::outputs::conditions;
use bringup_observe::outputs::report::announced;
use bringup_observe::plan::Step;
use bringup_observe::subject::{Launch, Place, Subject};
use kube::ResourceExt as _;

use crate::claim::{at, bear, failed_cse, report, snapshot, subject};

/// A claim whose VM Azure refused, with the script's output in the message.
fn refused() -> Subject {
    let message = "creating instance failed, VM has reported a failure when processing extension 'cse-agent-karpenter' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript'). Error message: 'failed to execute command: command terminated with exit status=1 [stdout] { \"ExitCode\": \"211\", \"Output\": \"timeout: failed to run command 'oras': No such file or directory\", \"Error\": \"\" }'";
    let launch = Launch::Refused { at: at(30), message: message.to_owned() };
    Subject { launch, place: Place::NotSaid, ..subject() }
}

/// The report of the refusal, and the claim once its conditions are written and Azure has accepted the next
/// attempt.
fn tried_again() -> (Subject, BootstrapReport) {
    let refused = refused();
    let step = snapshot(&refused, None, None, at(31)).next_step();
    let Step::Publish(first) = step else { panic!("{step:?}") };
    let step = snapshot(&refused, None, Some(&first), at(32)).next_step();
    let Step::Apply(conditions) = step else { panic!("{step:?}") };
    assert_eq!(says(&conditions, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert_eq!(says(&conditions, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    let accepted = Subject { launch: Launch::Accepted(at(60)), ..subject() };
    (bear(accepted, &conditions), announced(&first, at(33)))
}

fn says<'a>(conditions: &'a [Condition], kind: &str) -> Option<(&'a str, &'a str)> {
    find(conditions, kind).map(|held| (held.status.as_str(), held.reason.as_str()))
}

#[test]
fn once_azure_has_accepted_it_the_claim_is_diagnosed_anew_and_its_vm_looked_at() {
    let (claim, first) = tried_again();
    let step = snapshot(&claim, None, Some(&first), at(61)).next_step();
    let Step::Apply(wanted) = step else { panic!("{step:?}") };
    assert_eq!(says(&wanted, BOOTSTRAP_SUCCEEDED), Some(("Unknown", "Diagnosing")));
    assert_eq!(says(&wanted, CSE_PROVISIONED), None, "no script has said anything of this VM");
    let claim = bear(claim, &wanted);
    let step = snapshot(&claim, None, Some(&first), at(62)).next_step();
    assert!(matches!(step, Step::Wait(_)), "{step:?}");
    let step = snapshot(&claim, None, Some(&first), at(120)).next_step();
    assert!(matches!(step, Step::Look(_)), "{step:?}");
}

#[test]
fn a_second_failure_has_a_report_of_its_own() {
    let (claim, first) = tried_again();
    assert_eq!((first.phase(), first.spec.attempt), (Phase::Final.into(), 1));
    let mut seen = Observation { at: at(150), ..failed_cse() };
    seen.facts.vm_id = Some("second".to_owned());
    let step = snapshot(&claim, Some(&seen), Some(&first), at(150)).next_step();
    let Step::Publish(second) = step else { panic!("{step:?}") };
    assert_eq!(second.spec.attempt, 2);
    assert_ne!(second.name_any(), first.name_any());
    let step = snapshot(&claim, Some(&seen), Some(&second), at(151)).next_step();
    let Step::Apply(wanted) = step else { panic!("{step:?}") };
    let verdict = find(&wanted, BOOTSTRAP_SUCCEEDED).unwrap();
    assert_eq!((verdict.status.as_str(), verdict.last_transition_time.0), ("False", at(150)));
    assert!(verdict.message.contains(&second.name_any()), "{}", verdict.message);
}

#[test]
fn a_node_that_comes_at_the_second_attempt_closes_the_first_report() {
    let (claim, first) = tried_again();
    let claim = Subject { registered: Some(at(200)), ..claim };
    let step = snapshot(&claim, None, Some(&first), at(201)).next_step();
    let Step::Revise(closed) = step else { panic!("{step:?}") };
    assert_eq!(closed.phase(), Phase::Superseded);
    let step = snapshot(&claim, None, Some(&closed), at(202)).next_step();
    let Step::Apply(wanted) = step else { panic!("{step:?}") };
    assert_eq!(says(&wanted, BOOTSTRAP_SUCCEEDED), Some(("True", "NodeRegistered")));
    assert_eq!(says(&wanted, CSE_PROVISIONED), None, "what the first one's script said is over");
    let claim = bear(claim, &wanted);
    let step = snapshot(&claim, None, Some(&closed), at(203)).next_step();
    assert!(matches!(step, Step::Announce), "{step:?}");
}

#[test]
fn a_refusal_that_is_not_told_yet_is_told_although_another_attempt_was_accepted() {
    let (claim, mut first) = tried_again();
    let told = conditions::desired(&claim, None, None, false, at(61));
    let claim = bear(claim, &told);
    first.status.as_mut().unwrap().conditions.retain(|held| held.type_ != "Announced");
    let step = snapshot(&claim, None, Some(&first), at(62)).next_step();
    assert!(matches!(step, Step::Announce), "{step:?}");
}

#[test]
fn the_report_of_a_vm_that_was_there_stands() {
    let (claim, seen) = (subject(), failed_cse());
    let (report, vm) = (announced(&report(), at(91)), Observation { vm: Vm::Gone, ..seen });
    let told = conditions::desired(&claim, Some(&vm), Some(&report), false, at(92));
    let claim = bear(claim, &told);
    let step = snapshot(&claim, Some(&vm), Some(&report), at(92)).next_step();
    assert!(matches!(step, Step::Rest), "{step:?}");
    let failed = condition(CSE_PROVISIONED, Status::False, "CSEFailed", "", at(90));
    let claim = bear(claim, &[failed]);
    let kept = conditions::desired(&claim, None, None, false, at(93));
    assert_eq!(says(&kept, CSE_PROVISIONED), Some(("False", "CSEFailed")));
}
