//! CASES.md lists the acceptance cases: every one has a test, and every test that it names exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

const CASES: &str = include_str!("../CASES.md");
/// The sections of the list, and how many cases each has.
const SECTIONS: [(&str, usize); 5] = [
    ("NodeClaims", 33),
    ("Machines of Cluster API", 35),
    ("The agent on the node", 51),
    ("The VM extension", 12),
    ("Flex machines", 59),
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The names of all functions in the tree.
fn functions() -> Result<BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["crates", "testbed", "tests"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    let mut names = BTreeSet::new();
    for file in files {
        for line in std::fs::read_to_string(file)?.lines() {
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
            names.extend(name.map(str::to_owned));
        }
    }
    Ok(names)
}

/// The number and the tests of each case of a section.
fn cases(section: &str) -> Result<Vec<(usize, Vec<&'static str>)>> {
    let (_, text) = CASES.split_once(&format!("\n## {section}\n")).context("the section exists")?;
    let text = text.split("\n## ").next().unwrap_or_default();
    let rows = text.lines().filter_map(|line| {
        let number = line.trim_start_matches('|').split('|').next()?.trim().parse().ok()?;
        let tests = line.rsplit('|').nth(1)?.split('`').skip(1).step_by(2);
        Some((number, tests.collect()))
    });
    Ok(rows.collect())
}

#[test]
fn every_case_of_every_section_is_listed_with_a_test() -> Result<()> {
    assert_eq!(CASES.matches("\n## ").count(), SECTIONS.len());
    for (section, count) in SECTIONS {
        let cases = cases(section)?;
        let numbers: Vec<usize> = cases.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{section}");
        for (number, tests) in cases {
            assert!(!tests.is_empty(), "{section}: case {number} has no test");
        }
    }
    Ok(())
}

#[test]
fn every_test_of_the_list_exists() -> Result<()> {
    let functions = functions()?;
    for (section, _) in SECTIONS {
        for (number, tests) in cases(section)? {
            for test in tests {
                assert!(functions.contains(test), "{section}, case {number}: no function {test}");
            }
        }
    }
    Ok(())
}
