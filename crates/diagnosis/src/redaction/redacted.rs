//! [`Redacted`]: text that may leave memory.

use std::fmt;
use std::ops::{Deref, Range};

/// Text from which secrets were removed.
///
/// The only way to get one from untrusted text is [`redact`](super::redact). There is no
/// `From<String>`; the other constructors take our own constants, numbers, or parts of text that
/// already is redacted.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Redacted(String);

const ELLIPSIS: &str = "…";

impl Redacted {
    /// Our own constant text.
    pub fn fixed(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// A number, which is no secret: an exit code, a line, a duration.
    pub fn number(value: i64) -> Self {
        Self(value.to_string())
    }

    /// All parts in a row.
    pub fn concat(parts: &[&Self]) -> Self {
        Self(parts.iter().map(|part| part.as_str()).collect())
    }

    /// All parts with our own constant text between them.
    pub fn join(parts: &[&Self], separator: &'static str) -> Self {
        let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
        Self(parts.join(separator))
    }

    /// The bytes of `range`; `None` if it is out of bounds or splits a character.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        self.0.get(range).map(|part| Self(part.to_owned()))
    }

    /// The text without white space at its ends.
    #[must_use]
    pub fn trimmed(&self) -> Self {
        Self(self.0.trim().to_owned())
    }

    /// At most `max_bytes` bytes in whole characters; what was cut ends with an ellipsis, if the
    /// ellipsis itself fits.
    #[must_use]
    pub fn truncated(&self, max_bytes: usize) -> Self {
        if self.0.len() <= max_bytes {
            return self.clone();
        }
        let Some(room) = max_bytes.checked_sub(ELLIPSIS.len()) else {
            return Self(self.0[..self.0.floor_char_boundary(max_bytes)].to_owned());
        };
        Self(format!("{}{ELLIPSIS}", &self.0[..self.0.floor_char_boundary(room)]))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, for a caller that passes it on; what it makes of it is no longer `Redacted`.
    pub fn into_string(self) -> String {
        self.0
    }

    /// For the redactor itself.
    pub(super) fn trusted(text: String) -> Self {
        Self(text)
    }
}

impl Deref for Redacted {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Redacted {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::Redacted;

    #[test]
    fn a_cut_is_made_between_characters_and_marked() {
        let text = Redacted::fixed("größer");
        assert_eq!(text.truncated(8).as_str(), "größer");
        assert_eq!(text.truncated(7).as_str(), "grö…");
        assert_eq!(text.truncated(6).as_str(), "gr…");
        assert_eq!(text.truncated(2).as_str(), "gr");
        assert_eq!(text.truncated(0).as_str(), "");
    }

    #[test]
    fn parts_are_joined_with_constant_text_only() {
        let (left, right) = (Redacted::fixed("exit"), Redacted::number(211));
        assert_eq!(Redacted::join(&[&left, &right], " ").as_str(), "exit 211");
        assert_eq!(Redacted::concat(&[&left, &right]).as_str(), "exit211");
        assert_eq!(left.part(1..3), Some(Redacted::fixed("xi")));
        assert_eq!(Redacted::fixed("é").part(0..1), None);
    }
}
