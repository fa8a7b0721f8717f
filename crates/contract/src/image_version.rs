//! Versions of AKS node images: `202601.27.0` is the first build of 27 January 2026.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A version of a node image, ordered by build date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageVersion {
    date: Date,
    patch: u32,
}

/// The error for a text that is not an image version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an image version: expected YYYYMM.DD.PATCH, such as 202601.27.0")]
pub struct NotAnImageVersion(String);

impl ImageVersion {
    /// The build date.
    pub fn date(self) -> Date {
        self.date
    }

    /// The first image version in a text: alone, at the end of an image's ID or name
    /// (`AKSAzureLinux-V3gen2-202601.27.0`), or after a word.
    pub fn find(text: &str) -> Option<Self> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        memchr::memmem::find_iter(text.as_bytes(), b"20").find_map(|start| {
            let before = text[..start].bytes().next_back();
            if before.as_ref().is_some_and(is_part) {
                return None;
            }
            let length = text.as_bytes()[start..].iter().take_while(|byte| is_part(byte)).count();
            let word = &text[start..start + length];
            // A full stop at the end of a sentence is not part of the version.
            word.strip_suffix('.').unwrap_or(word).parse().ok()
        })
    }
}

impl FromStr for ImageVersion {
    type Err = NotAnImageVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('.');
            let (month, day, patch) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() || month.len() != 6 || !month.is_ascii() {
                return None;
            }
            let date =
                Date::new(month[..4].parse().ok()?, month[4..].parse().ok()?, day.parse().ok()?);
            Some(Self { date: date.ok()?, patch: patch.parse().ok()? })
        };
        parse().ok_or_else(|| NotAnImageVersion(text.to_owned()))
    }
}

impl fmt::Display for ImageVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.date.strftime("%Y%m.%d"), self.patch)
    }
}

impl Serialize for ImageVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ImageVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_date_and_then_by_patch() {
        let read = |text: &str| text.parse::<ImageVersion>().unwrap();
        assert!(read("202512.31.9") < read("202601.13.0"));
        assert!(read("202601.13.0") < read("202601.27.0"));
        assert!(read("202601.27.0") < read("202601.27.1"));
        assert_eq!(read("202601.27.0").to_string(), "202601.27.0");
        assert_eq!(read("202604.01.1").to_string(), "202604.01.1");
    }

    #[test]
    fn what_is_not_a_version_is_refused_with_an_example() {
        for text in [
            "",
            "1.2.3",
            "202613.01.0",
            "202602.30.0",
            "202601.27",
            "202601.27.0.1",
            "２０２６０１.27.0",
        ] {
            let refused = text.parse::<ImageVersion>().unwrap_err().to_string();
            assert!(refused.contains("such as 202601.27.0"), "{refused}");
        }
    }

    #[test]
    fn a_version_is_found_wherever_it_stands() {
        for text in [
            "202601.27.0",
            "image 202601.27.0\nVM has reported",
            "/CommunityGalleries/g/images/V3gen2/versions/202601.27.0",
            "AKSAzureLinux-V3gen2-202601.27.0",
            "imageVersion=202601.27.0",
            "on 202601.27.0.",
        ] {
            assert_eq!(
                ImageVersion::find(text).map(|version| version.to_string()).as_deref(),
                Some("202601.27.0"),
                "{text}"
            );
        }
        for text in ["10.202601.27.0 and 1202601.27.0", "202601.27.0.1", "2026-01-27", "202601.27"]
        {
            assert_eq!(ImageVersion::find(text), None, "{text}");
        }
    }
}
