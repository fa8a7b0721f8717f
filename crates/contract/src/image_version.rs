//! Versions of AKS node images. `202601.27.0` is the first build of 27 January 2026. Linux images of 2022 and
//! before have `2022.05.16`; Windows images have the version of Windows and the date, `17763.2928.220511`.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use memchr::memmem;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A version of a node image, ordered by build date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageVersion {
    date: Date,
    rest: Rest,
}

/// What a version has beside its date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Rest {
    /// `2022.05.16`
    None,
    /// `17763.2928.220511`
    Windows { build: u32, revision: u32 },
    /// `202601.27.0`
    Patch(u32),
}

/// The error for a text that is not an image version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an image version: expected YYYYMM.DD.PATCH, such as 202601.27.0; of older images \
     YYYY.MM.DD, of Windows BUILD.REVISION.YYMMDD"
)]
pub struct NotAnImageVersion(String);

/// The longest name of an image, in bytes, that [`ImageVersion::find`] reads.
const LONGEST_NAME: usize = 100;

impl ImageVersion {
    /// The build date.
    pub fn date(self) -> Date {
        self.date
    }

    /// The first image version in a text: alone, at the end of an image's ID or name
    /// (`AKSAzureLinux-V3gen2-202601.27.0`), or after a word. `2022.05.16` and `17763.2928.220511` count only
    /// in an ID or a name (`AKSUbuntu-1804gen2containerd-2022.05.16`): elsewhere they can be something else.
    pub fn find(text: &str) -> Option<Self> {
        let dated = memmem::find_iter(text.as_bytes(), b"20")
            .find_map(|start| Some((start, Self::dated_at(text, start)?)));
        // Nothing behind the first hit can come first.
        let before = dated.map_or(text.len(), |(start, _)| start);
        let windows = ["AKSWindows-", "/versions/"].iter().filter_map(|sign| {
            memmem::find_iter(&text.as_bytes()[..before], sign).find_map(|start| {
                Some((start, Self::windows_at(text, start.saturating_add(sign.len()))?))
            })
        });
        windows.chain(dated).min_by_key(|(start, _)| *start).map(|(_, version)| version)
    }

    /// The version `202601.27.0` or, in a name, `2022.05.16` that starts at a place.
    fn dated_at(text: &str, start: usize) -> Option<Self> {
        if text.as_bytes()[..start].last().copied().is_some_and(is_part) {
            return None;
        }
        let version = parse(number(&text[start..]))?;
        match version.rest {
            Rest::Patch(_) => Some(version),
            Rest::None => ends_a_name(&text.as_bytes()[..start]).then_some(version),
            Rest::Windows { .. } => None,
        }
    }

    /// The version behind `AKSWindows-` or in an ID. It can stand behind the version of Windows:
    /// `20348.4893.202604.14.0`.
    fn windows_at(text: &str, start: usize) -> Option<Self> {
        let rest = &text.as_bytes()[start..];
        let length = rest.iter().take(LONGEST_NAME).take_while(|byte| is_of_name(**byte)).count();
        let name = &text[start..start.saturating_add(length)];
        let name = number(name.rsplit('-').next().unwrap_or(name));
        let version = parse(name).or_else(|| parse(name.splitn(3, '.').nth(2)?));
        version.filter(|version| version.rest != Rest::None)
    }
}

/// Whether a byte can be part of a version.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Whether a byte can be part of the name of an image.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// The digits and full stops at the start of a text. A full stop at the end of a sentence is not part of it.
fn number(text: &str) -> &str {
    let length = text.as_bytes().iter().take_while(|byte| is_part(**byte)).count();
    let number = &text[..length];
    number.strip_suffix('.').unwrap_or(number)
}

/// Whether a version that follows is the end of an image's ID or name.
fn ends_a_name(before: &[u8]) -> bool {
    let recent = &before[before.len().saturating_sub(LONGEST_NAME)..];
    let name = recent.iter().rev().take_while(|byte| is_of_name(**byte)).count();
    let name = &recent[recent.len().saturating_sub(name)..];
    let is_aks = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"aks"));
    is_aks && name.ends_with(b"-") || recent.ends_with(b"/versions/")
}

/// A number of a fixed or of any number of digits.
fn digits<T: FromStr>(text: &str, length: Option<usize>) -> Option<T> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && length.is_none_or(|length| text.len() == length)).then(|| text.parse().ok())?
}

