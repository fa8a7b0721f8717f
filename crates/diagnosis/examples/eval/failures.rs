//! Labelled failures.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, diagnose};
use serde::Deserialize;
use serde_json::Value;

use super::{Misses, Score};

/// A labelled failure.
#[derive(Debug, Deserialize)]
struct Sample {
    id: String,
    text: String,
    exit_code: Option<i32>,
    #[serde(default)]
    exit_code_also: Vec<Value>,
    constant: Option<String>,
    #[serde(default)]
    constant_also: Vec<Option<String>>,
    arm_code: Option<String>,
    #[serde(default)]
    arm_code_also: Vec<Option<String>>,
    accept: Vec<String>,
    #[serde(default)]
    reject_confident: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
}

/// How one sample went.
#[expect(clippy::struct_excessive_bools, reason = "each is a row of the table")]
struct Outcome {
    exit_code: bool,
    constant: bool,
    arm_code: bool,
    cause: bool,
    confidently_wrong: bool,
    leaks: usize,
}

/// The scores of one file of failures.
pub(super) fn scores(
    directory: &Path,
    set: &'static str,
    misses: &mut Misses,
) -> Result<Vec<Score>> {
    let Ok(text) = std::fs::read_to_string(directory.join(set)) else {
        println!("{set}: absent");
        return Ok(Vec::new());
    };
    let samples: Vec<Sample> = text
        .lines()
        .map(|line| serde_json::from_str(line).context("read a labelled failure"))
        .collect::<Result<_>>()?;
    let outcomes: Vec<Outcome> = samples.iter().map(|sample| outcome(sample, misses)).collect();
    let score = |what, is_right: fn(&Outcome) -> bool| {
        let right = outcomes.iter().filter(|outcome| is_right(outcome)).count();
        Score { set, what, right, cases: outcomes.len() }
    };
    Ok(vec![
        score("exit code right", |outcome| outcome.exit_code),
        score("constant right or honestly ambiguous", |outcome| outcome.constant),
        score("ARM code right", |outcome| outcome.arm_code),
        score("cause accepted", |outcome| outcome.cause),
        score("not wrong with high confidence", |outcome| !outcome.confidently_wrong),
        score("no secret survives", |outcome| outcome.leaks == 0),
    ])
}

fn outcome(sample: &Sample, misses: &mut Misses) -> Outcome {
    let diagnosis = diagnose(&Evidence::of_text(&sample.text));
    let reason = diagnosis.cause.reason.reason();
    let accepted = sample.accept.iter().any(|accepted| accepted == reason);
    let rejected = sample.reject_confident.iter().any(|rejected| rejected == reason);
    let high = diagnosis.cause.confidence == Confidence::High;
    let outcome = Outcome {
        exit_code: right_exit_code(sample, &diagnosis),
        constant: right_constant(sample, &diagnosis),
        arm_code: diagnosis.arm_code == sample.arm_code
            || sample.arm_code_also.contains(&diagnosis.arm_code),
        cause: accepted,
        confidently_wrong: high && (!accepted || rejected),
        leaks: leaks(sample, &diagnosis),
    };
    let flaws: Vec<String> = [
        (!outcome.exit_code)
            .then(|| format!("exit code {:?}, label {:?}", diagnosis.exit_code, sample.exit_code)),
        (!outcome.constant).then(|| {
            format!(
                "constant {:?} {:?}, label {:?}",
                diagnosis.constant, diagnosis.constant_candidates, sample.constant
            )
        }),
        (!outcome.arm_code)
            .then(|| format!("ARM code {:?}, label {:?}", diagnosis.arm_code, sample.arm_code)),
        (!accepted).then(|| {
            format!(
                "cause {reason} ({:?}), accepted {:?}",
                diagnosis.cause.confidence, sample.accept
            )
        }),
        outcome.confidently_wrong.then(|| {
            format!("{reason} with high confidence, rejected {:?}", sample.reject_confident)
        }),
        (outcome.leaks > 0).then(|| format!("{} secrets survive", outcome.leaks)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !flaws.is_empty() {
        let proof = diagnosis.proof.first().map_or("", |proof| proof.text.as_str());
        misses.push(format!("{}: {} | {proof}", sample.id, flaws.join("; ")));
    }
    outcome
}

fn right_exit_code(sample: &Sample, diagnosis: &Diagnosis) -> bool {
    diagnosis.exit_code == sample.exit_code
        || sample
            .exit_code_also
            .iter()
            .any(|also| also.as_i64() == diagnosis.exit_code.map(i64::from))
}

/// The right name, or honestly several among which it is.
fn right_constant(sample: &Sample, diagnosis: &Diagnosis) -> bool {
    let right =
        |name: &Option<String>| *name == sample.constant || sample.constant_also.contains(name);
    right(&diagnosis.constant)
        || diagnosis.constant.is_none()
            && diagnosis.constant_candidates.iter().any(|name| right(&Some(name.clone())))
}

fn leaks(sample: &Sample, diagnosis: &Diagnosis) -> usize {
    let output = serde_json::to_string(diagnosis).unwrap_or_default();
    let evidence = serde_json::to_string(&Evidence::of_text(&sample.text)).unwrap_or_default();
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let shown = squeezed(&output) + &squeezed(&evidence);
    sample.secrets.iter().filter(|secret| shown.contains(&squeezed(secret))).count()
}
