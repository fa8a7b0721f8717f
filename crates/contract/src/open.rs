//! Enumerations in Kubernetes objects, which stay open for words of newer versions.
//!
//! A stored object may come from a newer version that knows more words. Such a word is stored as
//! [`Open::Other`] and written back unchanged, so that an older version neither fails to read the object nor
//! loses unknown words.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest word that is preserved, in bytes. The schemas refuse a longer word.
pub const MAX_WORD_LENGTH: usize = 64;
/// The pattern of a word in the schemas.
pub const WORD_PATTERN: &str = "^[A-Za-z][A-Za-z0-9-]*$";

/// A value of an enumeration.
pub trait Word: Copy + Eq + fmt::Debug + 'static {
    /// Every value, in the order of the documentation.
    const ALL: &'static [Self];

    /// The value as objects, metrics and JSON spell it.
    fn word(self) -> &'static str;

    /// The value with this spelling.
    fn from_word(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == text)
    }
}

/// A known word, or a word of a newer version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Open<T> {
    /// A word that this version knows.
    Known(T),
    /// A word that this version does not know.
    Other(String),
}

impl<T: Word> Open<T> {
    /// Parses a word. An unknown word is cut to [`MAX_WORD_LENGTH`].
    pub fn parse(text: &str) -> Self {
        T::from_word(text).map_or_else(
            || Self::Other(text[..text.floor_char_boundary(MAX_WORD_LENGTH)].to_owned()),
            Self::Known,
        )
    }

    /// The word, known or not.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.word(),
            Self::Other(text) => text,
        }
    }

    /// The value, if this version knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Default> Default for Open<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T: PartialEq> PartialEq<T> for Open<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: Word> fmt::Display for Open<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl<T: Word> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Word> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[cfg(feature = "schema")]
impl<T: Word> schemars::JsonSchema for Open<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "maxLength": MAX_WORD_LENGTH,
            "pattern": WORD_PATTERN,
        })
    }
}

/// Appends the known words to the description of a field, for `#[schemars(transform = ...)]`.
#[cfg(feature = "schema")]
pub fn describe_words<T: Word>(schema: &mut schemars::Schema) {
    let before = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let words: Vec<_> = T::ALL.iter().map(|value| value.word()).collect();
    let description = format!("{before} Known values: {}.", words.join(", "));
    schema.insert("description".to_owned(), description.trim_start().into());
}

/// Declares an enum whose variants are words: `Variant = "word"`, each with its documentation.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident {
        $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_attribute])* $variant,)+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value as objects, metrics and JSON spell it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl $crate::open::Word for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.word()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.word())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Family, Retryable};

    #[test]
    fn every_word_fits_the_schema_and_is_read_as_it_is_written() {
        fn check<T: Word>() {
            let pattern = regex::Regex::new(WORD_PATTERN).unwrap();
            for value in T::ALL {
                assert!(pattern.is_match(value.word()), "{value:?}");
                assert!(value.word().len() <= MAX_WORD_LENGTH, "{value:?}");
                assert_eq!(Open::<T>::parse(value.word()), *value);
            }
        }
        check::<Cause>();
        check::<Family>();
        check::<Retryable>();
        check::<crate::report::Confidence>();
        check::<crate::report::Phase>();
        check::<crate::report::CollectorState>();
        check::<crate::report::ProvisionMode>();
        check::<crate::cse::CodeSource>();
        check::<crate::flex::CapacityType>();
        check::<crate::flex::FailureClass>();
        check::<crate::flex::FailureCause>();
    }

    #[test]
    fn a_word_of_a_newer_version_is_kept_and_written_back() {
        let read: Open<Cause> = serde_json::from_str("\"SomethingNew\"").unwrap();
        assert_eq!((read.known(), read.as_str()), (None, "SomethingNew"));
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"SomethingNew\"");
    }

    #[test]
    fn an_unknown_word_is_bounded_and_cut_between_characters() {
        let long = "ä".repeat(1000);
        let Open::Other(kept) = Open::<Cause>::parse(&long) else { panic!("a known word") };
        assert_eq!(kept.len(), MAX_WORD_LENGTH);
        assert!(Open::<Cause>::parse(&format!("x{long}")).as_str().len() < MAX_WORD_LENGTH);
    }
}
