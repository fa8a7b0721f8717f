//! Measures the diagnosis: `eval DIRECTORY`, where DIRECTORY holds labelled failures
//! (`failures-dev.jsonl`) and, if there are any, recorded runs of the bootstrap scripts
//! (`cse-failures/`). Prints a table; ends with 1 when a target is missed.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, diagnose};
use serde::Deserialize;
use serde_json::Value;

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
struct Score {
    exit_code: bool,
    constant: bool,
    arm_code: bool,
    cause: bool,
    confidently_wrong: bool,
    leaks: usize,
}

fn main() -> Result<ExitCode> {
    let directory = std::env::args().nth(1).context("usage: eval DIRECTORY")?;
    let path = Path::new(&directory).join("failures-dev.jsonl");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let samples: Vec<Sample> = text
        .lines()
        .map(|line| serde_json::from_str(line).context("read a labelled failure"))
        .collect::<Result<_>>()?;
    let scores: Vec<Score> = samples.iter().map(score).collect();
    let met = report(&scores);
    let recorded = recorded_runs(&Path::new(&directory).join("cse-failures"))?;
    Ok(if met && recorded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A recorded run of the bootstrap scripts with a fault made on purpose.
#[derive(Debug, Deserialize)]
struct Run {
    case: String,
    cause: String,
    evidence: Vec<String>,
}

/// The cause and one of its evidence strings must come from the result alone and from the log
/// alone.
fn recorded_runs(directory: &Path) -> Result<bool> {
    let Ok(index) = std::fs::read_to_string(directory.join("INDEX.json")) else {
        println!("recorded runs: none here");
        return Ok(true);
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
            let diagnosis = diagnose(&Evidence::of_text(&String::from_utf8_lossy(&bytes)));
            let quoted = diagnosis
                .proof
                .iter()
                .any(|proof| run.evidence.iter().any(|line| proof.text.contains(line.as_str())));
            let reason = diagnosis.cause.reason.reason();
            if reason == run.cause && quoted {
                right += 1;
            } else {
                println!(
                    "{} from {file}: {reason}, expected {}; quoted: {quoted}",
                    run.case, run.cause
                );
            }
        }
    }
    println!("recorded runs: cause and proof right in {right} of {}", runs.len() * 2);
    Ok(right == runs.len() * 2)
}

fn score(sample: &Sample) -> Score {
    let diagnosis = diagnose(&Evidence::of_text(&sample.text));
    let reason = diagnosis.cause.reason.reason();
    let accepted = sample.accept.iter().any(|accepted| accepted == reason);
    let rejected = sample.reject_confident.iter().any(|rejected| rejected == reason);
    let high = diagnosis.cause.confidence == Confidence::High;
    let score = Score {
        exit_code: right_exit_code(sample, &diagnosis),
        constant: right_constant(sample, &diagnosis),
        arm_code: diagnosis.arm_code == sample.arm_code
            || sample.arm_code_also.contains(&diagnosis.arm_code),
        cause: accepted,
        confidently_wrong: high && (!accepted || rejected),
        leaks: leaks(sample, &diagnosis),
    };
    let flaws: Vec<String> = [
        (!score.exit_code)
            .then(|| format!("exit code {:?}, label {:?}", diagnosis.exit_code, sample.exit_code)),
        (!score.constant).then(|| {
            format!(
                "constant {:?} {:?}, label {:?}",
                diagnosis.constant, diagnosis.constant_candidates, sample.constant
            )
        }),
        (!score.arm_code)
            .then(|| format!("ARM code {:?}, label {:?}", diagnosis.arm_code, sample.arm_code)),
        (!accepted).then(|| {
            format!(
                "cause {reason} ({:?}), accepted {:?}",
                diagnosis.cause.confidence, sample.accept
            )
        }),
        score.confidently_wrong.then(|| {
            format!("{reason} with high confidence, rejected {:?}", sample.reject_confident)
        }),
        (score.leaks > 0).then(|| format!("{} secrets survive", score.leaks)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !flaws.is_empty() {
        println!("{}: {}", sample.id, flaws.join("; "));
    }
    score
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

fn report(scores: &[Score]) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "hundreds of samples")]
    let share = |right: usize| 100.0 * right as f64 / scores.len() as f64;
    let count = |right: fn(&Score) -> bool| scores.iter().filter(|score| right(score)).count();
    let exit_code = count(|score| score.exit_code);
    let constant = count(|score| score.constant);
    let arm_code = count(|score| score.arm_code);
    let cause = count(|score| score.cause);
    let wrong = count(|score| score.confidently_wrong);
    let leaked: usize = scores.iter().map(|score| score.leaks).sum();
    let rows = [
        ("exit code right", exit_code, "100 %", exit_code == scores.len()),
        ("constant right or honestly ambiguous", constant, "100 %", constant == scores.len()),
        ("ARM code right", arm_code, "-", true),
        ("cause accepted", cause, ">= 95 %", share(cause) >= 95.0),
    ];
    println!(
        "\n{:<40} {:>5} of {:<5} {:>8}  {:<8}",
        "labelled failures",
        "",
        scores.len(),
        "",
        "target"
    );
    for (what, right, target, met) in rows {
        println!(
            "{what:<40} {right:>5}          {:>6.1} %  {target:<8} {}",
            share(right),
            if met { "" } else { "MISSED" }
        );
    }
    println!(
        "{:<40} {wrong:>5}          {:>8}  {:<8} {}",
        "wrong with high confidence",
        "",
        "0",
        if wrong == 0 { "" } else { "MISSED" }
    );
    println!(
        "{:<40} {leaked:>5}          {:>8}  {:<8} {}",
        "secrets that survive",
        "",
        "0",
        if leaked == 0 { "" } else { "MISSED" }
    );
    rows.iter().all(|row| row.3) && wrong == 0 && leaked == 0
}
