//! Any BootstrapReport that is stored: reading it never panics, and what is made of it is bounded.

#![no_main]

use bringup_objects::report::BootstrapReport;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

#[path = "../../crates/observe/tests/claim/mod.rs"]
mod claim;
#[path = "../../crates/observe/tests/stored_report/mod.rs"]
mod stored_report;

const PHASES: [&str; 4] = ["Collecting", "Final", "Lost", "Superseded"];
const KINDS: [&str; 3] = ["NodeClaim", "Machine", "Node"];

/// A report whose fields hold parts of the input, one after another.
fn structured(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let mut texts = text.split('\n').chain(std::iter::repeat(""));
    let mut word = || texts.next().unwrap_or_default().to_owned();
    let number = |nth: usize| {
        bytes.iter().skip(nth).take(8).fold(0, |all: u64, one| all << 8 | u64::from(*one))
    };
    let second = |nth: usize| {
        let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let span = u64::try_from(last - first).unwrap_or(u64::MAX);
        let second = i64::try_from(number(nth) % span).map_or(0, |second| first + second);
        jiff::Timestamp::from_second(second).unwrap_or_default().to_string()
    };
    let pick = |nth: usize| usize::from(bytes.get(nth).copied().unwrap_or_default());
    let mut condition = |kind: &str, nth: usize| json!({ "type": kind, "status": word(), "reason": word(), "message": word(), "lastTransitionTime": second(nth) });
    let conditions = [
        condition("BootstrapSucceeded", 1),
        condition("CSEProvisioned", 2),
        condition("Announced", 3),
    ];
    json!({
        "apiVersion": "bringup.dev/v1alpha1", "kind": "BootstrapReport",
        "metadata": { "name": word(), "namespace": word(), "resourceVersion": word(), "labels": { "bringup.dev/cause": word() } },
        "spec": {
            "targetRef": { "apiVersion": word(), "kind": KINDS[pick(0) % KINDS.len()], "name": word(), "uid": word() },
            "parentRef": { "kind": word(), "name": word() },
            "providerID": word(), "vmId": word(), "attempt": u32::try_from(number(4) >> 32).unwrap_or_default(),
            "nodeName": word(), "image": word(), "imageVersion": word(), "vmSize": word(), "zone": word(),
            "region": word(), "capacityType": word(), "provisionMode": word(), "os": word(), "createdAt": second(5),
        },
        "status": {
            "phase": PHASES[pick(1) % PHASES.len()], "finishedAt": second(6),
            "verdict": { "cause": word(), "family": word(), "owner": word(), "retryable": word(), "confidence": word(),
                         "title": word(), "explanation": word(), "overrulesCode": pick(2) % 2 == 0 },
            "cse": { "exitCode": pick(3), "outerStatus": -1, "constant": word(), "constantCandidates": [word()],
                     "startedAt": second(7), "endedAt": second(8) },
            "rootEvidence": { "source": word(), "line": word(), "before": [word()], "after": [word()], "at": second(9) },
            "evidence": [{ "source": word(), "line": word() }],
            "contributing": [{ "cause": word(), "line": word() }],
            "timeline": [{ "at": second(10), "what": word() }],
            "collectors": [{ "name": word(), "state": "late", "detail": word() }],
            "remediation": [word()], "redactions": { "count": number(11), "rules": [word()] },
            "conditions": conditions,
        },
    })
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = serde_json::from_slice::<BootstrapReport>(bytes) {
        stored_report::read_everywhere(&report);
    }
    let report = serde_json::from_value(structured(bytes)).expect("the fields are of their types");
    stored_report::read_everywhere(&report);
});
