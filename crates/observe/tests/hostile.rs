//! Property tests: whatever Azure or an object contains, the observer's decisions do not panic, and the
//! stored data stays small.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod claim;
mod stored_report;

use bringup_azure::model::VirtualMachine;
use bringup_objects::report::BootstrapReport;

use bringup_observe::observation::Observation;
use bringup_observe::plan::Step;
use bringup_observe::profile::Kind;
use bringup_observe::snapshot::{Looks, Signal, Snapshot};
use bringup_observe::subject::{Launch, Subject};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::claim::{at, report, snapshot, subject};

/// The most bytes of a piece of evidence in memory.
const EXCERPT_BYTES: usize = 64 * 1024;

/// Times at both ends of the range, near the present, and anywhere between.
fn moment() -> impl Strategy<Value = Timestamp> {
    let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    prop_oneof![
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
        Just("9999-12-30T22:00:00Z".parse().unwrap()),
        Just(Timestamp::UNIX_EPOCH),
        (-100_000_i64..100_000).prop_map(at),
        (first..last).prop_map(|second| Timestamp::from_second(second).unwrap()),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("ProvisioningState/failed/0".to_owned()),
        Just("ProvisioningState/succeeded".to_owned()),
        Just("ProvisioningState/transitioning".to_owned()),
        Just("PowerState/running".to_owned()),
        Just("Error".to_owned()),
        Just("Succeeded".to_owned()),
        Just("Deleting".to_owned()),
        Just(String::new()),
        ".{0,40}",
    ]
}

/// Text that a node can print.
fn text() -> impl Strategy<Value = String> {
    let summary =
        |exit: i64| format!("BRINGUP-NODE/1 {{\"kind\":\"wait\",\"exit\":{exit},\"end\":1}}");
    prop_oneof![
        Just(String::new()),
        Just("<a".repeat(3_000)),
        Just(format!("BRINGUP-NODE/1 {{\"exit\":211,\"ev\":[{}", "1,".repeat(10_000))),
        Just("BRINGUP-NODE/1 {\"a\",".repeat(500)),
        Just("\\".repeat(20_000)),
        Just("[".repeat(20_000)),
        Just("password=".repeat(2_000)),
        any::<i64>().prop_map(summary),
        any::<i64>().prop_map(|code| format!("exit status={code}\n{{ \"ExitCode\": \"{code}\" }}")),
        "(?s).{0,400}",
    ]
}

fn status() -> impl Strategy<Value = Value> {
    (word(), word(), text(), moment()).prop_map(|(code, level, message, time)| {
        json!({ "code": code, "level": level, "message": message, "time": time.to_string() })
    })
}

fn vm() -> impl Strategy<Value = VirtualMachine> {
    let statuses = || prop::collection::vec(status(), 0..4);
    (statuses(), statuses(), statuses(), word(), moment()).prop_map(
        |(vm, agent, script, state, created)| {
            VirtualMachine::of(json!({
                "name": "aks-a",
                "properties": {
                    "provisioningState": state,
                    "timeCreated": created.to_string(),
                    "vmId": "x",
                    "instanceView": {
                        "statuses": vm,
                        "vmAgent": { "statuses": agent, "vmAgentVersion": "2" },
                        "extensions": [{
                            "name": "vmssCSE",
                            "type": "Microsoft.Azure.Extensions.CustomScript",
                            "statuses": script,
                        }],
                    },
                },
            }))
        },
    )
}

fn hostile() -> impl Strategy<Value = Subject> {
    let optional = || prop::option::of(moment());
    let launch = (moment(), text(), 0..4_u8).prop_map(|(at, message, which)| match which {
        0 => Launch::NotYet,
        1 => Launch::Expected(at),
        2 => Launch::Accepted(at),
        _ => Launch::Refused { at, message },
    });
    (launch, moment(), optional(), optional(), optional(), optional(), any::<bool>()).prop_map(
        |(launch, created, deleting, registered, counted_from, provider_failure, is_machine)| {
            let kind = if is_machine { Kind::Machine } else { Kind::NodeClaim };
            Subject {
                profile: kind.profile(),
                launch,
                created,
                deleting,
                registered,
                counted_from,
                provider_failure,
                ..subject()
            }
        },
    )
}

fn reported() -> impl Strategy<Value = Option<BootstrapReport>> {
    let times = (moment(), moment(), word());
    prop::option::of(times.prop_map(|(finished, created, label)| {
        let mut report = report();
        report.spec.created_at = Some(Time(created));
        report.spec.vm_size = Some(label.clone());
        report.spec.zone = Some(label);
        if let Some(status) = &mut report.status {
            status.finished_at = Some(Time(finished));
        }
        report
    }))
}

