//! Snapshots of complete explanations of a diagnosis and of a stored report: plain, with colours and as HTML.

#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

use bringup_diagnosis::{Evidence, Piece, Source, diagnose};
use bringup_explain::Explanation;

fn explanation(source: Source, name: &str, text: &str) -> Explanation {
    let pieces = vec![Piece::seen(source, name, text)];
    let evidence = Evidence { pieces, ..Evidence::default() };
    Explanation::of_diagnosis(&diagnose(&evidence), &evidence)
}

const ORAS: &str = "Enable failed: failed to execute command: command terminated with exit status=211\n\
                    [stdout]\n{ \"ExitCode\": \"211\", \"Output\": \"unexpected response from acr: timeout: \
                    failed to run command 'oras': No such file or directory\", \"Error\": \"\" }\n";

#[test]
fn a_missing_program_behind_a_misleading_code() {
    let told = explanation(Source::Extension, "extension vmssCSE", ORAS);
    insta::assert_snapshot!("missing_program_plain", told.text());
    insta::assert_snapshot!("missing_program_coloured", told.coloured().replace('\u{1b}', "ESC"));
    insta::assert_snapshot!("missing_program_html", told.html());
}

#[test]
fn a_quota_that_azure_names() {
    let text = "{\"error\":{\"code\":\"OperationNotAllowed\",\"message\":\"Operation could not be completed as it \
                results in exceeding approved standardDSv5Family Cores quota. Additional details - Deployment Model: \
                Resource Manager, Location: eastus, Current Limit: 10, Current Usage: 8, Additional Required: 4, \
                (Minimum) New Limit Required: 12.\"}}";
    insta::assert_snapshot!(explanation(Source::Arm, "ARM answer", text).text());
}

#[test]
fn a_text_in_which_no_rule_finds_a_cause() {
    let text = "Enable failed: failed to execute command: command terminated with exit status=1\n\
                [stdout]\nthe flux capacitor is out of plutonium\n";
    insta::assert_snapshot!(explanation(Source::Extension, "extension vmssCSE", text).text());
}

/// Texts as people paste them, of all kinds. What is shown has to tell a reader who has never seen the text
/// what happened, why that is sure, and what to type next.
#[test]
fn twelve_failures_as_people_paste_them() {
    const CASES: [&str; 12] = [
        "N002", "N005", "N015", "N020", "N044", "N060", "M006", "M032", "M042", "M050", "P005",
        "P034",
    ];
    let texts = include_str!("../../diagnosis/tests/texts/failures.jsonl");
    for id in CASES {
        let mark = format!("{{\"id\": \"{id}\"");
        let line = texts.lines().find(|line| line.starts_with(&mark)).unwrap();
        let text: serde_json::Value = serde_json::from_str(line).unwrap();
        let told = explanation(Source::Text, "paste.txt", text["text"].as_str().unwrap());
        insta::assert_snapshot!(format!("paste_{id}"), told.text());
    }
}
