//! Scenario files: an error names its position.

use bringup_azure_sim::scenario::{self, ScenarioError};

fn complaint(yaml: &str) -> String {
    scenario::parse("bad.yaml", yaml).expect_err("not a scenario").to_string()
}

#[test]
fn an_unknown_field_is_named_with_file_line_and_column() {
    let said = complaint("seed: 1\nrules:\n  - name: x\n    wen: {}\n");
    assert!(said.starts_with("bad.yaml:4:5: "), "{said}");
    assert!(said.contains("wen") && said.contains("when"), "{said}");
}

#[test]
fn a_wrong_value_is_named_with_what_was_expected() {
    let said = complaint("rules:\n  - name: x\n    boot: {os: tired}\n");
    assert!(said.starts_with("bad.yaml:3:"), "{said}");
    assert!(said.contains("times-out"), "the possible values are listed: {said}");
    let said = complaint("quirks:\n  listsLag: soon\n");
    assert!(said.starts_with("bad.yaml:2:"), "{said}");
    assert!(said.contains("such as 90s, 15m or 1h 30m"), "{said}");
}

#[test]
fn broken_yaml_is_named_with_its_place() {
    let said = complaint("rules: [\n");
    assert!(said.starts_with("bad.yaml:"), "{said}");
}

#[test]
fn a_file_that_is_not_there_says_which() {
    let error = scenario::load("no/such/file.yaml".as_ref()).expect_err("there is no such file");
    assert!(matches!(error, ScenarioError::Read { .. }));
    assert_eq!(error.to_string(), "cannot read scenario no/such/file.yaml");
}

#[test]
fn an_empty_file_is_a_healthy_azure() {
    assert!(scenario::parse("empty.yaml", "\n").expect("usable").rules.is_empty());
}
