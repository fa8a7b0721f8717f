//! Parses settings files: TOML, with a list of known keys.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use crate::args::Wrong;

/// The keys of /etc/bringup-node/config.toml.
pub(crate) const AGENT_KEYS: [&str; 13] = [
    "exit-code",
    "own-code-base",
    "preflight",
    "timeout",
    "start-timeout",
    "reject-v0",
    "strict-required",
    "mcr-repository-base",
    "codes.ERR_ORAS_BINARY_NOT_FOUND",
    "endpoints.dns",
    "endpoints.imds",
    "endpoints.kubelet",
    "endpoints.wireserver",
];

/// The values of a file, each as text. A key in a section is named `section.key`; outside `[codes]`,
/// `_` and `-` are the same. A list is a JSON array.
pub(crate) type Values = BTreeMap<String, String>;

/// Reads the text of a settings file. A key that is not `known` is refused: a setting with a typing error
/// would silently have no effect.
pub(crate) fn read(path: &Path, text: &str, known: &[&str]) -> Result<Values, Wrong> {
    let refused = |why: String| Wrong::BadFile(path.display().to_string(), why);
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        refused(format!("line {line} is not valid TOML: {}", error.message()))
    })?;
    let mut values = Values::new();
    for (name, value) in table {
        match value {
            Value::Table(section) => {
                for (key, value) in section {
                    let key = if name == "codes" { key } else { dashed(&key) };
                    values.insert(format!("{name}.{key}"), text_of(value));
                }
            }
            value => drop(values.insert(dashed(&name), text_of(value))),
        }
    }
    match values.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(values),
        Some(key) => Err(refused(format!("unknown key {key}; known keys: {}", known.join(", ")))),
    }
}

fn dashed(key: &str) -> String {
    key.replace('_', "-")
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(list) => {
            let list: Vec<String> = list.into_iter().map(text_of).collect();
            serde_json::to_string(&list).unwrap_or_default()
        }
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(moment) => moment.to_string(),
        // Sections do not nest: its name is refused as an unknown key.
        Value::Table(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["start-timeout", "sentinel", "strict", "codes.ERR_A_B"];

    fn read(text: &str) -> Result<Values, String> {
        super::read(Path::new("/etc/x.toml"), text, &KNOWN).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn a_file_has_sections_texts_numbers_truths_and_lists() {
        let text = "# x\nstart_timeout = \"5m\"\nstrict = true\nsentinel = ['C:\\a', \"b\"]\n[codes]\nERR_A_B = 251 # y\n";
        let found = read(text).unwrap();
        assert_eq!(found["start-timeout"], "5m");
        assert_eq!(found["strict"], "true");
        assert_eq!(found["sentinel"], r#"["C:\\a","b"]"#);
        assert_eq!(found["codes.ERR_A_B"], "251");
    }

    #[test]
    fn an_unknown_key_and_a_broken_line_are_named() {
        assert_eq!(
            read("start_timeuot = 5").unwrap_err(),
            "settings file /etc/x.toml: unknown key start-timeuot; known keys: start-timeout, sentinel, strict, codes.ERR_A_B"
        );
        let broken = read("strict = true\nsentinel = /a").unwrap_err();
        assert!(
            broken.starts_with("settings file /etc/x.toml: line 2 is not valid TOML"),
            "{broken}"
        );
    }
}
