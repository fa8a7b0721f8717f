//! The exit codes of the AKS bootstrap scripts. A number has had several meanings over time; the build date
//! of the image determines the valid one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::{Date, date};
use serde::{Deserialize, Serialize};

use crate::{Cause, ImageVersion};

/// The operating system: Linux and Windows have separate exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// Where a code can be observed, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surfaces {
    /// A node can end with the code.
    Yes,
    /// Only as `ExitCode` in provision.json.
    JsonOnly,
    /// Only with the older one-line command.
    ScriptfulOnly,
    /// Only from the template of Karpenter's Azure provider.
    KarpenterTemplate,
    /// Only some of the places in the scripts that raise the code can be reached.
    Partly,
    /// The exit status of another unit, not of the scripts.
    Indirect,
    /// Raised but hidden: the scripts end with another code.
    Swallowed,
    /// Returned, but the caller ignores it.
    Ignored,
    /// The condition for the code can never be true.
    Unreachable,
    /// The function that raises the code is never called.
    DeadCode,
    /// No place in the scripts raises the code.
    NeverRaised,
    /// Only during the build of an image.
    ImageBuildOnly,
    /// Only on images with the given build dates.
    OldImagesOnly,
}

impl Surfaces {
    /// Whether a node can end with the code, today or on an image of that time.
    pub fn can(self) -> bool {
        !matches!(
            self,
            Self::Swallowed
                | Self::Ignored
                | Self::Unreachable
                | Self::DeadCode
                | Self::NeverRaised
                | Self::ImageBuildOnly
        )
    }

    /// A description for users.
    pub fn words(self) -> &'static str {
        match self {
            Self::Yes => "can come out of a node",
            Self::JsonOnly => "only as ExitCode in provision.json",
            Self::ScriptfulOnly => "only with the older one-line command",
            Self::KarpenterTemplate => "only from the template of Karpenter's Azure provider",
            Self::Partly => "from some of the places that raise it",
            Self::Indirect => "the status of another unit, not of the scripts",
            Self::Swallowed => "raised but hidden: another code follows",
            Self::Ignored => "returned but not acted on",
            Self::Unreachable => "cannot happen: its condition never holds",
            Self::DeadCode => "cannot happen: its function is not called",
            Self::NeverRaised => "cannot happen: nothing raises it",
            Self::ImageBuildOnly => "only while an image is built",
            Self::OldImagesOnly => "only on images of those dates",
        }
    }
}

/// The meaning of a number between two dates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Meaning {
    /// The constant, such as `ERR_ORAS_PULL_NETWORK_TIMEOUT`; in parentheses when it has none.
    pub name: String,
    /// The meaning, as a sentence.
    pub meaning: String,
    /// The file that defines the code.
    #[serde(default)]
    pub origin: Option<String>,
    /// The first day of this meaning; `None` if unknown.
    #[serde(default)]
    pub valid_from: Option<Date>,
    /// The day after the last day of this meaning; `None` if the meaning is still valid.
    #[serde(default)]
    pub valid_to: Option<Date>,
    /// Where the code can be observed.
    pub surfaces: Surfaces,
}

impl Meaning {
    /// The constant, if the meaning has one.
    pub fn constant(&self) -> Option<&str> {
        (!self.name.starts_with('(')).then_some(self.name.as_str())
    }

    fn holds_on(&self, day: Date) -> bool {
        self.valid_from.is_none_or(|from| from <= day) && self.valid_to.is_none_or(|to| day < to)
    }

    /// Whether the name was only proposed, so that no image uses it.
    pub fn is_proposal(&self) -> bool {
        self.origin.as_deref().is_some_and(|origin| origin.starts_with("proposal"))
    }
}

/// A number with all its meanings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Code {
    /// The number.
    pub code: i32,
    /// Its meanings, oldest first.
    pub meanings: Vec<Meaning>,
    /// How the number misleads, if it does.
    #[serde(default)]
    pub misleading: Option<String>,
    /// The causes that have been observed with the number, most likely first.
    #[serde(default)]
    pub candidate_causes: Vec<Cause>,
    /// Texts that accompany the number in the log.
    #[serde(default)]
    pub texts: Vec<String>,
}

/// The meaning of a number for an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The number has one meaning.
    Exact(&'static Meaning),
    /// The number has one of these meanings; the build date, or an accompanying text, would decide.
    Ambiguous(Vec<&'static Meaning>),
    /// The number is unknown.
    Unknown,
}

/// The codes of one operating system.
#[derive(Debug)]
pub struct Catalogue {
    codes: BTreeMap<i32, Code>,
}

/// The day up to which the catalogue follows the scripts.
pub const AS_OF: Date = date(2026, 8, 21);
/// Without a build date, meanings that were valid within these months before [`AS_OF`] are returned: older
/// images no longer start.
const OFFERED_SINCE: Date = date(2025, 2, 21);

static LINUX: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::read(include_str!("../data/codes-linux.json")));
static WINDOWS: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::read(include_str!("../data/codes-windows.json")));

