//! The schemas document the words of an enum; here each of these words is one that the programs
//! really write. A word that nothing writes is removed, not documented.
#![allow(clippy::unwrap_used, reason = "a source file that cannot be read is a failed test")]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use bringup_contract::cse::CodeSource;
use bringup_contract::flex::{CapacityType, FailureClass};
use bringup_contract::report::{CollectorState, Confidence, Phase, ProvisionMode};
use bringup_contract::{Cause, Family, Retryable};

/// Where values are made. The enums themselves are declared elsewhere in `contract`.
const WRITERS: [&str; 5] = ["contract/src/cse", "diagnosis", "observe", "flex", "provision"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn text_of_writers() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = vec![crates.join("contract/src/cse.rs")];
    for writer in WRITERS {
        let folder = crates.join(writer);
        let source = folder.join("src");
        sources(if source.is_dir() { &source } else { &folder }, &mut files);
    }
    let is_source = |path: &PathBuf| {
        let name = path.to_string_lossy();
        (name.ends_with(".rs") || name.ends_with(".toml")) && !name.contains("tests")
    };
    files
        .iter()
        .filter(|path| is_source(path))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

fn check<T: Debug + Copy>(text: &str, kind: &str, all: &[T], not_written: &mut Vec<String>) {
    for value in all {
        let name = format!("{kind}::{value:?}");
        let is_named = text.match_indices(&name).any(|(at, _)| {
            !text[at + name.len()..].starts_with(|next: char| next.is_ascii_alphanumeric())
        });
        if !is_named && !text.contains(&format!("\"{value:?}\"")) {
            not_written.push(name);
        }
    }
}

#[test]
fn every_documented_word_is_written_by_a_program() {
    let text = text_of_writers();
    let mut not_written = Vec::new();
    check(&text, "Cause", Cause::ALL, &mut not_written);
    check(&text, "Retryable", Retryable::ALL, &mut not_written);
    check(&text, "Confidence", Confidence::ALL, &mut not_written);
    check(&text, "Phase", Phase::ALL, &mut not_written);
    check(&text, "CollectorState", CollectorState::ALL, &mut not_written);
    check(&text, "CodeSource", CodeSource::ALL, &mut not_written);
    check(&text, "CapacityType", CapacityType::ALL, &mut not_written);
    check(&text, "Class", FailureClass::ALL, &mut not_written);
    check(&text, "Mode", ProvisionMode::ALL, &mut not_written);
    for family in Family::ALL {
        if !Cause::ALL.iter().any(|cause| cause.family() == *family) {
            not_written.push(format!("{family:?}"));
        }
    }
    assert!(not_written.is_empty(), "nothing writes {not_written:?}");
}
