//! Which observations count as the failure of a Machine, and which do not.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;

use std::sync::Arc;

use bringup_azure::model::VirtualMachine;
use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::condition::{Status, find};
use bringup_objects::report::Phase;
use bringup_observe::judge::Judgement;
use bringup_observe::machines::{DEADLINE, MachineIndex};
use bringup_observe::observation::{Observation, Vm};
use bringup_observe::outputs::conditions;
use bringup_observe::plan::Step;
use bringup_observe::profile::Script;
use bringup_observe::snapshot::Snapshot;
use bringup_observe::subject::Subject;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::claim::{VM, at, bear, snapshot};

/// A Machine whose VM exists.
fn machine() -> Subject {
    let ready = json!({ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at(0).to_string() });
    let machine = json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "u", "creationTimestamp": at(0).to_string() },
        "spec": { "clusterName": "prod", "providerID": VM, "infrastructureRef": { "kind": "AzureMachine", "name": "a" } },
        "status": { "conditions": [ready] },
    });
    let machines = MachineIndex::new(DEADLINE);
    machines.listed("Cluster");
    machines.machine_seen(serde_json::from_value(machine).unwrap()).unwrap()
}

fn extension(name: &str, level: &str, message: &str) -> Value {
    let state = if level == "Error" { "failed" } else { "succeeded" };
    json!({
        "name": name, "type": format!("Microsoft.Azure.Extensions.{name}"),
        "statuses": [{ "code": format!("ProvisioningState/{state}"), "level": level, "message": message }],
    })
}

/// A VM with these extensions. Azure sets the VM's state to failed if one of them failed.
fn vm(extensions: &[Value]) -> VirtualMachine {
    let has_failed = extensions.iter().any(|one| one["statuses"][0]["level"] == "Error");
    let state = if has_failed { "Failed" } else { "Succeeded" };
    let error = json!({ "code": "ProvisioningState/failed/VMExtensionProvisioningError", "level": "Error", "message": "an extension failed" });
    let statuses: Vec<Value> = has_failed.then_some(error).into_iter().collect();
    let models: Vec<Value> = extensions
        .iter()
        .map(|one| json!({ "name": one["name"], "properties": { "publisher": "Microsoft.Azure.Extensions", "type": one["name"] } }))
        .collect();
    let agent = json!({ "statuses": [{ "code": "ProvisioningState/succeeded", "level": "Info", "message": "Guest Agent is running" }] });
    VirtualMachine::of(json!({
        "name": "a", "resources": models,
        "properties": { "provisioningState": state, "timeCreated": at(0).to_string(),
                        "instanceView": { "vmAgent": agent, "statuses": statuses, "extensions": extensions } },
    }))
}

/// A full observation at this time.
fn seen(seconds: i64, extensions: &[Value]) -> Observation {
    let fresh = Observation { script: Script::Waiter, ..Observation::default() };
    Observation { is_full: true, ..fresh.with_vm(&vm(extensions), at(seconds)) }
}

/// A snapshot of a subject right after this look.
fn snapshot_of(subject: &Subject, seen: &Observation) -> Snapshot {
    let observation = Some(Arc::new(seen.clone()));
    Snapshot { observation, ..Snapshot::of(Arc::new(subject.clone()), seen.at) }
}

fn judged(seen: &Observation) -> Judgement {
    snapshot_of(&machine(), seen).judge()
}

const LOCK: &str =
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (apt)";

#[test]
fn what_extensions_of_users_say_is_no_failure_before_the_time_is_over() {
    for (name, level) in
        [("CustomScript", "Info"), ("CustomScript", "Error"), ("AzureMonitorLinuxAgent", "Error")]
    {
        let extensions = [extension(name, level, LOCK)];
        let early = seen(120, &extensions);
        assert_eq!(early.vm, Vm::Present, "{name}, {level}");
        let judgement = judged(&early);
        assert!(matches!(judgement, Judgement::Underway), "{name}, {level}: {judgement:?}");
        let Judgement::Failed(failure) = judged(&seen(600, &extensions)) else {
            panic!("{name}, {level}: its time is over")
        };
        let explained = failure.diagnosis.cause.reason.reason();
        assert_eq!(explained, "PackageManagerLocked", "{name}, {level}: it may be why");
    }
}

#[test]
fn extensions_that_are_not_the_users_and_what_azure_says_of_the_vm_itself_count_at_once() {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"end\":1}";
    for (name, message) in [("CAPZ.Linux.Bootstrapping", "exit status=1"), ("CustomScript", waited)]
    {
        let both = [extension(name, "Error", message), extension("Users", "Error", LOCK)];
        let judgement = judged(&seen(120, &both));
        assert!(matches!(judgement, Judgement::Failed(_)), "{name}: {judgement:?}");
    }
    let mut raw = vm(&[extension("Users", "Error", LOCK)]).raw;
    let code = "ProvisioningState/failed/OSProvisioningTimedOut";
    raw["properties"]["instanceView"]["statuses"][0]["code"] = json!(code);
    let fresh = Observation { script: Script::Waiter, ..Observation::default() };
    assert_eq!(fresh.with_vm(&VirtualMachine::of(raw), at(120)).vm, Vm::Failed);
}

