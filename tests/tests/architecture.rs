//! The allowed dependencies between the crates. ARCHITECTURE.md draws the same arrows.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::Value;

/// Each crate with the workspace crates that it may depend on, tests excluded. No dependency points back.
const ARROWS: [(&str, &[&str]); 14] = [
    ("contract", &[]),
    ("diagnosis", &["contract"]),
    ("azure", &["contract"]),
    ("objects", &["contract"]),
    ("azure-sim", &[]),
    ("node", &["contract", "diagnosis"]),
    ("flex", &["azure", "contract", "objects"]),
    ("explain", &["contract", "diagnosis", "objects"]),
    ("runtime", &["azure", "contract", "diagnosis", "objects"]),
    ("observe", &["azure", "contract", "diagnosis", "objects", "runtime"]),
    ("provision", &["azure", "contract", "flex", "objects", "runtime"]),
    ("controller", &["azure", "observe", "provision", "runtime"]),
    (
        "cli",
        &[
            "azure",
            "contract",
            "controller",
            "diagnosis",
            "explain",
            "flex",
            "objects",
            "observe",
            "provision",
            "runtime",
        ],
    ),
    ("testbed", &[]),
];

/// Crates that work without Kubernetes, so that they can be used and tested anywhere.
const WITHOUT_KUBERNETES: [&str; 4] = ["contract", "diagnosis", "azure", "node"];

/// The dependencies of each crate of the workspace, apart from those of tests and build scripts.
fn dependencies() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]).into_iter().map(|package| {
        let all = list(&package["dependencies"]).into_iter();
        let used = all.filter(|one| one["kind"].is_null()).map(|one| text(&one["name"]));
        (text(&package["name"]), used.collect())
    });
    Ok(packages.collect())
}

#[test]
fn crates_use_each_other_only_along_the_arrows_of_the_architecture() {
    let mut found = dependencies().unwrap();
    found.remove("bringup-end-to-end");
    let ours = |names: &BTreeSet<String>| -> BTreeSet<String> {
        names.iter().filter_map(|name| name.strip_prefix("bringup-")).map(str::to_owned).collect()
    };
    let found: BTreeMap<String, BTreeSet<String>> = found
        .iter()
        .map(|(name, used)| (name.trim_start_matches("bringup-").to_owned(), ours(used)))
        .collect();
    let drawn: BTreeMap<String, BTreeSet<String>> = ARROWS
        .iter()
        .map(|(name, used)| {
            ((*name).to_owned(), used.iter().map(|one| (*one).to_owned()).collect())
        })
        .collect();
    assert_eq!(found, drawn);
}

#[test]
fn the_core_and_the_node_know_nothing_of_kubernetes_clients() {
    let found = dependencies().unwrap();
    for name in WITHOUT_KUBERNETES {
        let used = &found[&format!("bringup-{name}")];
        for banned in ["k8s-openapi", "kube"] {
            assert!(!used.contains(banned), "{name} uses {banned}");
        }
    }
}
