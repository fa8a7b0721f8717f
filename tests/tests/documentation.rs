//! The documentation: links lead somewhere, commands can be typed, every page is in the table of contents.

#[path = "documentation/commands.rs"]
mod commands;
#[path = "documentation/links.rs"]
mod links;
#[path = "documentation/proof.rs"]
mod proof;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every page of Markdown at the root and in `docs`, by its path from the root.
fn pages() -> Result<Vec<(PathBuf, String)>> {
    let mut pages = Vec::new();
    for folder in [".", "docs", "docs/causes", "docs/adr", ".github"] {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "md") {
                let name = Path::new(folder).join(path.file_name().context("a file has a name")?);
                pages.push((name, std::fs::read_to_string(path)?));
            }
        }
    }
    Ok(pages)
}

/// The page without its fenced code blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

fn make_targets() -> Result<BTreeSet<String>> {
    let makefile = std::fs::read_to_string(root().join("Makefile"))?;
    let names = makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name);
    Ok(names.filter(|name| !name.contains([' ', '$', '\t'])).map(str::to_owned).collect())
}

/// Every registered metric, and every metric of the sample, is described.
#[test]
fn every_metric_is_described() -> Result<()> {
    let page = std::fs::read_to_string(root().join("docs/alerts.md"))?;
    let sample = std::fs::read_to_string(root().join("charts/tests/metrics.txt"))?;
    let families = sample.lines().filter_map(|line| line.strip_prefix("# HELP "));
    for family in families.filter_map(|line| line.split(' ').next()) {
        assert!(page.contains(&format!("| `{family}` |")), "docs/alerts.md lacks {family}");
    }
    for source in
        ["observe/src/metrics.rs", "runtime/src/metrics.rs", "provision/src/reconciler/metrics.rs"]
    {
        let text = std::fs::read_to_string(root().join("crates").join(source))?;
        for part in text.split("register(\n").skip(1) {
            let name = part.trim_start().split('"').nth(1).unwrap_or_default();
            assert!(
                page.contains(&format!("`bringup_{name}")),
                "docs/alerts.md lacks bringup_{name}"
            );
        }
    }
    Ok(())
}

/// CI on GitHub runs the same checks as a contributor, with the compiler versions that the project
/// requires.
#[test]
fn the_workflow_runs_make_test() -> Result<()> {
    let workflow = std::fs::read_to_string(root().join(".github/workflows/test.yaml"))?;
    let steps: BTreeSet<&str> =
        workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: ")).collect();
    assert_eq!(steps, BTreeSet::from(["make docs", "make test", "rustup show"]));
    assert!(make_targets()?.is_superset(&["docs", "test"].map(str::to_owned).into()));
    let toolchain = std::fs::read_to_string(root().join("rust-toolchain.toml"))?;
    assert!(toolchain.contains("channel = "), "rustup show installs what this file names");
    for module in ["testbed/go.mod", "karpenter/go.mod"] {
        let text = std::fs::read_to_string(root().join(module))?;
        let version = text.lines().find_map(|line| line.strip_prefix("go ")).context("go.mod")?;
        let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
        assert!(workflow.contains(&format!("go-version: \"{minor}\"")), "{module}: {version}");
    }
    let ci = std::fs::read_to_string(root().join(".ci/run"))?;
    assert!(ci.contains("exec make test"), "both CIs run the same");
    Ok(())
}
