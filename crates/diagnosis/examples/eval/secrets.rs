//! Shapes in which secrets occur in logs: none may survive in any output of this crate, which are the
//! redacted text, the evidence and the diagnosis, each as JSON and as YAML.

use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_diagnosis::redaction::redact;
use bringup_diagnosis::{Evidence, diagnose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Misses, Score};

const SET: &str = "secrets-dev.jsonl";

/// Lines that decide a verdict. A secret may stand before or after them.
const DECIDING: [&str; 2] = [
    "curl: (28) Failed to connect to mcr.microsoft.com port 443 after 15001 ms: Timeout was reached",
    "timeout: failed to run command 'oras': No such file or directory",
];

#[derive(Debug, Deserialize)]
struct Shape {
    id: String,
    label: String,
    text_base64: String,
    secrets: Vec<String>,
}

pub(super) fn scores(directory: &Path, misses: &mut Misses) -> Result<Vec<Score>> {
    let Ok(text) = std::fs::read_to_string(directory.join(SET)) else {
        println!("{SET}: absent");
        return Ok(Vec::new());
    };
    let (mut alone, mut anywhere, mut cases) = (0, 0, 0);
    for line in text.lines() {
        let shape: Shape = serde_json::from_str(line).context("read a shape of a secret")?;
        let bytes = STANDARD.decode(&shape.text_base64).context("read the text of a shape")?;
        let text = String::from_utf8_lossy(&bytes);
        cases += 1;
        let is_removed = !survives(&text, &shape.secrets);
        let carrier = carriers(&text).into_iter().find(|text| survives(text, &shape.secrets));
        alone += usize::from(is_removed);
        anywhere += usize::from(is_removed && carrier.is_none());
        if !is_removed {
            misses.push(format!("{} {}: survives", shape.id, shape.label));
        } else if let Some(carrier) = carrier {
            misses.push(format!(
                "{} {}: survives on the deciding line: {carrier:?}",
                shape.id, shape.label
            ));
        }
    }
    Ok(vec![
        Score { set: SET, what: "removed from a text of its own", right: alone, cases },
        Score { set: SET, what: "removed on the deciding line too", right: anywhere, cases },
    ])
}

/// The same text on lines that decide the verdict.
fn carriers(text: &str) -> Vec<String> {
    let around = |line: &str| {
        [format!("{line} {text}"), format!("{text} {line}"), format!("{line}: {text}")]
    };
    DECIDING.into_iter().flat_map(around).collect()
}

/// Whether one of the secrets is in an output that is made of `text`.
fn survives(text: &str, secrets: &[String]) -> bool {
    let evidence = Evidence::of_text(text);
    let redaction = redact(text);
    let mut outputs = vec![redaction.text.to_string()];
    add_texts(&mut outputs, &redaction.text);
    add_texts(&mut outputs, &evidence);
    add_texts(&mut outputs, &diagnose(&evidence));
    let squeezed: Vec<String> = outputs.iter().map(|output| squeezed(output)).collect();
    secrets.iter().any(|secret| {
        outputs.iter().any(|output| output.contains(secret.as_str()))
            || squeezed.iter().any(|output| output.contains(&self::squeezed(secret)))
    })
}

/// Without white space and control characters.
fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && !letter.is_control()).collect()
}

/// Adds every text of an output, and the output as JSON and as YAML, which write the same texts with
/// escapes and line breaks of their own.
fn add_texts(texts: &mut Vec<String>, output: &impl Serialize) {
    fn add(texts: &mut Vec<String>, value: Value) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| add(texts, item)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, field)| add(texts, field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let value = serde_json::to_value(output).unwrap_or_default();
    texts.push(value.to_string());
    texts.push(serde_saphyr::to_string(output).unwrap_or_default());
    add(texts, value);
}
