//! Snapshots of all outputs for each kind of failure, as an operator sees them: conditions, Events and
//! report. Each change appears in `tests/snapshots`.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use std::sync::Arc;

use bringup_azure::model::VirtualMachine;
use bringup_objects::report::BootstrapReport;
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::observation::{Agent, Cse, Observation, Vm};
use bringup_observe::outputs::{conditions, events, report as reports};
use bringup_observe::plan::Step;
use bringup_observe::profile::Script;
use bringup_observe::snapshot::Snapshot;
use bringup_observe::subject::{Launch, Place, Subject};
use serde::Serialize;
use serde_json::json;

use crate::claim::{VM, at, failed_cse, snapshot, subject};

/// A value as YAML, without lines that do not matter to a reader.
fn yaml(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).unwrap()
}

/// The report that is created for a snapshot.
fn published(snapshot: &Snapshot) -> BootstrapReport {
    let mut snapshot = snapshot.clone();
    let step = snapshot.next_step();
    // If the cause is not proven, the other sources are read first.
    if let (Step::Deepen(_), Some(seen)) = (&step, &mut snapshot.observation) {
        Arc::make_mut(seen).is_full = true;
    }
    match snapshot.next_step() {
        Step::Publish(report) => *report,
        step => panic!("{step:?}"),
    }
}

/// Report, conditions and Events of a failure as YAML.
fn outputs(snapshot: &Snapshot) -> String {
    let (subject, seen) = (&snapshot.subject, snapshot.observation.as_deref());
    let mut report = published(snapshot);
    let parent = subject.parent.as_ref().unwrap();
    let api_version = format!("{}/v1", parent.group);
    reports::own(&mut report, &api_version, &parent.kind, &parent.name, "uid-parent");
    let wanted = conditions::desired(subject, seen, Some(&report), false, snapshot.now);
    let on_target = events::on_target(&report, "bringup-0", snapshot.now);
    let on_parent = events::on_parent(&report, "uid-parent", "bringup-0", snapshot.now);
    let events = on_target.iter().chain(&on_parent);
    let events: Vec<String> = events.map(|event| format!("\n# Event\n{}", yaml(event))).collect();
    format!("# report\n{}\n# conditions\n{}{}", yaml(&report), yaml(&wanted), events.concat())
}

#[test]
fn a_claim_whose_script_missed_a_program() {
    insta::assert_snapshot!(outputs(&snapshot(&subject(), Some(&failed_cse()), None, at(91))));
}

#[test]
fn a_claim_that_azure_refused_for_quota() {
    let message = "creating instance failed: Operation could not be completed as it results in exceeding approved \
                   standardDSv5Family Cores quota. Location: eastus, Current Limit: 10, Current Usage: 8, \
                   Additional Required: 4, (Minimum) New Limit Required: 12. Code=\"QuotaExceeded\"";
    let launch = Launch::Refused { at: at(3), message: message.to_owned() };
    let refused = Subject { launch, place: Place::NotSaid, ..subject() };
    insta::assert_snapshot!(outputs(&snapshot(&refused, None, None, at(4))));
}

#[test]
fn a_claim_whose_vm_was_gone_before_it_could_be_read() {
    let gone = Observation { at: at(200), vm: Vm::Gone, is_full: true, ..Observation::default() };
    insta::assert_snapshot!(outputs(&snapshot(&subject(), Some(&gone), None, at(200))));
}

#[test]
fn a_flex_claim_whose_console_proves_a_refused_token() {
    let place = Place::Known(VM.replace("azure://", "azure-flex://").parse().unwrap());
    let console = "[  31.2] cloud-init[801]: bringup-node: joining\n\
                   BRINGUP-NODE/1 {\"v\":1,\"kind\":\"join\",\"exit\":31,\"name\":\"TOKEN_REJECTED\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"401 Unauthorized\"],\"end\":1}\n";
    let seen =
        Observation { at: at(90), vm: Vm::Failed, agent: Agent::Ready, ..Observation::default() };
    let seen = seen.with_console(console, false);
    let flex = Subject { place, flex_class: Some("default".to_owned()), ..subject() };
    insta::assert_snapshot!(outputs(&snapshot(&flex, Some(&seen), None, at(91))));
}

