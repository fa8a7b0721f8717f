//! When a Machine's VM is expected, when it counts as existing, and when the time to its deadline starts.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use std::sync::Arc;

use bringup_objects::cluster_api::AzureCluster;
use bringup_observe::judge::Judgement;
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::observation::{Agent, Facts, Observation, Vm};
use bringup_observe::snapshot::Snapshot;
use bringup_observe::subject::AGENT_LIMIT;
use bringup_observe::subject::{Launch, Subject};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const VM: &str =
    "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/a";

/// The time this many minutes after the VM was requested.
fn at(minutes: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn since(kind: &str, minutes: i64) -> Value {
    let at = at(minutes).to_string();
    json!({ "type": kind, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at })
}

/// A Machine whose AzureCluster is known, with its infrastructure machine.
fn machine(data: Option<&str>, id: Option<&str>, conditions: &[Value]) -> Subject {
    let machines = MachineIndex::new(DEADLINE);
    let cluster = json!({
        "metadata": { "name": "prod", "namespace": "n", "labels": { "cluster.x-k8s.io/cluster-name": "prod" } },
        "spec": { "subscriptionID": "S", "resourceGroup": "RG" },
    });
    machines.shared_seen(serde_json::from_value::<AzureCluster>(cluster).unwrap());
    let behind = json!({ "metadata": { "name": "a", "namespace": "n", "creationTimestamp": at(0).to_string() } });
    machines.infra_machine_seen("AzureMachine", serde_json::from_value(behind).unwrap());
    let machine = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": at(0).to_string() },
        "spec": { "clusterName": "prod", "providerID": id, "bootstrap": { "dataSecretName": data },
                  "infrastructureRef": { "kind": "AzureMachine", "name": "a" } },
        "status": { "conditions": conditions },
    });
    machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap()
}

/// A full observation with the VM in this state.
fn seen(minutes: i64, vm: Vm, made: Option<i64>) -> Observation {
    let facts = Facts { made: made.map(at), ..Facts::default() };
    let (at, agent) = (at(minutes), Agent::Silent);
    Observation { at, vm, agent, facts, is_full: true, ..Observation::default() }
}

fn judged(subject: &Subject, seen: &Observation) -> Judgement {
    let observation = Some(Arc::new(seen.clone()));
    Snapshot { observation, ..Snapshot::of(Arc::new(subject.clone()), seen.at) }.judge()
}

#[test]
fn a_vm_is_expected_once_there_is_something_to_make_it_from() {
    let data = Some("worker-data");
    let (ready, old_ready) = (since("BootstrapConfigReady", 7), since("BootstrapReady", 7));
    let made = since("InfrastructureReady", 9);
    for (data, id, conditions, launch) in [
        (None, None, &[][..], Launch::NotYet),
        (Some(""), None, &[], Launch::NotYet),
        (data, None, &[], Launch::Expected(at(0))),
        (data, None, &[ready], Launch::Expected(at(7))),
        (data, None, &[old_ready], Launch::Expected(at(7))),
        (data, Some(VM), &[], Launch::Accepted(at(0))),
        (data, Some(VM), &[made], Launch::Accepted(at(9))),
    ] {
        let found = machine(data, id, conditions).launch;
        assert_eq!(found, launch, "{data:?}, {id:?}, {conditions:?}");
    }
}

/// An instance of a scale set: only its infrastructure machine has the VM's ID until the Node exists.
fn instance(id: Option<&str>) -> Subject {
    let kind = "AzureMachinePoolMachine";
    let machines = MachineIndex::new(DEADLINE);
    let behind = json!({
        "metadata": { "name": "a", "namespace": "n", "creationTimestamp": at(1).to_string() },
        "spec": { "providerID": id },
    });
    machines.infra_machine_seen(kind, serde_json::from_value(behind).unwrap());
    let machine = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": at(2).to_string() },
        "spec": { "clusterName": "prod", "bootstrap": { "dataSecretName": "" },
                  "infrastructureRef": { "kind": kind, "name": "a" } },
    });
    machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap()
}

#[test]
fn an_instance_is_there_once_what_is_behind_it_says_where() {
    assert_eq!(instance(None).launch, Launch::NotYet);
    let made = instance(Some(VM));
    assert_eq!(made.launch, Launch::Accepted(at(1)));
    let seen = seen(12, Vm::Present, Some(1));
    assert_eq!(made.deadline(Some(&seen)), at(1) + DEADLINE);
}

