//! Serial consoles of real boots, healthy and broken.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source, Verdict, diagnose};

use super::{Misses, Score};

const SET: &str = "serial-logs";

/// What is known of a boot.
#[derive(Debug)]
enum Expected {
    Succeeded,
    NotFailed,
    /// Failed with this cause; the first proof holds this text.
    Failed(&'static str, &'static str),
}

struct Console {
    file: &'static str,
    /// Whether the summary of bringup-node counts, or is removed first.
    has_summary: bool,
    expected: Expected,
}

const fn console(file: &'static str, expected: Expected) -> Console {
    Console { file, has_summary: true, expected }
}

const CONSOLES: &[Console] = &[
    console("v3-ok-serial.log", Expected::Succeeded),
    Console { file: "v3-ok-serial.log", has_summary: false, expected: Expected::NotFailed },
    console("v4-serial.log", Expected::Failed("BinaryMissing", "")),
    console("v5-serial.log", Expected::Failed("ClockSkew", "")),
    console(
        "v7-join23-serial.log",
        Expected::Failed("ContainerRuntimeFailure", "its version is 4"),
    ),
    console("v8-boot1.log", Expected::Succeeded),
    console("v8-serial.log", Expected::Succeeded),
    console("v9-boot1-powercut.log", Expected::NotFailed),
];

pub(super) fn scores(directory: &Path, misses: &mut Misses) -> Result<Vec<Score>> {
    let directory = directory.join(SET);
    if !directory.is_dir() {
        println!("{SET}: absent");
        return Ok(Vec::new());
    }
    let mut right = 0;
    for console in CONSOLES {
        let path = directory.join(console.file);
        let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        right += usize::from(is_right(console, &String::from_utf8_lossy(&bytes), misses));
    }
    Ok(vec![Score { set: SET, what: "verdict right", right, cases: CONSOLES.len() }])
}

fn is_right(console: &Console, text: &str, misses: &mut Misses) -> bool {
    let is_kept = |line: &&str| console.has_summary || !line.contains("BRINGUP-NODE/");
    let text: String = text.split_inclusive('\n').filter(is_kept).collect();
    let piece = Piece::seen(Source::SerialLog, console.file, &text);
    let diagnosis = diagnose(&Evidence { pieces: vec![piece], ..Evidence::default() });
    let fits = fits(&console.expected, &diagnosis);
    if !fits {
        misses.push(format!(
            "{}: {:?} {} ({:?}), expected {:?} | {}",
            console.file,
            diagnosis.verdict,
            diagnosis.cause.reason.reason(),
            diagnosis.cause.confidence,
            console.expected,
            diagnosis.proof.first().map_or("", |proof| proof.text.as_str()),
        ));
    }
    fits
}

fn fits(expected: &Expected, diagnosis: &Diagnosis) -> bool {
    match expected {
        Expected::Succeeded => diagnosis.verdict == Verdict::Succeeded,
        Expected::NotFailed => diagnosis.verdict != Verdict::Failed,
        Expected::Failed(cause, proof) => {
            diagnosis.verdict == Verdict::Failed
                && diagnosis.cause.reason.reason() == *cause
                && diagnosis.proof.first().is_some_and(|first| first.text.contains(proof))
        }
    }
}
