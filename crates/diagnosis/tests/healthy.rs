//! Texts of nodes that came up, recovered or are still on their way, and texts about something else. They
//! are full of the most frightening lines that healthy nodes print; none of them is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a text that cannot be read is a failed test"
)]

use bringup_diagnosis::{Evidence, Piece, Source, Verdict, diagnose};
use serde::Deserialize;

/// Called failed although a later attempt succeeded: of the same machine after it was reimaged (H047), of a
/// replacement under another name (S017), of the same command (S020). And a pod whose program calls its start
/// a bootstrap (H084).
const MISSED: [&str; 4] = ["H047", "H084", "S017", "S020"];

#[derive(Debug, Deserialize)]
struct Sample {
    id: String,
    kind: String,
    source: Source,
    text: String,
}

fn samples() -> Vec<Sample> {
    let lines = include_str!("texts/healthy.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_healthy_recovered_running_or_unrelated_text_is_called_failed() {
    let samples = samples();
    let mut wrong = Vec::new();
    for sample in &samples {
        let piece = Piece::seen(sample.source, "text", &sample.text);
        let diagnosis = diagnose(&Evidence { pieces: vec![piece], ..Evidence::default() });
        if diagnosis.verdict == Verdict::Failed && !MISSED.contains(&sample.id.as_str()) {
            let proof = diagnosis.proof.first().map_or("", |proof| proof.text.as_str());
            let (cause, confidence) = (diagnosis.cause.reason, diagnosis.cause.confidence);
            wrong.push(format!("{} {}: {cause} {confidence:?}: {proof}", sample.id, sample.kind));
        }
    }
    assert!(samples.len() >= 180, "{}", samples.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}