fn parse(text: &str) -> Option<ImageVersion> {
    let mut parts = text.split('.');
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !text.is_ascii() {
        return None;
    }
    let (year, month, day, rest) = match (first.len(), third.len()) {
        (6, _) => {
            let patch = Rest::Patch(digits(third, None)?);
            (digits(&first[..4], None)?, digits(&first[4..], None)?, digits(second, None)?, patch)
        }
        (4, 2) => {
            (digits(first, None)?, digits(second, Some(2))?, digits(third, None)?, Rest::None)
        }
        (5, 6) => {
            let (build, revision) = (digits(first, None)?, digits(second, None)?);
            let year: i16 = digits(&third[..2], None)?;
            let (month, day) = (digits(&third[2..4], None)?, digits(&third[4..], None)?);
            (year.checked_add(2000)?, month, day, Rest::Windows { build, revision })
        }
        _ => return None,
    };
    Some(ImageVersion { date: Date::new(year, month, day).ok()?, rest })
}

impl FromStr for ImageVersion {
    type Err = NotAnImageVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| NotAnImageVersion(text.to_owned()))
    }
}

impl fmt::Display for ImageVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rest {
            Rest::None => write!(formatter, "{}", self.date.strftime("%Y.%m.%d")),
            Rest::Windows { build, revision } => {
                write!(formatter, "{build}.{revision}.{}", self.date.strftime("%y%m%d"))
            }
            Rest::Patch(patch) => write!(formatter, "{}.{patch}", self.date.strftime("%Y%m.%d")),
        }
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
    fn the_forms_of_older_and_of_windows_images_are_read_and_printed() {
        let versions = ["2022.05.16", "17763.2928.220511", "202306.01.0", "17763.8146.251212"];
        let read = versions.map(|text| text.parse::<ImageVersion>().unwrap());
        assert_eq!(read.map(|version| version.to_string()), versions);
        assert_eq!(
            read.map(|version| version.date().to_string()),
            ["2022-05-16", "2022-05-11", "2023-06-01", "2025-12-12"]
        );
        assert!(read[1] < read[0] && read[0] < read[2] && read[2] < read[3]);
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
            "+02601.27.0",
            "202601.+7.0",
            "202601..0",
            "202601.27.4294967296",
            "2022.5.16",
            "2022.13.16",
            "2022.05.16.0",
            "17763.2928.221311",
            "1776.2928.220511",
            "17763.2928.20220511",
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

    #[test]
    fn the_forms_of_older_and_of_windows_images_are_found_in_names_and_ids_only() {
        let found = |text: &str| ImageVersion::find(text).map(|version| version.to_string());
        for (text, version) in [
            ("node-image-version=AKSUbuntu-1804gen2containerd-2022.05.16 --v=2", "2022.05.16"),
            ("AKSUbuntu-2004gen2-2021.05.19", "2021.05.19"),
            ("/galleries/AKSUbuntu/images/1804gen2containerd/versions/2022.05.16", "2022.05.16"),
            ("the image AKSWindows-2019-containerd-17763.2928.220511.", "17763.2928.220511"),
            ("/images/windows-2019-containerd/versions/17763.2019.221114\n", "17763.2019.221114"),
            ("AKSWindows-2022-containerd-20348.4893.202604.14.0\r", "202604.14.0"),
            ("AKSWindows-2019-containerd-17763.1.220511 then 202601.27.0", "17763.1.220511"),
            ("202601.27.0 then AKSWindows-2019-containerd-17763.1.220511", "202601.27.0"),
            ("AKSWindows- AKSWindows-2019-containerd-17763.1.220511", "17763.1.220511"),
        ] {
            assert_eq!(found(text).as_deref(), Some(version), "{text}");
        }
        for text in [
            "2022.05.16 10:00:00 starting",
            "log-2022.05.16",
            "microsoft-aks:aks:aksubuntu-1804-202104:2021.04.12",
            "AKS 2022.05.16",
            "AKSUbuntu-1804gen2containerd-2022.05.16.1",
            "17763.2928.220511",
            "AKSWindows-2019-containerd-2928.220511",
            "AKSWindows-2019-containerd-ü",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_text_of_names_is_read_in_linear_time() {
        // Each place reads a bounded name: without the bound this takes minutes.
        let text = "AKSWindows-2022.05.16-20".repeat(100_000);
        assert_eq!(ImageVersion::find(&text).unwrap().to_string(), "2022.05.16");
        assert_eq!(ImageVersion::find(&"x2022.05.16-AKSWindows-".repeat(100_000)), None);
    }
}
