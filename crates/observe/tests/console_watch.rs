//! When a console is read, and the steps that follow.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::sync::Arc;

use bringup_azure::Priority;
use bringup_observe::console_watch::{ConsoleWatch, Finding};
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::observation::{Cse, Observation, Vm};
use bringup_observe::plan::Step;
use bringup_observe::profile::Kind;
use bringup_observe::schedule;
use bringup_observe::snapshot::Snapshot;
use bringup_observe::subject::Subject;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// The time this many seconds after the VM existed.
fn at(seconds: i64) -> Timestamp {
    "2026-01-01T00:02:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// A Machine whose VM exists and that has no room for conditions, so that only reads remain as steps.
fn machine() -> Subject {
    let vm =
        "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/a";
    let ready = json!({ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:02:00Z" });
    let machine = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:02:00Z" },
        "spec": { "clusterName": "prod", "providerID": vm, "infrastructureRef": { "kind": "AzureMachine", "name": "a" } },
        "status": { "conditions": [ready] },
    });
    let seen = MachineIndex::new(DEADLINE).machine_seen(serde_json::from_value(machine).unwrap());
    Subject { has_room: false, ..seen.unwrap() }
}

fn running(seconds: i64) -> Observation {
    let cse = Cse::Running { since: None };
    Observation { at: at(seconds), vm: Vm::Present, cse, ..Observation::default() }
}

fn read(seconds: i64, found: Finding, watched: usize) -> ConsoleWatch {
    ConsoleWatch { last: Some((at(seconds), found)), watched }
}

fn step(seen: Option<&Observation>, console: ConsoleWatch, now: Timestamp) -> Step {
    let snapshot = Snapshot {
        observation: seen.cloned().map(Arc::new),
        console,
        was_pending: true,
        warned: true,
        ..Snapshot::of(Arc::new(machine()), now)
    };
    snapshot.next_step()
}

#[test]
fn a_console_is_listened_to_every_other_second_from_the_start() {
    let subject = machine();
    assert_eq!(ConsoleWatch::default().next(&subject, None), Some(at(0)));
    assert_eq!(read(7, Finding::NoFailure, 1).next(&subject, None), Some(at(9)));
    assert!(matches!(step(None, ConsoleWatch::default(), at(0)), Step::WatchConsole));
    assert!(
        matches!(step(None, read(7, Finding::NoFailure, 1), at(8)), Step::Wait(due) if due == at(9))
    );
}

#[test]
fn many_consoles_are_listened_to_less_often_and_too_many_not_at_all() {
    let subject = machine();
    assert_eq!(read(7, Finding::NoFailure, 40).next(&subject, None), Some(at(9)));
    assert_eq!(read(7, Finding::NoFailure, 200).next(&subject, None), Some(at(17)));
    let one_more = ConsoleWatch { last: None, watched: 200 };
    assert_eq!(one_more.next(&subject, None), None);
    assert!(matches!(step(None, one_more, at(0)), Step::Wait(_)), "its schedule goes on");
}

#[test]
fn nobody_listens_where_there_is_nothing_to_hear() {
    let subject = machine();
    let over = |cse| Observation { cse, ..running(20) };
    let dark = Observation { console: Some(false), ..running(20) };
    for seen in [over(Cse::Failed { at: None }), over(Cse::Succeeded { at: None }), dark] {
        assert_eq!(read(7, Finding::NoFailure, 1).next(&subject, Some(&seen)), None, "{seen:?}");
    }
    let claim = Subject { profile: Kind::NodeClaim.profile(), ..machine() };
    assert_eq!(ConsoleWatch::default().next(&claim, None), None);
    assert_eq!(
        read(7, Finding::Unreadable, 1).next(&subject, None),
        Some(at(67)),
        "tried again later"
    );
}

#[test]
fn who_hears_of_a_failure_looks_at_once_and_then_asks_everybody_else() {
    let alarmed = read(20, Finding::Failure, 1);
    assert!(matches!(step(None, alarmed, at(20)), Step::Look(Priority::Event)));
    assert!(matches!(step(Some(&running(16)), alarmed, at(20)), Step::Look(Priority::Event)));
    let followed = read(20, Finding::Inspected, 1);
    assert!(matches!(step(Some(&running(20)), followed, at(20)), Step::Deepen(Priority::Event)));
    let asked = Observation { is_full: true, ..running(20) };
    assert!(matches!(step(Some(&asked), followed, at(20)), Step::Wait(_)));
}

#[test]
fn a_machine_leaves_half_of_what_azure_allows_of_its_vm_to_others() {
    let subject = machine();
    let mut seen: Option<Observation> = None;
    let mut looks = Vec::new();
    while let Some(due) = schedule::next_look(&subject, looks.len(), seen.as_ref())
        && due < at(300)
    {
        looks.push(due);
        seen = Some(Observation { at: due, ..running(0) });
    }
    let most = looks.iter().map(|from| {
        let until = *from + SignedDuration::from_mins(1);
        looks.iter().filter(|look| (from..&until).contains(look)).count()
    });
    // The address of the console is requested too, every four minutes.
    assert!(most.max().unwrap() < 6 + 1, "{looks:?}");
    assert!(looks.len() >= 18, "{looks:?}");
}
