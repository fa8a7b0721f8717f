//! `provision.json`: the result of an attempt, written by the scripts or by the agent in their place.

use serde_json::{Map, Value, json};

/// The longest output of a child process in a result.
const OUTPUT: usize = 3_000;

/// A result that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The exit code.
    pub(crate) exit: i32,
    /// All keys of the result, in their original order and spelling.
    pub(crate) object: Map<String, Value>,
}

/// Why a result could not be read. The texts are aks-node-controller's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// There is no file, or it cannot be read.
    #[error(
        "failed to read provision.json: {0}. One reason could be that AKSNodeConfig is not properly set"
    )]
    NotRead(String),
    /// The result is not JSON.
    #[error("parse provision.json: {0}")]
    NotJson(String),
    /// The result has no exit code.
    #[error("missing ExitCode in provision.json")]
    NoCode,
    /// The exit code of the result is not a number.
    #[error("invalid ExitCode in provision.json: {0}")]
    NotANumber(String),
}

impl Outcome {
    pub(crate) fn read(text: &str) -> Result<Self, Unreadable> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Unreadable::NotJson(error.to_string()))?;
        let Value::Object(object) = value else {
            return Err(Unreadable::NotJson("not an object".to_owned()));
        };
        let code = field(&object, "ExitCode").ok_or(Unreadable::NoCode)?;
        let exit = match code {
            Value::Number(number) => number.as_i64().and_then(|code| code.try_into().ok()),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let told = || code.as_str().map_or_else(|| code.to_string(), str::to_owned);
        let exit = exit.ok_or_else(|| Unreadable::NotANumber(told()))?;
        Ok(Self { exit, object })
    }

    /// A result of the agent itself. The keys have the same order as in aks-node-controller.
    pub(crate) fn own(exit: i32, error: &str, output: &str) -> Self {
        let from = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT));
        let value = json!({
            "ExitCode": exit.to_string(),
            "Error": error,
            "Output": &output[from..],
        });
        let Value::Object(object) = value else { unreachable!("it is an object") };
        Self { exit, object }
    }

    /// The text of a key; upper and lower case are equal.
    pub(crate) fn text(&self, key: &str) -> &str {
        field(&self.object, key).and_then(Value::as_str).unwrap_or_default()
    }

    /// How long the scripts ran, in seconds.
    pub(crate) fn seconds(&self) -> Option<u64> {
        self.text("ExecDuration").trim().parse().ok()
    }

    /// The result in its file format.
    pub(crate) fn written(&self) -> String {
        Value::Object(self.object.clone()).to_string()
    }
}

fn field<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).or_else(|| {
        object.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_a_text_or_a_number_and_its_key_of_any_case() {
        for text in [r#"{"ExitCode":"211"}"#, r#"{"exitcode":211,"Output":""}"#] {
            assert_eq!(Outcome::read(text).unwrap().exit, 211);
        }
        assert_eq!(Outcome::read(r#"{"ExitCode":"-1"}"#).unwrap().exit, -1);
    }

    #[test]
    fn what_cannot_be_read_is_told_as_aks_node_controller_tells_it() {
        let said = |text: &str| Outcome::read(text).unwrap_err().to_string();
        assert!(said("").starts_with("parse provision.json: "));
        assert!(said("[]").starts_with("parse provision.json: "));
        assert_eq!(said("{}"), "missing ExitCode in provision.json");
        assert_eq!(said(r#"{"ExitCode":"x"}"#), "invalid ExitCode in provision.json: x");
        assert_eq!(said(r#"{"ExitCode":[1]}"#), "invalid ExitCode in provision.json: [1]");
    }

    #[test]
    fn the_agents_own_result_has_the_end_of_the_output() {
        let own = Outcome::own(77, "exit status 77", &format!("{}end", "é".repeat(2_000)));
        let output = own.text("Output");
        assert!(output.len() <= 3_000 && output.ends_with("éend"));
        assert!(own.written().starts_with(r#"{"ExitCode":"77","Error":"exit status 77","#));
    }
}
