//! The generated pages match the rules and the catalogue.

#![allow(clippy::unwrap_used, reason = "a page that cannot be read is a failed test")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{bringup, workspace};

fn pages(directory: &Path) -> BTreeMap<String, String> {
    let causes = fs::read_dir(directory.join("causes")).unwrap().map(|entry| entry.unwrap().path());
    causes
        .chain(["codes.md", "cli.md", "crds.md"].map(|page| directory.join(page)))
        .map(|path| {
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_generated_pages_are_not_stale() {
    let made = tempfile::tempdir().unwrap();
    let ran = bringup(&["docs", &made.path().display().to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (made, kept) = (pages(made.path()), pages(&workspace().join("docs")));
    let again = "run `cargo run -p bringup-cli -- docs docs`";
    assert_eq!(made.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>(), "{again}");
    for (name, page) in &made {
        assert!(kept[name] == *page, "docs/{name} is stale: {again}");
    }
}

#[test]
fn every_page_of_a_rule_says_what_to_do() {
    for (name, page) in pages(&workspace().join("docs")) {
        if !name.starts_with("causes/")
            || name.ends_with("README.md")
            || name.ends_with("Unknown.md")
        {
            continue;
        }
        for heading in ["## Looks like", "## Why the code misleads", "## What to do", "## Signs"] {
            assert!(page.contains(heading), "{name}: {heading}");
        }
    }
}

/// The handwritten pages, by their path from the root.
fn handwritten() -> Vec<(String, String)> {
    let root = workspace();
    let generated = ["codes.md", "cli.md", "crds.md", "node-config.md", "SUMMARY.md"];
    let mut pages: Vec<_> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().into_string().unwrap()))
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md"))
        .filter(|name| !generated.iter().any(|it| name.ends_with(it)))
        .chain(["README.md".to_owned()])
        .map(|name| (fs::read_to_string(root.join(&name)).unwrap(), name))
        .map(|(text, name)| (name, text))
        .collect();
    pages.sort();
    assert!(pages.len() > 20, "{}", pages.len());
    pages
}

/// Each `bringup …` command at a prompt in a page, also after a pipe, without comment and redirection.
fn typed(page: &str) -> Vec<String> {
    let screens = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = screens.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    let parts = lines.flat_map(|line| {
        let command = line.split("  #").next().unwrap();
        command.split(" | ").flat_map(|part| part.split("; "))
    });
    let ours = parts.filter_map(|part| {
        let part = part.split(" >").next().unwrap().trim();
        part.strip_prefix("bringup ").or_else(|| part.strip_prefix("kubectl bringup "))
    });
    ours.map(str::to_owned).collect()
}

/// A folder with sample files under the names that the pages use.
fn samples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = workspace().join("crates/cli/tests/fixtures");
    let copy = |name: &str, from: &Path| {
        fs::copy(from, folder.path().join(name)).unwrap();
    };
    for name in ["extension.txt", "extension.json", "provision.json", "boot.log", "FILE..."] {
        copy(name, &fixtures.join("extension.txt"));
    }
    fs::create_dir_all(folder.path().join("crates/cli/tests")).unwrap();
    std::os::unix::fs::symlink(&fixtures, folder.path().join("crates/cli/tests/fixtures")).unwrap();
    folder
}

#[test]
fn every_command_in_the_documentation_is_understood_and_what_needs_no_cluster_works() {
    let folder = samples();
    let (mut offline, mut online) = (0, 0);
    for (name, page) in handwritten() {
        for line in typed(&page) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
            command.args(&words).current_dir(folder.path());
            // Neither a cluster nor Azure can be reached.
            command.env("KUBECONFIG", folder.path().join("no-kubeconfig")).env("PATH", "");
            command.env_remove("KUBERNETES_SERVICE_HOST");
            let input = fs::File::open(folder.path().join("extension.txt")).unwrap();
            let output = command.stdin(input).output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            if ["why", "reports", "report", "boot-log", "flex"].contains(&words[0]) {
                assert_eq!(code, Some(1), "{name}: bringup {line}: {err}");
                online += 1;
            } else {
                assert!(matches!(code, Some(0 | 10)), "{name}: bringup {line}: {code:?} {err}");
                offline += 1;
            }
        }
    }
    assert!(offline >= 6 && online >= 10, "{offline} offline, {online} online");
}

/// The page with the current output of each `bringup …` command that stands alone in a screen.
fn with_screens(page: &str) -> String {
    let mut fresh = String::new();
    let mut rest = page;
    while let Some((before, block)) = rest.split_once("```console\n") {
        let (screen, after) = block.split_once("```").unwrap();
        fresh.extend([before, "```console\n"]);
        let (command, shown) = screen.split_once('\n').unwrap();
        let words = command.strip_prefix("$ bringup diagnose ").filter(|_| !shown.is_empty());
        match words {
            Some(file) => fresh.extend([command, "\n", &bringup(&["diagnose", file]).out]),
            None => fresh.push_str(screen),
        }
        fresh.push_str("```");
        rest = after;
    }
    fresh + rest
}

#[test]
fn the_screens_in_the_guide_are_real() {
    let path = workspace().join("docs/why.md");
    let page = fs::read_to_string(&path).unwrap();
    let fresh = with_screens(&page);
    if std::env::var_os("BRINGUP_UPDATE_DOCS").is_some() {
        fs::write(&path, &fresh).unwrap();
        return;
    }
    assert!(page.contains("\nFAILED: "), "docs/why.md shows an answer");
    assert!(
        page == fresh,
        "docs/why.md is stale: run `BRINGUP_UPDATE_DOCS=1 cargo test -p bringup-cli --test docs`"
    );
}

/// Checks that the page of a cause and its rule give the same advice.
#[test]
fn the_remedy_of_a_rule_is_on_its_page() {
    for (name, page) in pages(&workspace().join("docs")) {
        let Some(cause) = name.strip_prefix("causes/").and_then(|name| name.strip_suffix(".md"))
        else {
            continue;
        };
        if ["README", "Unknown"].contains(&cause) {
            continue;
        }
        let known = bringup(&["explain", cause, "--output", "json"]).json();
        let remedy =
            known["cause"]["remedy"].as_str().unwrap_or_else(|| panic!("{cause}: {known}"));
        assert!(page.contains(&format!("## What to do\n\n{remedy}\n")), "{name}: {remedy}");
    }
}