/// A stored report with arbitrary numbers and times, and arbitrary text in every field.
fn stored() -> impl Strategy<Value = BootstrapReport> {
    let texts = prop::collection::vec(prop_oneof![word(), text()], 24);
    let phases = ["Collecting", "Final", "Lost", "Superseded"].map(str::to_owned).to_vec();
    let numbers = (any::<u32>(), any::<i32>(), any::<u64>());
    let times = prop::collection::vec(moment(), 8);
    (texts, prop::sample::select(phases), numbers, times).prop_map(
        |(texts, phase, (attempt, code, count), times)| {
            let mut texts = texts.into_iter().cycle();
            let mut word = || texts.next().unwrap_or_default();
            let mut times = times.into_iter().cycle().map(|at| at.to_string());
            let mut time = || times.next().unwrap_or_default();
            let mut condition = |kind: &str| json!({ "type": kind, "status": word(), "reason": word(), "message": word(), "lastTransitionTime": time() });
            let conditions = ["BootstrapSucceeded", "CSEProvisioned", "Announced"].map(&mut condition);
            serde_json::from_value(json!({
                "apiVersion": "bringup.dev/v1alpha1", "kind": "BootstrapReport",
                "metadata": { "name": word(), "namespace": word(), "resourceVersion": word() },
                "spec": {
                    "targetRef": { "apiVersion": word(), "kind": word(), "name": word(), "uid": word() },
                    "parentRef": { "kind": word(), "name": word() },
                    "providerID": word(), "vmId": word(), "attempt": attempt, "nodeName": word(),
                    "imageVersion": word(), "provisionMode": word(), "createdAt": time(),
                },
                "status": {
                    "phase": phase, "finishedAt": time(), "conditions": conditions,
                    "verdict": { "cause": word(), "family": word(), "owner": word(), "retryable": word(), "confidence": word(), "title": word() },
                    "cse": { "exitCode": code, "constantCandidates": [word()], "endedAt": time() },
                    "rootEvidence": { "source": word(), "line": word(), "at": time() },
                    "timeline": [{ "at": time(), "what": word() }],
                    "redactions": { "count": count, "rules": [word()] },
                },
            }))
            .unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_stored_report_holds_makes_who_reads_it_panic(report in stored()) {
        stored_report::read_everywhere(&report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_azure_or_an_object_says_makes_a_decision_panic(
        subject in hostile(),
        vm in prop::option::of(vm()),
        console in prop::option::of(text()),
        report in reported(),
        signal in prop::option::of((moment(), moment(), text())),
        (now, departed, deleting) in (moment(), any::<bool>(), 0..3_usize),
    ) {
        let mut seen = Observation { script: subject.profile.script, ..Observation::default() };
        if let Some(vm) = &vm {
            seen = seen.with_vm(vm, now);
        }
        if let Some(console) = &console {
            seen = seen.with_console(console, false);
        }
        let seen = seen.with_excerpts(EXCERPT_BYTES);
        prop_assert!(seen.evidence.pieces.iter().all(|piece| piece.text().is_none_or(|text| text.len() <= EXCERPT_BYTES)));
        let signal = signal.map(|(stamped, heard, text)| Signal { stamped, heard, text });
        let looks = Looks { deleting, ..Looks::default() };
        // With the times as they are, and with bounded times.
        for subject in [subject.clone(), subject.bounded()] {
            let snapshot = Snapshot {
                departed,
                looks,
                signal: signal.clone(),
                ..snapshot(&subject, Some(&seen), report.as_ref(), now)
            };
            if let Step::Publish(report) | Step::Revise(report) = snapshot.next_step() {
                let size = serde_json::to_string(&report).unwrap().len();
                prop_assert!(size < 64 * 1024, "a report of {size} bytes");
            }
        }
    }
}

#[test]
fn waits_that_follow_from_the_last_moment_there_is_do_not_panic() {
    let far: Timestamp = "9999-12-30T22:00:00Z".parse().unwrap();
    let vm = VirtualMachine::of(json!({
        "name": "aks-a",
        "properties": { "instanceView": { "extensions": [{
            "name": "vmssCSE",
            "type": "Microsoft.Azure.Extensions.CustomScript",
            "statuses": [{ "code": "ProvisioningState/succeeded", "time": far.to_string() }],
        }] } },
    }));
    let seen = Observation::default().with_vm(&vm, at(90)).with_excerpts(EXCERPT_BYTES);
    let subject = Subject { created: far, counted_from: Some(far), ..subject() };
    for now in [Timestamp::MIN, at(90), far, Timestamp::MAX] {
        let step = snapshot(&subject, Some(&seen), None, now).next_step();
        assert!(!format!("{step:?}").is_empty());
    }
}
