//! What bringup-node says of itself in the text of an extension.

use serde_json::Value;

use super::says;
use crate::Cause;

/// What bringup-node says in its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSummary {
    /// It comes from `wait` or `join`, whose numbers are no codes of the AKS scripts.
    pub waited: bool,
    /// The exit code.
    pub exit: Option<i32>,
    /// The code of the AKS scripts, or of another bootstrap, for which `wait` waited.
    pub code: Option<i32>,
    /// The constant.
    pub name: Option<String>,
    /// The cause.
    pub cause: Option<Cause>,
    /// How sure it was: high, medium, low.
    pub confidence: Option<String>,
    /// Up to three lines that prove it.
    pub evidence: Vec<String>,
    /// What its checks before the bootstrap found, such as `oras:absent`.
    pub preflight: Vec<String>,
    /// Nothing was cut off.
    pub whole: bool,
}

/// The tag before bringup-node's summary.
const TAG: &str = "BRINGUP-NODE/1 ";

/// bringup-node's summary: the last one that is whole, else the leading keys of a cut one.
pub(super) fn node_summary(text: &str) -> Option<NodeSummary> {
    if !says(text, TAG) && !says(text, "\"Bringup\"") {
        return None;
    }
    let object = text
        .rmatch_indices(TAG)
        .map(|(at, _)| &text[at + TAG.len()..])
        .chain(text.rmatch_indices("\"Bringup\"").filter_map(|(at, _)| {
            let rest = text[at + "\"Bringup\"".len()..].trim_start();
            rest.strip_prefix(':').map(str::trim_start)
        }))
        .find_map(first_object)?;
    let string = |key: &str| object[key].as_str().map(str::to_owned);
    let number = |key: &str| object[key].as_i64().and_then(|number| number.try_into().ok());
    Some(NodeSummary {
        waited: object["kind"] == "wait" || object["kind"] == "join",
        exit: number("exit"),
        code: number("code"),
        name: string("name").filter(|name| !name.is_empty()),
        cause: string("cause").and_then(|cause| cause.parse().ok()),
        confidence: string("conf"),
        evidence: strings(&object["ev"]),
        preflight: strings(&object["pf"]),
        whole: object["end"] == 1,
    })
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The JSON object at the beginning of a text. Of one that is cut off, the keys that are whole.
fn first_object(text: &str) -> Option<Value> {
    if let Some(Ok(object @ Value::Object(_))) =
        serde_json::Deserializer::from_str(text).into_iter::<Value>().next()
    {
        return Some(object);
    }
    let line = text.lines().next().filter(|line| line.starts_with('{'))?;
    line.rmatch_indices(',')
        .find_map(|(at, _)| serde_json::from_str(&format!("{}}}", &line[..at])).ok())
}
