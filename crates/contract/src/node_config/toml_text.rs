//! TOML as a tree, so that no table can be written twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Toml {
    Text(String),
    Number(i64),
    Bool(bool),
    Texts(Vec<String>),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Table {
    values: BTreeMap<String, Toml>,
    tables: BTreeMap<String, Table>,
}

impl Table {
    /// The table at a path; creates the table if it does not exist.
    pub(super) fn at(&mut self, path: &[&str]) -> &mut Self {
        path.iter().fold(self, |table, name| table.tables.entry((*name).to_owned()).or_default())
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<Toml>) -> &mut Self {
        self.values.insert(key.to_owned(), value.into());
        self
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, "");
        out
    }

    fn write(&self, out: &mut String, path: &str) {
        for (key, value) in &self.values {
            let key = quoted(key);
            let _ = match value {
                Toml::Text(text) => writeln!(out, "{key} = {}", string(text)),
                Toml::Number(number) => writeln!(out, "{key} = {number}"),
                Toml::Bool(truth) => writeln!(out, "{key} = {truth}"),
                Toml::Texts(texts) => {
                    let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
                    writeln!(out, "{key} = [{}]", texts.join(", "))
                }
            };
        }
        for (key, table) in &self.tables {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}", quoted(key));
            let _ = writeln!(out, "\n[{path}]");
            table.write(out, &path);
        }
    }
}

fn quoted(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { string(key) }
}

fn string(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

impl From<&str> for Toml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Toml {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Toml {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<const N: usize> From<[&str; N]> for Toml {
    fn from(texts: [&str; N]) -> Self {
        Self::Texts(texts.map(ToOwned::to_owned).to_vec())
    }
}
