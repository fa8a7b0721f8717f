//! Failures that were written by readers who did not know the rules, after what people reported in public,
//! with names of their own. The rules have learned from them since; docs/benchmarks.md has the figures of
//! the first time they were read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a text that cannot be read is a failed test"
)]

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Evidence, Piece, Source, Verdict, diagnose};
use proptest::prelude::*;
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
    let samples = samples();
    assert!(samples.len() >= 235, "{}", samples.len());
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

fn samples() -> Vec<Sample> {
    let lines = include_str!("texts/failures.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What must not depend on how a text is written.
fn essence(text: &str) -> (Verdict, Cause, Option<i32>, Option<String>) {
    let found = diagnose(&Evidence::of_text(text));
    (found.verdict, found.cause.reason, found.exit_code, found.arm_code)
}

#[test]
fn line_endings_and_colours_change_nothing() {
    for sample in samples() {
        let plain = essence(&sample.text);
        assert_eq!(
            essence(&sample.text.replace('\n', "\r\n")),
            plain,
            "{}: line endings",
            sample.id
        );
        let coloured: Vec<String> =
            sample.text.lines().map(|line| format!("\u{1b}[0;31m{line}\u{1b}[0m")).collect();
        assert_eq!(essence(&coloured.join("\n")), plain, "{}: colours", sample.id);
    }
}

#[test]
fn a_node_that_is_ready_at_the_end_has_come_up_whatever_happened_before() {
    const READY: &str = "\nMar 04 06:41:24 node-1 kubelet[2719]: I0304 06:41:24.188620    2719 kubelet_node_status.go:78] \"Successfully registered node\" node=\"node-1\"\nMar 04 06:41:33 node-1 kubelet[2719]: I0304 06:41:33.770958    2719 kubelet_node_status.go:501] \"Fast updating node status as it just became ready\"\n";
    let mut turned = 0;
    for sample in samples() {
        let before = diagnose(&Evidence::of_text(&sample.text));
        let is_of_several = sample.text.to_lowercase().contains("nodeclaim")
            || sample.text.contains("Machine")
            || sample.text.contains("kubectl");
        if before.verdict != Verdict::Failed || before.arm_code.is_some() || is_of_several {
            continue;
        }
        let (after, ..) = essence(&format!("{}{READY}", sample.text));
        assert_eq!(after, Verdict::Succeeded, "{}", sample.id);
        turned += 1;
    }
    assert!(turned > 70, "{turned}");
}

#[test]
fn an_earlier_boot_that_failed_does_not_judge_a_later_one() {
    const EARLIER: &str = "Linux version 6.8.0-1021-azure\n[   61.118203] cloud-init[1045]: tar: Cannot write: No space left on device\n[   62.118203] cloud-init[1045]: error execution phase preflight: no space left on device\n";
    const LATER: &str = "Linux version 6.8.0-1021-azure\n[   61.118203] cloud-init[1045]: /usr/bin/env: 'jq': No such file or directory\n[   62.0] cloud-init[1045]: error execution phase preflight: [preflight] Some fatal errors occurred: \n";
    let of = |text: &str| {
        let piece = Piece::seen(Source::SerialLog, "console", text);
        diagnose(&Evidence { pieces: vec![piece], ..Evidence::default() })
    };
    let (alone, after) = (of(LATER), of(&format!("{EARLIER}{LATER}")));
    assert_eq!(alone.cause, after.cause);
    assert_eq!((alone.verdict, alone.cause.reason), (Verdict::Failed, Cause::BinaryMissing));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A line that is gone may have contradicted the cause. Apart from that, less is never known better.
    #[test]
    fn with_fewer_lines_the_same_cause_is_not_surer(which in any::<prop::sample::Index>(), gone in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let samples = samples();
        let sample = which.get(&samples);
        let whole = diagnose(&Evidence::of_text(&sample.text));
        let mut lines: Vec<&str> = sample.text.lines().collect();
        for index in gone {
            if lines.len() > 1 {
                lines.remove(index.index(lines.len()));
            }
        }
        let part = diagnose(&Evidence::of_text(&lines.join("\n")));
        let is_same = part.cause.reason == whole.cause.reason && whole.verdict == Verdict::Failed;
        let is_contradicted = !whole.overruled.is_empty();
        prop_assert!(!is_same || is_contradicted || part.cause.confidence <= whole.cause.confidence, "{}", sample.id);
    }
}