impl Catalogue {
    /// The catalogue of one operating system.
    pub fn of(os: Os) -> &'static Self {
        match os {
            Os::Linux => &LINUX,
            Os::Windows => &WINDOWS,
        }
    }

    fn read(text: &str) -> Self {
        let codes: Vec<Code> =
            serde_json::from_str(text).expect("the catalogue in this crate is valid");
        Self { codes: codes.into_iter().map(|code| (code.code, code)).collect() }
    }

    /// All codes, sorted by number.
    pub fn codes(&self) -> impl Iterator<Item = &Code> {
        self.codes.values()
    }

    /// The number with all its meanings.
    pub fn code(&self, number: i32) -> Option<&Code> {
        self.codes.get(&number)
    }

    /// The code that has or had this constant.
    pub fn by_name(&self, name: &str) -> Option<&Code> {
        self.codes.values().find(|code| {
            code.meanings.iter().any(|meaning| meaning.name.eq_ignore_ascii_case(name))
        })
    }

    /// The meaning of a number on an image; without an image, its recent meanings.
    pub fn lookup(&'static self, number: i32, image: Option<ImageVersion>) -> Lookup {
        let Some(code) = self.codes.get(&number) else { return Lookup::Unknown };
        let mut found: Vec<&'static Meaning> = code
            .meanings
            .iter()
            .filter(|meaning| match image {
                Some(image) => meaning.holds_on(image.date()) && !meaning.is_proposal(),
                None => meaning.valid_to.is_none_or(|to| to > OFFERED_SINCE),
            })
            .collect();
        // Of several meanings, only those that a node can end with; without a date even that is uncertain.
        if image.is_some() && found.len() > 1 && found.iter().any(|meaning| meaning.surfaces.can())
        {
            found.retain(|meaning| meaning.surfaces.can() || meaning.is_proposal());
        }
        match found.as_slice() {
            [] => Lookup::Unknown,
            [one] => Lookup::Exact(one),
            _ => Lookup::Ambiguous(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(number: i32, image: Option<&str>) -> Vec<&'static str> {
        let image = image.map(|image| image.parse().unwrap());
        match Catalogue::of(Os::Linux).lookup(number, image) {
            Lookup::Exact(meaning) => vec![&meaning.name],
            Lookup::Ambiguous(meanings) => {
                meanings.iter().map(|meaning| meaning.name.as_str()).collect()
            }
            Lookup::Unknown => vec![],
        }
    }

    #[test]
    fn the_date_of_the_image_selects_the_meaning_of_231() {
        assert_eq!(names(231, Some("202601.27.0")), ["ERR_IMDS_FETCH_FAILED"]);
        assert_eq!(
            names(231, Some("202603.05.0")),
            ["ERR_IMDS_FETCH_FAILED", "ERR_ORAS_PULL_SYSEXT_FAIL"]
        );
        assert_eq!(names(231, Some("202605.01.0")), ["ERR_ORAS_PULL_SYSEXT_FAIL"]);
        assert_eq!(names(231, None), ["ERR_IMDS_FETCH_FAILED", "ERR_ORAS_PULL_SYSEXT_FAIL"]);
    }

    #[test]
    fn a_foreign_232_is_never_the_proposed_oras_code() {
        assert_eq!(names(232, Some("202605.01.0")), ["ERR_SYSEXT_VERSION_ID_NOT_FOUND"]);
        assert_eq!(
            names(232, None),
            ["ERR_SYSEXT_VERSION_ID_NOT_FOUND", "ERR_ORAS_BINARY_NOT_FOUND"]
        );
        assert!(Catalogue::of(Os::Linux).by_name("ERR_ORAS_BINARY_NOT_FOUND").is_some());
    }

    #[test]
    fn linux_and_windows_count_apart() {
        assert_eq!(names(211, None), ["ERR_ORAS_PULL_NETWORK_TIMEOUT"]);
        assert!(matches!(Catalogue::of(Os::Windows).lookup(211, None), Lookup::Unknown));
        assert!(matches!(
            Catalogue::of(Os::Windows).lookup(50, None),
            Lookup::Exact(_) | Lookup::Ambiguous(_)
        ));
    }

    #[test]
    fn the_catalogues_are_whole() {
        for os in [Os::Linux, Os::Windows] {
            for code in Catalogue::of(os).codes() {
                assert!(!code.meanings.is_empty(), "{os:?} {}", code.code);
            }
        }
    }
}
