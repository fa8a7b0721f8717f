//! Compares our results with recorded configurations: `goldens DIRECTORY`, where DIRECTORY contains
//! `nodeconfig-golden/` and `nodeconfig-contract.json`. Prints the differences by variable; exits with 1 if
//! there
//! is any.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::node_config::{
    COMMAND, Components, ConfigError, ENUMS, Environment, Host, NodeConfig, SCHEMA,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Index {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    case: String,
    expect: String,
}

#[derive(Deserialize)]
struct Golden {
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

fn main() -> Result<ExitCode> {
    let directory = std::env::args().nth(1).context("usage: goldens DIRECTORY")?;
    let directory = Path::new(&directory);
    let goldens = directory.join("nodeconfig-golden");
    let index: Index = read(&goldens.join("INDEX.json"))?;
    let components = bytes(&goldens.join("components.sample.json"))?;
    let host = Host {
        components: Ok(Components::parse(&components).map_err(anyhow::Error::msg)?),
        ..Host::default()
    };
    let mut right = 0;
    for case in &index.cases {
        let differences = compare(&goldens, case, &host)?;
        if differences.is_empty() {
            right += 1;
        } else {
            println!("{}: {}", case.case, differences.join("; "));
        }
    }
    println!("node configurations: right in {right} of {}", index.cases.len());
    let same = same_contract(&read(&directory.join("nodeconfig-contract.json"))?)?;
    let done = right == index.cases.len() && same;
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    serde_json::from_slice(&bytes(path)?).with_context(|| format!("read {}", path.display()))
}

fn compare(goldens: &Path, case: &Case, host: &Host) -> Result<Vec<String>> {
    let text = bytes(&goldens.join(format!("{}.config.json", case.case)))?;
    let config = NodeConfig::parse(&text);
    if case.expect == "reject" {
        return Ok(refusal(&case.case, config.err()));
    }
    let config = match config {
        Ok(config) => config,
        Err(error) => return Ok(vec![format!("refused: {error}")]),
    };
    let mut golden: Golden = read(&goldens.join(format!("{}.env.json", case.case)))?;
    if case.case.starts_with("06-") {
        // The only variable whose value must differ from the record.
        golden.env.insert("ARM_RESOURCE_ENDPOINT".into(), "https://management.custom/".into());
    }
    let ours = Environment::of(&config.configuration, host)?;
    let ours: BTreeMap<String, String> =
        ours.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut differences = Vec::new();
    for name in golden.env.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        match (golden.env.get(name), ours.get(name)) {
            (Some(theirs), Some(ours)) if same(name, theirs, ours)? => {}
            (Some(_), Some(_)) => differences.push(format!("{name} differs")),
            (Some(_), None) => differences.push(format!("{name} is missing")),
            (None, _) => differences.push(format!("{name} is too much")),
        }
    }
    let command: Vec<String> = COMMAND.iter().map(|word| collapsed(word)).collect();
    if command != golden.args.iter().map(|word| collapsed(word)).collect::<Vec<_>>() {
        differences.push("the command differs".to_owned());
    }
    Ok(differences)
}

/// Compares an error with the recorded expectation for a refused configuration.
fn refusal(case: &str, error: Option<ConfigError>) -> Vec<String> {
    let Some(error) = error else { return vec!["not refused".to_owned()] };
    let said = error.to_string();
    let wanted: &[&str] = match case {
        "00-empty" => &["unsupported version: "],
        "15-type-error-midway" => &["line 1 column 75", "enable_unattended_upgrade"],
        "16-truncated" => &["unexpected end of input", "line 1 column"],
        _ => &[],
    };
    let missing = wanted.iter().filter(|words| !said.contains(**words));
    missing.map(|words| format!("`{words}` is not in `{said}`")).collect()
}

fn same(name: &str, theirs: &str, ours: &str) -> Result<bool> {
    let decoded = || -> Result<(String, String)> {
        let decode = |text: &str| -> Result<String> {
            Ok(String::from_utf8(STANDARD.decode(text).context(name.to_owned())?)?)
        };
        Ok((decode(theirs)?, decode(ours)?))
    };
    Ok(match name {
        "CONTAINERD_CONFIG_CONTENT" | "CONTAINERD_CONFIG_NO_GPU_CONTENT" => {
            let (theirs, ours) = decoded()?;
            toml::from_str::<toml::Table>(&theirs)? == toml::from_str::<toml::Table>(&ours)?
        }
        "KUBELET_CONFIG_FILE_CONTENT" if theirs.is_empty() || ours.is_empty() => theirs == ours,
        "KUBELET_CONFIG_FILE_CONTENT" => {
            let (theirs, ours) = decoded()?;
            serde_json::from_str::<Value>(&theirs)? == serde_json::from_str::<Value>(&ours)?
        }
        "SYSCTL_CONTENT" => {
            let (theirs, ours) = decoded()?;
            theirs.lines().collect::<BTreeSet<_>>() == ours.lines().collect::<BTreeSet<_>>()
        }
        "KUBENET_TEMPLATE" => {
            let (theirs, ours) = decoded()?;
            collapsed(&theirs) == collapsed(&ours)
        }
        name if name.starts_with("LOCALDNS_") && name.contains("COREFILE") => {
            let (theirs, ours) = decoded()?;
            tokens(&theirs) == tokens(&ours)
        }
        _ => theirs == ours,
    })
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tokens(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
}

/// Compares names, numbers, types and labels.
fn same_contract(contract: &Value) -> Result<bool> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().context("a list");
    let mut theirs = BTreeSet::new();
    for message in list(&contract["messages"])? {
        for field in list(&message["fields"])? {
            let row = [&message["message"], &field["name"], &field["type"], &field["label"]];
            theirs.insert((row.map(word), field["number"].as_i64()));
        }
    }
    let ours: BTreeSet<_> = SCHEMA
        .iter()
        .map(|(message, name, number, kind, label)| {
            ([message, name, kind, label].map(|one| (*one).to_owned()), Some(i64::from(*number)))
        })
        .collect();
    let mut values = BTreeSet::new();
    for listed in list(&contract["enums"])? {
        for value in list(&listed["values"])? {
            let number = value["number"].as_i64().context("a number")?;
            values.insert((word(&listed["enum"]), word(&value["name"]), number));
        }
    }
    let our_values: BTreeSet<_> = ENUMS
        .iter()
        .map(|(listed, name, number)| {
            ((*listed).to_owned(), (*name).to_owned(), i64::from(*number))
        })
        .collect();
    if theirs.is_empty() || values.is_empty() {
        bail!("the contract has no fields");
    }
    for (row, number) in theirs.symmetric_difference(&ours) {
        println!("contract: {} {number:?} differs", row.join(" "));
    }
    for row in values.symmetric_difference(&our_values) {
        println!("contract: {row:?} differs");
    }
    let same = theirs == ours && values == our_values;
    println!("contract: {} fields and {} enum values, same: {same}", ours.len(), our_values.len());
    Ok(same)
}
