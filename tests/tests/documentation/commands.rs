//! Commands in the documentation name what exists.

use std::path::PathBuf;

use anyhow::Result;

use crate::{make_targets, pages, prose, root};

/// The commands that pages show at a prompt, with their continuation lines, without comments.
fn typed() -> Result<Vec<(PathBuf, String)>> {
    let mut commands = Vec::new();
    for (name, page) in pages()? {
        for screen in page.split("```console\n").skip(1) {
            let screen = screen.split("```").next().unwrap_or_default().replace("\\\n", " ");
            for line in screen.lines().filter_map(|line| line.strip_prefix("$ ")) {
                let command = line.split("  #").next().unwrap_or(line).trim();
                commands.push((name.clone(), command.to_owned()));
            }
        }
    }
    Ok(commands)
}

/// Checks `cargo … -p PACKAGE … --test NAME`, `--bench` and `--example`.
fn complaint_about_cargo(words: &[&str]) -> Option<String> {
    let after = |flag: &str| {
        words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied()
    };
    let package = after("-p")?;
    let folder = match package {
        "bringup-end-to-end" => root().join("tests"),
        "bringup-testbed" => root().join("testbed"),
        "CRATE" => return None,
        other => root().join("crates").join(other.trim_start_matches("bringup-")),
    };
    if !folder.join("Cargo.toml").exists() {
        return Some(format!("there is no package {package}"));
    }
    for (flag, kind) in [("--test", "tests"), ("--example", "examples"), ("--bench", "benches")] {
        if let Some(name) = after(flag).filter(|name| *name != "NAME")
            && !folder.join(kind).join(format!("{name}.rs")).exists()
        {
            return Some(format!("{package} has no {kind}/{name}.rs"));
        }
    }
    None
}

/// Checks that each `--set KEY=…` is a value of the chart.
fn complaint_about_helm(words: &[&str], values: &str) -> Option<String> {
    let mut settings = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair[1]);
    settings.find_map(|setting| {
        let key = setting.trim_matches('"').split('=').next().unwrap_or_default();
        let mut lines = values.lines();
        for (depth, part) in key.split('.').enumerate() {
            // The keys of a map that users fill are unknown.
            if depth > 0 && key.contains(".labels.") && part != "labels" && depth > 1 {
                return None;
            }
            let wanted = format!("{}{part}:", "  ".repeat(depth));
            if !key.contains("KEY") && !lines.any(|line| line.starts_with(&wanted)) {
                return Some(format!("the chart has no value {key}"));
            }
        }
        None
    })
}

#[test]
fn every_command_that_is_typed_exists() -> Result<()> {
    let targets = make_targets()?;
    let values = std::fs::read_to_string(root().join("charts/bringup/values.yaml"))?;
    let folders = [
        "charts/",
        "crates/",
        "deploy/",
        "docs/",
        "examples/",
        "karpenter/",
        "manifests/",
        "testbed/",
        "tests/",
        "scripts/",
    ];
    let mut complaints = Vec::new();
    let commands = typed()?;
    assert!(commands.len() > 60, "{}", commands.len());
    for (name, command) in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        let complaint = match words.first().copied() {
            Some("make") => {
                let target = words.get(1).copied().unwrap_or_default();
                (!targets.contains(target)).then(|| format!("there is no target {target}"))
            }
            Some("cargo") => complaint_about_cargo(&words),
            Some("helm") => complaint_about_helm(&words, &values),
            _ => None,
        };
        complaints.extend(complaint.map(|why| format!("{}: {command}: {why}", name.display())));
        for word in words.iter().flat_map(|word| word.split(['<', '>', '"', '@'])) {
            if folders.iter().any(|folder| word.starts_with(folder)) && !root().join(word).exists()
            {
                complaints.push(format!("{}: {command}: there is no {word}", name.display()));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

/// `make …` and `cargo …` in running text, and in tables.
#[test]
fn every_make_target_and_cargo_test_that_is_named_exists() -> Result<()> {
    let targets = make_targets()?;
    for (name, page) in pages()? {
        for quoted in prose(&page).split('`').skip(1).step_by(2) {
            if quoted.contains("cargo ") {
                let words: Vec<&str> = quoted.split_whitespace().collect();
                let complaint = complaint_about_cargo(&words);
                assert_eq!(complaint, None, "{}: {quoted}", name.display());
            }
            let Some(target) = quoted.strip_prefix("make ").and_then(|rest| rest.split(' ').next())
            else {
                continue;
            };
            assert!(targets.contains(target), "{}: make {target}", name.display());
        }
    }
    Ok(())
}
