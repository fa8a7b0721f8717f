//! Recorded runs of the bootstrap scripts with a fault made on purpose.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_diagnosis::{Evidence, diagnose};
use serde::Deserialize;
use serde_json::Value;

use super::{Misses, Score};

const SET: &str = "cse-failures";

#[derive(Debug, Deserialize)]
struct Run {
    case: String,
    cause: String,
    evidence: Vec<String>,
}

/// The cause and one of its evidence strings must come from the result alone and from the log
/// alone.
pub(super) fn scores(directory: &Path, misses: &mut Misses) -> Result<Vec<Score>> {
    let directory = directory.join(SET);
    let Ok(index) = std::fs::read_to_string(directory.join("INDEX.json")) else {
        println!("{SET}: absent");
        return Ok(Vec::new());
    };
    let mut index: Value =
        serde_json::from_str(&index).context("read the index of recorded runs")?;
    let runs: Vec<Run> =
        serde_json::from_value(index["cases"].take()).context("read the recorded runs")?;
    let mut right = 0;
    for run in &runs {
        for file in ["provision.json", "cluster-provision.log"] {
            let path = directory.join(format!("{}.{file}", run.case));
            let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            right += usize::from(is_right(run, file, &String::from_utf8_lossy(&bytes), misses));
        }
    }
    Ok(vec![Score { set: SET, what: "cause and proof right", right, cases: runs.len() * 2 }])
}

fn is_right(run: &Run, file: &str, text: &str, misses: &mut Misses) -> bool {
    let diagnosis = diagnose(&Evidence::of_text(text));
    let is_evidence = |proof: &str| run.evidence.iter().any(|line| proof.contains(line.as_str()));
    let quoted = diagnosis.proof.iter().any(|proof| is_evidence(&proof.text));
    let reason = diagnosis.cause.reason.reason();
    let is_right = reason == run.cause && quoted;
    if !is_right {
        misses.push(format!(
            "{} from {file}: {reason}, expected {}; quoted: {quoted}",
            run.case, run.cause
        ));
    }
    is_right
}
