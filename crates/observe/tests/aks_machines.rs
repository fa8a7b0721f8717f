//! How the state of an AKS machine affects the observation of its VM.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use bringup_azure::model::{Machine, VirtualMachine};
use bringup_objects::report::{BootstrapReport, Phase};
use bringup_observe::observation::{Observation, Vm};
use bringup_observe::plan::Step;
use bringup_observe::subject::Subject;
use serde_json::{Value, json};

use crate::claim::{at, snapshot, subject};

const QUOTA: &str = "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota.";

/// A claim with an AKS machine.
fn claim() -> Subject {
    let machine = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c/agentPools/p/machines/m";
    Subject { machine: Some(machine.parse().unwrap()), ..subject() }
}

fn machine(state: &str, error: &Value) -> Machine {
    Machine::of(json!({
        "name": "m",
        "properties": { "provisioningState": state, "status": { "provisioningError": error } },
    }))
}

fn quota() -> Machine {
    machine("Failed", &json!({ "code": "QuotaExceeded", "message": QUOTA }))
}

fn vm(state: &str) -> VirtualMachine {
    VirtualMachine::of(json!({ "name": "aks-a", "properties": { "provisioningState": state } }))
}

fn published(seen: &Observation) -> BootstrapReport {
    let claim = claim();
    match snapshot(&claim, Some(seen), None, seen.at).next_step() {
        Step::Publish(report) => *report,
        step => panic!("{step:?}"),
    }
}

#[test]
fn a_machine_that_aks_could_not_make_has_aks_cause_and_not_a_lost_vm() {
    let seen = Observation::default().with_machine(&quota(), at(200)).with_no_vm(at(201));
    assert_eq!(seen.vm, Vm::Gone);
    let report = published(&seen);
    assert_eq!((report.cause(), report.phase()), (Some("QuotaExceeded"), Phase::Final.into()));
}

#[test]
fn a_machine_that_failed_is_judged_at_once_whatever_its_vm_shows() {
    for state in ["Succeeded", "Updating", "Deleting"] {
        let seen = Observation::default().with_machine(&quota(), at(100));
        let report = published(&seen.with_vm(&vm(state), at(101)));
        assert_eq!(report.cause(), Some("QuotaExceeded"), "the VM reads {state}");
        assert_eq!(report.phase(), Phase::Final);
    }
}

#[test]
fn a_machine_that_failed_without_a_word_and_without_a_vm_has_lost_its_evidence() {
    let wordless = machine("Failed", &Value::Null);
    let seen = Observation::default().with_machine(&wordless, at(30)).with_no_vm(at(31));
    let report = published(&seen);
    assert_eq!((report.cause(), report.phase()), (Some("Unknown"), Phase::Lost.into()));
}

#[test]
fn a_machine_that_aks_tries_again_has_not_failed() {
    let seen = Observation::default().with_machine(&quota(), at(30)).with_no_vm(at(31));
    let again = seen.with_machine(&machine("Updating", &Value::Null), at(40));
    let claim = claim();
    let step = snapshot(&claim, Some(&again), None, at(40)).next_step();
    assert!(matches!(step, Step::Apply(_)), "{step:?}");
}