#[test]
fn its_vm_was_there_when_that_was_first_said_however_often_it_is_taken_back() {
    let machines = MachineIndex::new(DEADLINE);
    let seen = |uid: &str, status: &str, minutes: i64| {
        let mut ready = since("InfrastructureReady", minutes);
        ready["status"] = json!(status);
        let machine = json!({
            "metadata": { "name": "a", "namespace": "n", "uid": uid, "creationTimestamp": at(0).to_string() },
            "spec": { "clusterName": "prod", "providerID": VM, "infrastructureRef": { "kind": "AzureMachine", "name": "a" } },
            "status": { "conditions": [ready], "initialization": { "infrastructureProvisioned": true } },
        });
        machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap().counted_from
    };
    assert_eq!(seen("u", "True", 6), Some(at(6)));
    assert_eq!(seen("u", "False", 11), Some(at(6)));
    assert_eq!(seen("u", "True", 12), Some(at(6)));
    assert_eq!(seen("v", "True", 20), Some(at(20)), "another one of the same name");
}

#[test]
fn what_is_behind_a_machine_may_go_before_it() {
    let machines = MachineIndex::new(DEADLINE);
    let behind =
        json!({ "metadata": { "name": "a", "namespace": "n" }, "spec": { "providerID": VM } });
    let behind = || serde_json::from_value(behind.clone()).unwrap();
    let machine = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u" },
        "spec": { "clusterName": "prod", "providerID": VM, "infrastructureRef": { "kind": "AzureMachine", "name": "a" } },
    });
    machines.machine_seen(serde_json::from_value(machine).unwrap());
    assert!(machines.infra_machine_seen("AzureMachine", behind()).unwrap().mirror.is_some());
    let left = machines.infra_machine_gone("AzureMachine", &behind()).unwrap();
    assert!(left.mirror.is_none(), "there is nothing to write to any more");
}

#[test]
fn a_vm_that_nobody_says_is_there_is_not_missed() {
    let expected = machine(Some("worker-data"), None, &[]);
    for minutes in [3, 11, 120] {
        for vm in [Vm::Gone, Vm::NotSeen] {
            let judgement = judged(&expected, &seen(minutes, vm.clone(), None));
            assert!(matches!(judgement, Judgement::Underway), "{vm:?}: {judgement:?}");
        }
    }
    let withdrawn = Subject { deleting: Some(at(30)), ..expected };
    let judgement = judged(&withdrawn, &seen(30, Vm::Gone, None));
    assert!(matches!(judgement, Judgement::Withdrawn), "{judgement:?}");
}

#[test]
fn a_vm_that_was_said_to_be_there_and_is_not_is_lost() {
    let made = machine(None, Some(VM), &[since("InfrastructureReady", 9)]);
    let judgement = judged(&made, &seen(12, Vm::Gone, None));
    assert!(matches!(judgement, Judgement::Failed(failure) if failure.lost));
}

#[test]
fn its_time_counts_from_when_it_is_said_to_be_there_or_else_from_when_azure_made_it() {
    let said = machine(Some("data"), Some(VM), &[since("InfrastructureReady", 9)]);
    let unsaid = machine(Some("data"), Some(VM), &[]);
    let born = seen(25, Vm::Present, Some(20));
    assert_eq!(said.deadline(Some(&born)), at(9) + DEADLINE);
    assert_eq!(unsaid.deadline(Some(&born)), at(20) + DEADLINE);
    assert_eq!(unsaid.deadline(None), at(0) + DEADLINE);
    for subject in [said, unsaid] {
        assert_eq!(subject.agent_deadline(Some(&born)), at(20) + AGENT_LIMIT);
    }
}

#[test]
fn an_agent_is_silent_ten_minutes_after_its_vm_was_made_however_old_its_machine_is() {
    let unsaid = machine(Some("data"), None, &[]);
    let judgement = judged(&unsaid, &seen(29, Vm::Present, Some(20)));
    assert!(matches!(judgement, Judgement::Underway), "{judgement:?}");
    let Judgement::Failed(failure) = judged(&unsaid, &seen(30, Vm::Present, Some(20))) else {
        panic!("its time is over")
    };
    assert_eq!(failure.diagnosis.cause.reason.reason(), "GuestAgentUnresponsive");
}
