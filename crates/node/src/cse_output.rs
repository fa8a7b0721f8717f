//! The output of the waiter: one JSON document on the standard output, and at most two lines on the standard
//! error. The extension reports only the last 4,096 bytes of each, so neither may be longer.

use bringup_diagnosis::redaction::redact;
use serde_json::{Map, Value};

use crate::outcome::Outcome;
use crate::summary::{Summary, safe};

/// The longest document on the standard output, with its line break.
const DOCUMENT: usize = 3_500;
/// The longest summary inside the document.
const INSIDE: usize = 1_000;
/// The longest summary line, with its line break.
const LINE: usize = 1_000;
/// The longest line for human readers, with its line break.
const SENTENCE: usize = 500;
/// How many characters of the output the line for human readers quotes.
const QUOTED: usize = 120;

/// The result in one line: the code first, the output shortened, the summary last.
pub(crate) fn document(outcome: &Outcome, summary: &Summary) -> String {
    let inside: Value = serde_json::from_str(&summary.encoded(INSIDE)).unwrap_or_default();
    let object = redacted(&outcome.object);
    let whole = Document { exit: outcome.exit, object: &object, inside: &inside };
    let (output, error) = (text_of(&object, "output"), text_of(&object, "error"));
    let room = DOCUMENT - 1;
    let all = (output.len(), error.len(), true);
    let fits = |(output, error, others): (usize, usize, bool)| {
        whole.encoded(output, error, others).len() <= room
    };
    // To fit, the document drops the beginning of the output first, then the end of the error, then the rest.
    let chosen = if fits(all) {
        all
    } else if fits((0, error.len(), true)) {
        (most(output.len(), |kept| fits((kept, error.len(), true))), error.len(), true)
    } else if fits((0, 0, true)) {
        (0, most(error.len(), |kept| fits((0, kept, true))), true)
    } else {
        let error = most(error.len().min(1_000), |kept| fits((0, kept, false)));
        (most(output.len(), |kept| fits((kept, error, false))), error, false)
    };
    whole.encoded(chosen.0, chosen.1, chosen.2) + "\n"
}

struct Document<'a> {
    exit: i32,
    object: &'a Map<String, Value>,
    inside: &'a Value,
}

impl Document<'_> {
    /// The document with this many bytes of the end of Output, and of the beginning of Error.
    fn encoded(&self, output: usize, error: usize, others: bool) -> String {
        let mut document = Map::new();
        document.insert("ExitCode".to_owned(), self.exit.to_string().into());
        for (key, value) in self.object {
            let key_matches = |name: &str| key.eq_ignore_ascii_case(name);
            let value = match value.as_str() {
                _ if key_matches("ExitCode") || key_matches("Bringup") => continue,
                Some(text) if key_matches("Output") => {
                    text[text.ceil_char_boundary(text.len().saturating_sub(output))..].into()
                }
                Some(text) if key_matches("Error") => {
                    text[..text.floor_char_boundary(error)].into()
                }
                _ if others => value.clone(),
                _ => continue,
            };
            document.insert(key.clone(), value);
        }
        document.insert("Bringup".to_owned(), self.inside.clone());
        safe(&Value::Object(document).to_string())
    }
}

/// The largest number up to `limit` for which `holds` is true, provided that it is true for all smaller
/// numbers.
fn most(limit: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, limit);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    let found = object.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
    found.and_then(|(_, value)| value.as_str()).unwrap_or_default()
}

/// The object without secrets in its texts.
pub(crate) fn redacted(object: &Map<String, Value>) -> Map<String, Value> {
    fn value_of(value: &Value) -> Value {
        match value {
            Value::String(text) => redact(text).text.into_string().into(),
            Value::Array(items) => items.iter().map(value_of).collect(),
            Value::Object(object) => Value::Object(redacted(object)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
    let clean = |(key, value): (&String, &Value)| (redact(key).text.into_string(), value_of(value));
    object.iter().map(clean).collect()
}

/// A sentence about a failed attempt, worded as in aks-node-controller, but short.
pub(crate) fn failure(outcome: &Outcome) -> String {
    let output = redact(outcome.text("Output")).text;
    let skipped = output.chars().count().saturating_sub(QUOTED);
    let end: String = output.chars().skip(skipped).collect();
    let error = redact(outcome.text("Error")).text.truncated(200);
    format!("provision failed: exitCode={} error={error} output={end}", outcome.exit)
}

/// The standard error: a line for human readers, if there is one, then the summary.
pub(crate) fn standard_error(sentence: Option<&str>, summary: &Summary) -> String {
    let sentence = sentence.map(|sentence| {
        // The sentence must stay on one line, whatever text it quotes.
        let line: String = sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{}\n", redact(&line).text.truncated(SENTENCE - 1))
    });
    format!("{}{}\n", sentence.unwrap_or_default(), summary.line(LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(output: &str) -> (String, Value) {
        let result = serde_json::json!({"Output": output, "ExitCode": 211, "Error": "", "X": "y"});
        let outcome = Outcome::read(&result.to_string()).unwrap();
        let text = document(&outcome, &Summary::new(211, "NAME"));
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    #[test]
    fn the_code_comes_first_and_the_summary_last() {
        let (text, _) = printed("short");
        assert!(text.starts_with(
            r#"{"ExitCode":"211","Output":"short","Error":"","X":"y","Bringup":{"v":1,"#
        ));
        assert!(text.ends_with("\"end\":1}}\n"));
    }

    #[test]
    fn the_end_of_a_long_output_is_kept_as_far_as_it_fits() {
        let original = "\"\\".repeat(1_500);
        let (text, value) = printed(&original);
        assert!(text.len() <= 3_500 && text.len() > 3_400, "{}", text.len());
        let kept = value["Output"].as_str().unwrap();
        assert!(original.ends_with(kept) && kept.len() > 1_000);
    }

    #[test]
    fn the_words_that_others_cut_at_are_not_printed_and_still_said() {
        let (text, value) = printed("see [stderr] and [stdout]");
        assert!(!text.contains("[stderr]") && !text.contains("[stdout]"));
        assert_eq!(value["Output"], "see [stderr] and [stdout]");
    }

    #[test]
    fn a_result_with_a_huge_key_still_fits() {
        let result = serde_json::json!({"ExitCode": "50", "SystemdSummary": "s".repeat(9_000), "Output": "o".repeat(9_000)});
        let outcome = Outcome::read(&result.to_string()).unwrap();
        let text = document(&outcome, &Summary::new(50, ""));
        assert!(text.len() <= 3_500 && text.starts_with(r#"{"ExitCode":"50","Output":"ooo"#));
    }

    #[test]
    fn the_standard_error_is_two_short_lines() {
        let outcome = Outcome::own(211, &"e".repeat(900), &"x\ny".repeat(900));
        let text = standard_error(Some(&failure(&outcome)), &Summary::new(211, ""));
        assert!(text.len() <= 1_500);
        assert_eq!(text.lines().count(), 2);
        assert!(text.starts_with("provision failed: exitCode=211 error=eee"));
    }
}