fn machine() -> Subject {
    let ready = json!({ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at(0).to_string() });
    let machine = json!({
        "metadata": { "name": "worker-1", "namespace": "team-a", "uid": "u", "creationTimestamp": at(0).to_string() },
        "spec": { "clusterName": "prod", "providerID": VM, "infrastructureRef": { "kind": "AzureMachine", "name": "worker-1" } },
        "status": { "conditions": [ready] },
    });
    let machines = MachineIndex::new(DEADLINE);
    machines.listed("Cluster");
    machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap()
}

#[test]
fn a_machine_whose_console_proves_a_refused_token() {
    let vm = VirtualMachine::of(json!({
        "name": "worker-1",
        "properties": { "provisioningState": "Succeeded", "timeCreated": at(0).to_string() },
    }));
    let console = "[  40.1] cloud-init[900]: [preflight] Running pre-flight checks\n\
                   [  41.0] cloud-init[900]: error execution phase preflight: couldn't validate the identity of the API Server: \
                   could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\n\
                   [  41.1] cloud-init[900]: To see the stack trace of this error execute with --v=5 or higher\n";
    let fresh = Observation { script: Script::Waiter, ..Observation::default() };
    let seen = fresh.with_vm(&vm, at(60)).with_console(console, false);
    let seen = Observation { is_full: true, ..seen };
    insta::assert_snapshot!(outputs(&snapshot(&machine(), Some(&seen), None, at(61))));
}

#[test]
fn conditions_of_nodes_that_are_coming_up_and_of_those_that_did() {
    let of = |name: &str, subject: &Subject, seen: Option<&Observation>, is_up: bool| {
        let wanted = conditions::desired(subject, seen, None, is_up, at(60));
        format!("# {name}\n{}\n", yaml(&wanted))
    };
    let running = Observation {
        at: at(50),
        vm: Vm::Present,
        cse: Cse::Running { since: Some(at(20)) },
        ..Observation::default()
    };
    let done = Observation { cse: Cse::Succeeded { at: Some(at(40)) }, ..running.clone() };
    let denied = Observation { denied: Some("forbidden".to_owned()), ..Observation::default() };
    let registered = Subject { registered: Some(at(45)), ..subject() };
    let warned = Observation {
        warning: Some("its bootstrap left no sentinel".to_owned()),
        ..Observation::default()
    };
    let joined = Subject { registered: Some(at(45)), ..machine() };
    insta::assert_snapshot!(
        [
            of("NodeClaim, not looked at yet", &subject(), None, false),
            of("NodeClaim, script running", &subject(), Some(&running), false),
            of("NodeClaim, Azure refuses to be read", &subject(), Some(&denied), false),
            of("NodeClaim, joined", &registered, Some(&done), true),
            of("Machine, not looked at yet", &machine(), None, false),
            of("Machine, joined without a sentinel", &joined, Some(&warned), true),
        ]
        .concat()
    );
}

#[test]
fn a_report_of_a_claim_that_joined_after_all() {
    let report = published(&snapshot(&subject(), Some(&failed_cse()), None, at(91)));
    let joined = Subject { registered: Some(at(120)), ..subject() };
    let closed = reports::superseded(&report, &joined, at(121));
    let event = events::on_target(&closed, "bringup-0", at(121));
    let status = closed.status.as_ref().unwrap();
    insta::assert_snapshot!(format!(
        "# phase {}\n# conditions\n{}\n# Event\n{}",
        status.phase,
        yaml(&status.conditions),
        yaml(&event)
    ));
}
