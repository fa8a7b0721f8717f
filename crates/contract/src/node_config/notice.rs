//! What is refused, and what is tolerated and worth a word.

use std::borrow::Cow;
use std::fmt;

/// So much of a name is shown.
const SHOWN: usize = 64;

/// Why a configuration is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub what: Cow<'static, str>,
    /// The field, as a dotted path; empty for the whole.
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

/// Something that is tolerated and worth a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The field, as a dotted path.
    pub field: String,
    /// What is to be said about it.
    pub what: Notable,
}

/// What is tolerated, so that an old node can read a new configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notable {
    /// Not a field of this contract: ignored.
    UnknownField,
    /// Not a value of this enumeration: as if unset.
    UnknownEnumName(String),
    /// Not a number of this enumeration: kept, and without effect.
    UnknownEnumNumber(i32),
    /// `v0` still works.
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

/// A name that came from outside, fit to be shown.
pub(crate) fn shown(name: &str) -> String {
    let clean = |character: char| if character.is_control() { '?' } else { character };
    let mut shown: String = name.chars().take(SHOWN).map(clean).collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
