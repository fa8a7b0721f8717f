//! Tests of [`super::text`]: whole screens.

use bringup_diagnosis::Verdict;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Status, condition};
use bringup_objects::karpenter::NodeClaimSpec;
use bringup_objects::{BootstrapReport, NodeClaim};
use jiff::Timestamp;
use serde_json::json;

use super::case::Case;
use super::names::Subject;
use super::text::explanation;
use crate::images::{Fared, Image};
use crate::program::Program;

fn text(case: &Case, program: Program, now: Timestamp) -> String {
    explanation(case, program, now).text()
}

fn now() -> Timestamp {
    "2026-01-27T10:06:12Z".parse().unwrap()
}

fn report() -> BootstrapReport {
    serde_json::from_value(json!({
        "apiVersion": "bringup.dev/v1alpha1",
        "kind": "BootstrapReport",
        "metadata": { "namespace": "bringup-system", "name": "default-x7k2p-3f9c01d2ab" },
        "spec": {
            "targetRef": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "default-x7k2p", "uid": "u1" },
            "parentRef": { "kind": "NodePool", "name": "default" },
            "nodeName": "aks-default-x7k2p",
            "image": "/CommunityGalleries/AKSAzureLinux/images/V3gen2/versions/202601.27.0",
            "imageVersion": "202601.27.0",
            "vmSize": "Standard_D4s_v5",
            "zone": "1",
            "provisionMode": "bootstrappingclient",
        },
        "status": {
            "phase": "Final",
            "verdict": {
                "cause": "BinaryMissing", "family": "image", "owner": "image owner",
                "retryable": "no", "confidence": "high",
                "title": "a program that the bootstrap calls is absent: oras", "overrulesCode": true,
            },
            "cse": { "exitCode": 211, "constant": "ERR_ORAS_PULL_NETWORK_TIMEOUT", "outerStatus": 1 },
            "rootEvidence": { "source": "extension message", "line": "timeout: failed to run command 'oras': No such file or directory" },
            "evidence": [{ "source": "serial log", "line": "login:" }],
            "contributing": [{ "cause": "ERR_ORAS_PULL_NETWORK_TIMEOUT", "line": "Says network timeout." }],
            "timeline": (0..10).map(|step| json!({ "at": format!("2026-01-27T10:00:{step:02}Z"), "what": format!("step {step}") })).collect::<Vec<_>>(),
            "collectors": [
                { "name": "VM", "state": "ok" },
                { "name": "serial log", "state": "denied", "detail": "needs retrieveBootDiagnosticsData/action" },
            ],
            "remediation": ["Use an image that has the program."],
            "finishedAt": "2026-01-27T10:02:00Z",
        },
    }))
    .unwrap()
}

fn fared(version: &str, failed: usize, joined: usize) -> Fared {
    let image = Image { version: version.to_owned(), family: None };
    Fared { image, failed, joined, at_hand: failed > 0 }
}

#[test]
fn a_failure_is_one_screen() {
    let subject = Subject::claim("default-x7k2p");
    let mut case = Case::new(subject, None, None, vec![report()], "default-x7k2p");
    case.images = vec![fared("202601.27.0", 3, 0), fared("202601.13.0", 0, 5)];
    case.notes = vec!["not read: you lack permission for `list` on `nodes`".to_owned()];
    assert_eq!(
        text(&case, Program::Bringup, now()),
        "\
FAILED: BinaryMissing, exit code 211 ERR_ORAS_PULL_NETWORK_TIMEOUT, outer exit
status 1
A program that the bootstrap calls is absent: oras.

NodeClaim default-x7k2p of pool default, node aks-default-x7k2p, is gone; failed
4m ago.

Proof (extension message):
  | timeout: failed to run command 'oras': No such file or directory

What misled:
  ERR_ORAS_PULL_NETWORK_TIMEOUT: Says network timeout.

Timeline:
  2026-01-27T10:00:00Z  +0    s  step 0
  2026-01-27T10:00:01Z  +1    s  step 1
  2026-01-27T10:00:02Z  +2    s  step 2
  2026-01-27T10:00:03Z  +3    s  step 3
  ... 2 more ...
  2026-01-27T10:00:06Z  +6    s  step 6
  2026-01-27T10:00:07Z  +7    s  step 7
  2026-01-27T10:00:08Z  +8    s  step 8
  2026-01-27T10:00:09Z  +9    s  step 9

Sources:
  VM was read
  serial log is forbidden: needs retrieveBootDiagnosticsData/action

What to do:
  Use an image that has the program.

How images fared:
  202601.27.0: 3 of 3 failed; 202601.13.0: 5 of 5 joined

Owner:      image owner
Try again:  a retry fails until the cause is fixed
Confidence: high: the evidence proves it
Image:      V3gen2 202601.27.0
Machine:    Standard_D4s_v5, 1, bootstrappingclient
Report:     bringup-system/default-x7k2p-3f9c01d2ab

Note: not read: you lack permission for `list` on `nodes`
"
    );
}

#[test]
fn a_failure_that_nobody_understands_shows_the_last_words_of_each_text() {
    let mut report = report();
    if let Some(verdict) = report.status.as_mut().and_then(|status| status.verdict.as_mut()) {
        verdict.cause = bringup_contract::cause::Cause::Unknown.into();
    }
    let subject = Subject::claim("default-x7k2p");
    let case = Case::new(subject, None, None, vec![report], "default-x7k2p");
    let said = text(&case, Program::Bringup, now());
    assert!(said.contains("\nLast lines (serial log):\n  | login:\n"), "{said}");
    assert!(!said.contains("Proof"), "{said}");
}

#[test]
fn a_claim_that_bringup_does_not_watch_says_where_to_look() {
    let mut claim = NodeClaim::new("default-x", NodeClaimSpec::default());
    let status = claim.status.get_or_insert_default();
    status.conditions = vec![condition("Launched", Status::True, "Launched", "", now())];
    let case =
        Case::new(Subject::claim("default-x"), Some(claim.into()), None, Vec::new(), "default-x");
    assert_eq!(case.verdict, Verdict::Running);
    let said = text(&case, Program::Plugin, now());
    assert!(
        said.contains("  Launched=True\n") && said.contains("has not written a condition"),
        "{said}"
    );
}

#[test]
fn a_claim_that_is_watched_says_how_long_to_wait() {
    let mut claim = NodeClaim::new("default-x", NodeClaimSpec::default());
    let held = condition(BOOTSTRAP_SUCCEEDED, Status::Unknown, "Diagnosing", "Waiting.", now());
    claim.status.get_or_insert_default().conditions = vec![held];
    let case =
        Case::new(Subject::claim("default-x"), Some(claim.into()), None, Vec::new(), "default-x");
    let said = text(&case, Program::Plugin, now());
    assert!(said.contains("BootstrapSucceeded=Unknown, Diagnosing: Waiting.\n"), "{said}");
    assert!(said.contains("13 minutes") && said.contains("`kubectl bringup"), "{said}");
}