#[test]
fn a_console_on_which_the_machine_joined_is_no_failure_whatever_follows() {
    let joined = "[   80.0] cloud-init[1021]: This node has joined the cluster:";
    let lock = format!("[   91.0] cloud-init[1021]: {LOCK}");
    let finished = "[   92.0] cloud-init[1021]: Cloud-init v. 24.4.1 finished at Thu, 01 Jan 2026 00:02:03 +0000. Datasource DataSourceAzure.  Up 93.10 seconds";
    for (lines, fails) in [
        ([lock.as_str(), finished, ""], true),
        ([joined, &lock, finished], false),
        (["", "", joined], false),
    ] {
        let console = lines.join("\n");
        let seen = seen(120, &[]).with_console(&console, true);
        let judgement = judged(&Observation { is_full: true, ..seen });
        assert_eq!(matches!(judgement, Judgement::Failed(_)), fails, "{console}: {judgement:?}");
    }
}

#[test]
fn a_control_plane_that_is_well_has_its_whole_time_for_its_node_to_come() {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":0,\"name\":\"X\",\"end\":1}";
    let well = [extension("CustomScript", "Info", waited)];
    let first = seen(60, &well);
    let judged = |is_control_plane: bool, seconds: i64| {
        let subject = Subject { is_control_plane, ..machine() };
        let later = first.clone().with_vm(&vm(&well), at(seconds));
        let later = Observation { is_full: true, ..later };
        matches!(snapshot_of(&subject, &later).judge(), Judgement::Failed(_))
    };
    assert!(!judged(false, 200), "a worker has three minutes");
    assert!(judged(false, 241));
    assert!(!judged(true, 241), "its cloud controller may be installed by hand");
    assert!(judged(true, 601), "its time is over");
}

#[test]
fn a_machine_that_nobody_could_look_at_is_looked_at_until_azure_answers() {
    let plain = machine();
    let denied = Some("Azure answered 503".to_owned());
    let unseen = Observation { at: at(600), is_full: true, denied, ..Observation::default() };
    let Step::Publish(report) = snapshot(&plain, Some(&unseen), None, at(600)).next_step() else {
        panic!("its time is over")
    };
    assert_eq!((report.phase(), report.cause()), (Phase::Final.into(), Some("Unknown")));
    let borne = report.status.as_ref().unwrap().conditions.clone();
    let useful = find(&borne, REPLACEMENT_USEFUL).unwrap();
    assert_eq!(
        useful.status,
        Status::Unknown.word(),
        "an outage is no reason to replace: {useful:?}"
    );

    let told = conditions::desired(&plain, Some(&unseen), Some(&report), false, at(600));
    let plain = bear(plain, &told);
    let mut report = *report;
    let announced = bringup_observe::outputs::report::announced(&report, at(601));
    report = announced;
    let step = |seen: Option<&Observation>, seconds: i64| {
        format!("{:?}", snapshot(&plain, seen, Some(&report), at(seconds)).next_step())
    };
    assert_eq!(step(Some(&unseen), 601), format!("Wait({})", at(720)));
    assert_eq!(step(Some(&unseen), 720), "Look(Schedule)");
    assert_eq!(step(None, 900), "Look(Schedule)", "after a restart");
    let looked = Observation { script: Script::Waiter, ..Observation::default() };
    let looked = looked.with_vm(&vm(&[]), at(730));
    assert_eq!(step(Some(&looked), 730), "Deepen(Schedule)");
    let full = Observation { is_full: true, ..looked.clone() };
    assert_eq!(step(Some(&full), 730), "Rest", "Azure has answered, and does not know either");
    let late = Observation { at: at(600) + SignedDuration::from_mins(31), ..unseen };
    assert_eq!(step(Some(&late), 3600), "Rest", "it is given up");

    let proof = "[   91.0] cloud-init[1]: error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"";
    let proven = Observation { is_full: true, ..looked.with_console(proof, true) };
    let step = snapshot(&plain, Some(&proven), Some(&report), at(731)).next_step();
    let Step::Revise(revised) = step else { panic!("{step:?}") };
    assert_eq!(revised.cause(), Some("BootstrapTokenInvalid"));
}

#[test]
fn a_machine_that_joined_before_this_life_is_not_looked_at_again() {
    let joined = Subject { registered: Some(at(60)), ..machine() };
    let told = conditions::desired(&joined, None, None, true, at(60));
    let joined = bear(joined, &told);
    let mut snapshot = snapshot(&joined, None, None, at(9000));
    snapshot.was_pending = false;
    assert!(matches!(snapshot.next_step(), Step::Rest));
    snapshot.was_pending = true;
    assert!(matches!(snapshot.next_step(), Step::Look(_)), "whether anything was wrong with it");
}
