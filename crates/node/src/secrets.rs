//! The values that the configuration marks as secret. They are removed from all output, whatever they look
//! like; the redaction of the diagnosis removes texts that only look like secrets.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bringup_contract::node_config::{LARGEST, NodeConfig};
use bringup_diagnosis::redaction::{Redacted, redact};
use serde_json::{Map, Value};

use crate::aks::config::assignments;
use crate::host::linux::store;
use crate::host::paths::Root;
use crate::outcome::Outcome;
use crate::run::Run;

/// Shorter values are not removed: they are common words.
const SHORTEST: usize = 6;

/// The replacement for a secret.
pub(crate) const STRUCK: &str = "***";

/// The variables that are made from secret fields.
const VARIABLES: &[&str] = &[
    "SERVICE_PRINCIPAL_FILE_CONTENT",
    "TLS_BOOTSTRAP_TOKEN",
    "KUBELET_CLIENT_CONTENT",
    "CUSTOM_SEARCH_REALM_PASSWORD",
];

/// Values that must not be shown, the longest first.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(Arc<[String]>);

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// The values that are long enough.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = BTreeSet::new();
        for value in values {
            let trimmed = value.trim();
            // In JSON, which a log may quote, a text is escaped.
            let quoted = Value::from(trimmed).to_string();
            let spelt = [value, trimmed, quoted.trim_matches('"')];
            all.extend(spelt.into_iter().map(str::to_owned));
        }
        let mut all: Vec<String> =
            all.into_iter().filter(|value| value.chars().count() >= SHORTEST).collect();
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(all.into())
    }

    /// The secrets of a configuration.
    pub(crate) fn of_configuration(config: &NodeConfig) -> Self {
        Self::of(config.configuration.secrets())
    }

    /// The secrets of a ready-made command.
    pub(crate) fn of_command(text: &str) -> Self {
        let all = assignments::read(text);
        Self::of(VARIABLES.iter().filter_map(|name| all.get(*name)?.as_deref()))
    }

    /// The secrets of the files that were delivered to this machine, as far as they can be read: for commands
    /// that only report on an attempt.
    pub(crate) fn delivered(root: &Root) -> Self {
        let given = Run::load(root).map(|run| run.given).unwrap_or_default();
        let places = [root.configuration(), root.nbc_command()].into_iter().chain(given);
        places.fold(Self::default(), |known, place| known.and(&Self::of_file(&place)))
    }

    fn of_file(path: &Path) -> Self {
        let Ok(bytes) = store::bytes(path, LARGEST) else { return Self::default() };
        match NodeConfig::parse(&bytes) {
            Ok(config) => Self::of_configuration(&config),
            Err(_) => Self::of_command(&String::from_utf8_lossy(&bytes)),
        }
    }

    /// The secrets of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self::of(self.values().chain(other.values()))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The text without these secrets.
    pub(crate) fn strike(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in self.values() {
            if clean.contains(secret) {
                clean = clean.replace(secret, STRUCK);
            }
        }
        clean
    }

    /// The text without these secrets, and without texts that look like secrets.
    pub(crate) fn redact(&self, text: &str) -> Redacted {
        redact(&self.strike(text)).text
    }

    /// The value without these secrets in its texts and keys.
    pub(crate) fn strike_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.strike(text).into(),
            Value::Array(items) => items.iter().map(|item| self.strike_value(item)).collect(),
            Value::Object(object) => Value::Object(self.strike_object(object)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn strike_object(&self, object: &Map<String, Value>) -> Map<String, Value> {
        let clean = |(key, value): (&String, &Value)| (self.strike(key), self.strike_value(value));
        object.iter().map(clean).collect()
    }

    /// The result without these secrets.
    pub(crate) fn strike_outcome(&self, outcome: &Outcome) -> Outcome {
        Outcome { exit: outcome.exit, object: self.strike_object(&outcome.object) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_struck_wherever_it_stands_and_a_short_one_is_a_word() {
        let secrets = Secrets::of(["hunter2", "msi", "hunter2-and-more"]);
        assert_eq!(secrets.strike("xhunter2y hunter2-and-more msi"), "x***y *** msi");
        let value = serde_json::json!({"hunter2": ["a hunter2", 7, {"x": "hunter2"}]});
        assert_eq!(
            secrets.strike_value(&value),
            serde_json::json!({"***": ["a ***", 7, {"x": "***"}]})
        );
        assert_eq!(format!("{secrets:?}"), "2 secrets");
    }

    #[test]
    fn a_secret_of_several_lines_is_known_in_quotation_marks_too() {
        let secrets = Secrets::of(["one\"two\nthree\n"]);
        assert_eq!(secrets.strike("say one\"two\nthree\nend"), "say ***end");
        assert_eq!(secrets.strike(r#"{"x":"one\"two\nthree"}"#), r#"{"x":"***"}"#);
    }

    #[test]
    fn a_ready_made_command_has_secrets_too() {
        let secrets = Secrets::of_command("A=visible TLS_BOOTSTRAP_TOKEN='s3cret-token' bash x");
        assert_eq!(secrets.strike("visible s3cret-token"), "visible ***");
    }
}
