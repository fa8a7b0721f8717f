//! Measures diagnosis and redaction on data that is kept outside the repository:
//! `eval DIRECTORY [--raise] [--misses]` scores the labelled failures, the shapes of secrets, the consoles of
//! real boots and the recorded runs of the bootstrap scripts in DIRECTORY and prints one table.
//!
//! Every score is compared with the committed baseline, `eval-baseline.json`. The program ends with
//! 1 if one is below it; `--raise` writes the higher ones into it. Cases that are not right are
//! listed if a score is below the baseline, or with `--misses`.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

mod baseline;
mod consoles;
mod failures;
mod recorded;
mod secrets;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use baseline::Baseline;

/// One row of the table: how many cases of a set are right in one respect.
struct Score {
    /// The file or directory of the cases.
    set: &'static str,
    what: &'static str,
    right: usize,
    cases: usize,
}

/// What is not right, a line each.
type Misses = Vec<String>;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().context("usage: eval DIRECTORY [--raise]")?;
    let directory = Path::new(directory);
    if !directory.is_dir() {
        println!("eval: skipped, {} is absent", directory.display());
        return Ok(ExitCode::SUCCESS);
    }
    let mut misses = Misses::new();
    let mut scores = failures::scores(directory, "failures-dev.jsonl", &mut misses)?;
    scores.extend(failures::scores(directory, "failures-dev-2.jsonl", &mut misses)?);
    scores.extend(secrets::scores(directory, &mut misses)?);
    scores.extend(consoles::scores(directory, &mut misses)?);
    scores.extend(recorded::scores(directory, &mut misses)?);
    let mut baseline = Baseline::read()?;
    let is_asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if is_asked("--raise") {
        baseline.raise(&scores)?;
    }
    let holds = scores.iter().all(|score| score.right >= baseline.of(score));
    if !holds || is_asked("--misses") {
        for miss in &misses {
            println!("{miss}");
        }
    }
    report(&scores, &baseline);
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the table.
fn report(scores: &[Score], baseline: &Baseline) {
    println!("\n{:<22} {:<38} {:>5}    {:>5}  baseline", "set", "what", "right", "cases");
    let (mut below, mut above) = (0, 0);
    for score in scores {
        let expected = baseline.of(score);
        let remark = match score.right.cmp(&expected) {
            std::cmp::Ordering::Less => {
                below += 1;
                "  BELOW"
            }
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => {
                above += 1;
                "  above"
            }
        };
        println!(
            "{:<22} {:<38} {:>5} of {:>5}  {expected:>8}{remark}",
            score.set, score.what, score.right, score.cases
        );
    }
    if below > 0 {
        println!("\neval: {below} scores are below the baseline; it may only rise");
    }
    if above > 0 {
        println!("\neval: {above} scores are above the baseline; `make eval RAISE=1` raises it");
    }
}
