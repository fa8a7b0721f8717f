//! Finds the summary of bringup-node in the output of an extension.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::says;
use crate::Cause;

/// The summary of bringup-node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSummary {
    /// Whether the summary comes from `wait` or `join`, whose exit codes differ from those of the AKS
    /// scripts.
    pub waited: bool,
    /// The exit code.
    pub exit: Option<i32>,
    /// The exit code of the AKS scripts, or of the other bootstrap that `wait` waited for.
    pub code: Option<i32>,
    /// The name of the exit code.
    pub name: Option<String>,
    /// The cause.
    pub cause: Option<Cause>,
    /// The certainty of the cause: high, medium or low.
    pub confidence: Option<String>,
    /// Up to three log lines that prove the cause.
    pub evidence: Vec<String>,
    /// The findings of the checks before the bootstrap, such as `oras:absent`.
    pub preflight: Vec<String>,
    /// Whether the summary is complete.
    pub whole: bool,
}

/// The tag in front of the summary.
const TAG: &str = "BRINGUP-NODE/1 ";
/// The key of the summary in a result.
const KEY: &str = "\"Bringup\"";
/// The largest summary that is read, in bytes: the most that bringup-node prints.
const LONGEST: usize = 64 * 1024;
/// How many summaries of a text are tried, from its end. A node writes one per attempt, but the text may
/// contain anything.
const MOST: usize = 16;

/// The last complete summary in a text, else the leading keys of an incomplete one.
pub(super) fn node_summary(text: &str) -> Option<NodeSummary> {
    if !says(text, TAG) && !says(text, KEY) {
        return None;
    }
    let objects = last_of(text, TAG).chain(last_of(text, KEY).filter_map(|rest| {
        let rest = rest.trim_start();
        rest.strip_prefix(':').map(str::trim_start)
    }));
    let mut objects = objects.map(leading_keys).filter(|object| !object.is_empty());
    let object = Value::Object(objects.next()?);
    let mut evidence = strings(&object["ev"]);
    if object["kind"] == "wait" && object["code"].is_number() {
        // A wait tells what another command ended with. That command knows better why; what it found
        // last is what it ended on.
        let is_its_own = |other: &Map<String, Value>| {
            other.get("kind").is_some_and(|kind| kind != "wait")
                && other.get("exit") == object.get("code")
                && other.get("boot") == object.get("boot")
        };
        let own = objects.find(is_its_own).map(Value::Object).unwrap_or_default();
        evidence.splice(0..0, strings(&own["ev"]).into_iter().rev());
    }
    let string = |key: &str| object[key].as_str().map(str::to_owned);
    let number = |key: &str| object[key].as_i64().and_then(|number| number.try_into().ok());
    Some(NodeSummary {
        waited: object["kind"] == "wait" || object["kind"] == "join",
        exit: number("exit"),
        code: number("code"),
        name: string("name").filter(|name| !name.is_empty()),
        cause: string("cause").and_then(|cause| cause.parse().ok()),
        confidence: string("conf"),
        evidence,
        preflight: strings(&object["pf"]),
        whole: object["end"] == 1,
    })
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The texts after the last occurrences of a mark, from the end, each of at most [`LONGEST`] bytes.
fn last_of<'a>(text: &'a str, mark: &'static str) -> impl Iterator<Item = &'a str> {
    text.rmatch_indices(mark).take(MOST).map(move |(at, _)| {
        let rest = &text[at + mark.len()..];
        &rest[..rest.floor_char_boundary(LONGEST)]
    })
}

/// The complete keys of the JSON object at the beginning of a text; an object that is cut off has fewer keys.
/// The text is read only once.
fn leading_keys(text: &str) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    // An error means that the object is cut off; the keys before that position count.
    let is_cut = LeadingKeys(&mut keys).deserialize(&mut reader).is_err();
    let last = keys.keys().next_back().cloned();
    if let Some(last) = last.filter(|_| is_cut && ends_with_a_number(text)) {
        // The number may be cut off, too.
        keys.remove(&last);
    }
    keys
}

/// Whether a text ends with a number.
fn ends_with_a_number(text: &str) -> bool {
    let number = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
    let before = text.trim_end_matches(number);
    before.len() < text.len() && before.trim_end().ends_with(':')
}

struct LeadingKeys<'a>(&'a mut Map<String, Value>);

impl<'de> DeserializeSeed<'de> for LeadingKeys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LeadingKeys<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some((key, value)) = object.next_entry()? {
            self.0.insert(key, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_summary_that_is_cut_off_the_whole_keys_are_read() {
        let whole = "BRINGUP-NODE/1 {\"exit\":211,\"ev\":[\"a, b\",\"c\"],\"pf\":[\"oras:absent\"],\"end\":1}";
        let read = node_summary(whole).unwrap();
        assert!(read.whole && read.preflight == ["oras:absent"]);
        for (length, evidence) in [(whole.len() - 10, 2), (40, 0), (28, 0)] {
            let read = node_summary(&whole[..length]).unwrap();
            assert_eq!(
                (read.exit, read.evidence.len(), read.whole),
                (Some(211), evidence, false),
                "{length}"
            );
        }
        assert_eq!(node_summary("BRINGUP-NODE/1 {\"exit\":2"), None, "the number may go on");
        let two = "BRINGUP-NODE/1 {\"exit\":211,\"code\":5";
        assert_eq!(node_summary(two).map(|read| (read.exit, read.code)), Some((Some(211), None)));
        assert_eq!(node_summary("BRINGUP-NODE/1 {\"exit\":2,\"ev\":[\"1").unwrap().exit, Some(2));
        assert_eq!(node_summary("BRINGUP-NODE/1 nothing"), None);
    }

    #[test]
    fn the_last_summary_counts() {
        let text = "BRINGUP-NODE/1 {\"exit\":1,\"end\":1}\nBRINGUP-NODE/1 {\"exit\":2,\"end\":1}\n";
        assert_eq!(node_summary(text).unwrap().exit, Some(2));
    }

    #[test]
    fn a_hostile_summary_is_read_once_and_up_to_its_longest() {
        let commas = format!("{TAG}{{\"exit\":211,\"ev\":[{}", "1,".repeat(400_000));
        assert_eq!(node_summary(&commas).unwrap().exit, Some(211));
        // Many summaries without a valid object: only the last few are tried.
        let many = format!("{TAG}{{\"a\"{}", ",".repeat(65_000)).repeat(64);
        assert_eq!(node_summary(&many), None);
        let late = format!("{TAG}{{\"exit\":211,\"end\":1}}\n{}", format!("{TAG}x\n").repeat(MOST));
        assert_eq!(
            node_summary(&late),
            None,
            "what stands before the last {MOST} is not looked for"
        );
    }
}
