//! The generated pages are those of the rules and the catalogue.

#![allow(clippy::unwrap_used, reason = "a page that cannot be read is a failed test")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{bringup, workspace};

fn pages(directory: &Path) -> BTreeMap<String, String> {
    let causes = fs::read_dir(directory.join("causes")).unwrap().map(|entry| entry.unwrap().path());
    causes
        .chain([directory.join("codes.md")])
        .map(|path| {
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_pages_about_causes_and_codes_are_not_stale() {
    let made = tempfile::tempdir().unwrap();
    let rules = workspace().join("crates/diagnosis/src/rules").display().to_string();
    let ran = bringup(&["docs", &made.path().display().to_string(), "--rules", &rules]);
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
        if ["codes.md", "causes/README.md", "causes/Unknown.md"].contains(&name.as_str()) {
            continue;
        }
        for heading in ["## Looks like", "## Why the code misleads", "## What to do", "## Signs"] {
            assert!(page.contains(heading), "{name}: {heading}");
        }
    }
}

/// Each `$ bringup …` in a page, with what the program answers now in place of what stands there.
fn with_screens(page: &str) -> String {
    let mut fresh = String::new();
    let mut rest = page;
    while let Some((before, block)) = rest.split_once("```console\n") {
        let (screen, after) = block.split_once("```").unwrap();
        let command = screen.lines().next().unwrap();
        let words: Vec<&str> = command.strip_prefix("$ bringup ").unwrap().split(' ').collect();
        let answer = bringup(&words).out;
        fresh.extend([before, "```console\n", command, "\n", &answer, "```"]);
        rest = after;
    }
    fresh + rest
}

#[test]
fn the_screens_in_the_guide_are_real() {
    let path = workspace().join("docs/diagnosis.md");
    let page = fs::read_to_string(&path).unwrap();
    let fresh = with_screens(&page);
    if std::env::var_os("BRINGUP_UPDATE_DOCS").is_some() {
        fs::write(&path, &fresh).unwrap();
        return;
    }
    assert!(
        page == fresh,
        "docs/diagnosis.md is stale: run `BRINGUP_UPDATE_DOCS=1 cargo test -p bringup-cli --test docs`"
    );
}
