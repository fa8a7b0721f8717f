//! One name in a resource ID.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that a URL path contains unencoded. `.` is one of them, because no name is `.` or `..`.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'(').remove(b')');

/// The most bytes in a name: more than Azure allows.
const LONGEST: usize = 260;

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is `.` or `..`, which would lead to another path.
    #[error("it is a step in a path")]
    Step,
    /// The text contains a character that no name contains.
    #[error("it contains {0:?}")]
    Character(char),
    /// The text is longer than any name.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
}

/// One name in a resource ID: compared without regard to case, and displayed as first seen.
#[derive(Debug, Clone)]
pub struct Name(String);

impl Name {
    /// A fixed name in the code.
    pub(crate) fn known(word: &'static str) -> Self {
        Self(word.to_owned())
    }

    /// The name as first seen.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name encoded for the path of a request.
    pub(crate) fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, PLAIN).to_string()
    }

    fn folded(&self) -> impl Iterator<Item = u8> {
        self.0.bytes().map(|byte| byte.to_ascii_lowercase())
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let strange = |character: &char| character.is_control() || matches!(character, '/' | '\\');
        match text {
            "" => Err(NameError::Empty),
            "." | ".." => Err(NameError::Step),
            _ if text.len() > LONGEST => Err(NameError::TooLong),
            _ => match text.chars().find(strange) {
                Some(character) => Err(NameError::Character(character)),
                None => Ok(Self(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl Eq for Name {}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.folded() {
            state.write_u8(byte);
        }
        state.write_u8(0xff);
    }
}
