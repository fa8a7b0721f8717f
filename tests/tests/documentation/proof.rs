//! `docs/proof.md` lists each requirement with its proof; `docs/security.md` lists what is protected.
//! Every test, file and make target that the two pages name exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{make_targets, root};

/// All source files in a folder.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "go") {
            files.push(path);
        }
    }
    Ok(())
}

/// The names of all tests: functions below `#[test]` and similar attributes, property tests, and Go
/// tests.
fn tests() -> Result<BTreeSet<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "testbed", "tests", "karpenter"] {
        sources(&root().join(folder), &mut files)?;
    }
    let mut names = BTreeSet::new();
    // The tests with the real Karpenter have a list of their own.
    let karpenter = std::fs::read_to_string(root().join("tests/tests/karpenter.rs"))?;
    let listed = karpenter.lines().filter_map(|line| line.trim().strip_suffix(','));
    names.extend(listed.filter_map(|line| line.split_once("::")).map(|(_, name)| name.to_owned()));
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let rust = line.split_once("fn ").map(|(_, rest)| rest);
            let go = line.strip_prefix("func Test").map(|_| &line["func ".len()..]);
            if let Some(rest) = go.or(rust) {
                let name = rest.split(['(', '<']).next().unwrap_or_default();
                if is_test || go.is_some() {
                    names.insert(name.to_owned());
                }
                is_test = false;
            } else if line.starts_with("#[") && line.contains("test") {
                is_test = true;
            } else if line.is_empty() || line.ends_with('}') {
                is_test = false;
            }
        }
    }
    Ok(names)
}

/// The last cell of each row of the tables under a heading (of the whole page without one).
fn last_cells<'p>(page: &'p str, heading: &str) -> Result<Vec<&'p str>> {
    let (_, text) = page.split_once(heading).context("the heading exists")?;
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|line| line.trim_end_matches('|').rsplit(" | ").next());
    Ok(cells.filter(|cell| !["shown by", "tests"].contains(&cell.trim())).collect())
}

/// The parts of a cell between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn check(page: &str, heading: &str, least: usize) -> Result<()> {
    let text = std::fs::read_to_string(root().join(page))?;
    let (tests, targets) = (tests()?, make_targets()?);
    let cells = last_cells(&text, heading)?;
    assert!(cells.len() >= least, "{page} has {} rows", cells.len());
    for cell in cells {
        assert!(quoted(cell).next().is_some(), "{page}: a row names no test: {cell}");
        for name in quoted(cell) {
            let exists = tests.contains(name)
                || name.strip_prefix("make ").is_some_and(|target| targets.contains(target))
                || (name.contains(['/', '.']) && root().join(name).exists());
            assert!(exists, "{page}: there is no test, file or target `{name}`");
        }
    }
    Ok(())
}

#[test]
fn every_row_of_the_proof_names_tests_that_exist() -> Result<()> {
    check("docs/proof.md", "\n## ", 60)
}

#[test]
fn everything_that_is_protected_names_tests_that_exist() -> Result<()> {
    check("docs/security.md", "\n## What is protected, and the test that shows it", 15)
}
