//! Failures that were written by readers who did not know the rules, after what people reported in public,
//! with names of their own. The rules have learned from them since; docs/benchmarks.md has the figures of
//! the first time they were read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a text that cannot be read is a failed test"
)]

use bringup_diagnosis::{Confidence, Evidence, diagnose};
use serde::Deserialize;

/// The labels of these are not met: a VM whose agent is not ready yet looks like one whose agent never
/// will be; and a download that hangs shows in what is not there.
const MISSED: [&str; 2] = ["N046", "P002"];

#[derive(Debug, Deserialize)]
struct Sample {
    id: String,
    text: String,
    exit_code: Option<i32>,
    exit_code_also: Vec<Option<i32>>,
    accept: Vec<String>,
    reject_confident: Vec<String>,
}

#[test]
fn the_cause_of_each_failure_is_found_and_none_is_wrong_with_high_confidence() {
    let lines = include_str!("texts/failures.jsonl").lines();
    let samples: Vec<Sample> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(samples.len() >= 190, "{}", samples.len());
    let mut wrong = Vec::new();
    for sample in &samples {
        let found = diagnose(&Evidence::of_text(&sample.text));
        let reason = found.cause.reason.reason();
        let is_accepted = sample.accept.iter().any(|accepted| accepted == reason);
        let is_rejected = sample.reject_confident.iter().any(|rejected| rejected == reason);
        if found.cause.confidence == Confidence::High && (!is_accepted || is_rejected) {
            wrong.push(format!("{}: {reason} with high confidence", sample.id));
        }
        if is_accepted == MISSED.contains(&sample.id.as_str()) {
            wrong.push(format!("{}: {reason}, accepted {:?}", sample.id, sample.accept));
        }
        if found.exit_code != sample.exit_code && !sample.exit_code_also.contains(&found.exit_code)
        {
            wrong.push(format!(
                "{}: exit code {:?}, not {:?}",
                sample.id, found.exit_code, sample.exit_code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
