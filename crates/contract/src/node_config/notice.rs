//! The error that refuses a configuration, and notices about tolerated contents.

use std::borrow::Cow;
use std::fmt;

/// The number of characters of a name that are shown.
const SHOWN: usize = 64;

/// Why a configuration is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The problem.
    pub what: Cow<'static, str>,
    /// The field, as a dotted path; empty for the whole configuration.
    pub field: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, what, field } = self;
        write!(formatter, "line {line} column {column}: {what}")?;
        if field.is_empty() { Ok(()) } else { write!(formatter, " (field {field})") }
    }
}

impl std::error::Error for Refused {}

/// A notice about unusual contents that are tolerated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The field, as a dotted path.
    pub field: String,
    /// The kind of the notice.
    pub what: Notable,
}

/// The kinds of tolerated contents, so that an old node can read a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notable {
    /// A field that is unknown here: ignored.
    UnknownField,
    /// An unknown name of an enumeration: treated as unset.
    UnknownEnumName(String),
    /// An unknown number of an enumeration: preserved, and without effect.
    UnknownEnumNumber(i32),
    /// The deprecated version `v0`, which is still supported.
    DeprecatedVersion,
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.field)?;
        match &self.what {
            Notable::UnknownField => formatter.write_str("unknown field, ignored"),
            Notable::UnknownEnumName(name) => write!(formatter, "unknown value {name}, ignored"),
            Notable::UnknownEnumNumber(number) => {
                write!(formatter, "unknown value {number}, without effect")
            }
            Notable::DeprecatedVersion => formatter.write_str("v0 is deprecated, use v1"),
        }
    }
}

/// A name from outside, made safe for output.
pub(crate) fn shown(name: &str) -> String {
    let clean = |character: char| if character.is_control() { '?' } else { character };
    let mut shown: String = name.chars().take(SHOWN).map(clean).collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
