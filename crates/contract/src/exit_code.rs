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
    /// The causes of this meaning; `None` only while the catalogue is read.
    #[serde(default)]
    candidate_causes: Option<Vec<Cause>>,
    /// Texts that accompany only this meaning in the log. [`Code::texts`] has them too.
    #[serde(default)]
    pub texts: Vec<String>,
}

impl Meaning {
    /// The causes that can lead to the code in this meaning, most likely first.
    pub fn candidate_causes(&self) -> &[Cause] {
        self.candidate_causes.as_deref().unwrap_or_default()
    }

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
    /// The causes that have been observed with the number in any of its meanings, except proposed ones. The
    /// most likely cause comes first. [`Catalogue::candidate_causes`] returns those of one image.
    #[serde(default)]
    pub candidate_causes: Vec<Cause>,
    /// Texts that accompany the number in the log, in any of its meanings.
    #[serde(default)]
    pub texts: Vec<String>,
}

impl Code {
    /// Completes a code as it stands in the data. A meaning without causes has those of the code; causes and
    /// texts that only a meaning names become part of the code's.
    fn complete(mut self) -> Self {
        let common = self.candidate_causes.clone();
        for meaning in &mut self.meanings {
            meaning.candidate_causes.get_or_insert_with(|| common.clone());
            if !meaning.is_proposal() {
                add_missing(&mut self.candidate_causes, meaning.candidate_causes());
            }
            add_missing(&mut self.texts, &meaning.texts);
        }
        self
    }
}

/// Appends what a list does not have yet.
fn add_missing<T: Clone + PartialEq>(list: &mut Vec<T>, items: &[T]) {
    for item in items {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
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
        Self { codes: codes.into_iter().map(|code| (code.code, code.complete())).collect() }
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
        match one_per_name(found).as_slice() {
            [] => Lookup::Unknown,
            [one] => Lookup::Exact(one),
            found => Lookup::Ambiguous(found.to_vec()),
        }
    }

    /// The meaning of a number whose constant is known: the one on the image if the constant is valid there,
    /// otherwise the newest.
    pub fn named(
        &'static self,
        number: i32,
        constant: &str,
        image: Option<ImageVersion>,
    ) -> Option<&'static Meaning> {
        let found = match self.lookup(number, image) {
            Lookup::Exact(meaning) => vec![meaning],
            Lookup::Ambiguous(meanings) => meanings,
            Lookup::Unknown => Vec::new(),
        };
        let all = self.codes.get(&number)?.meanings.iter().rev();
        found.into_iter().chain(all).find(|meaning| meaning.constant() == Some(constant))
    }

    /// The causes that can lead to a number on an image, most likely first; without an image, those of its
    /// recent meanings. Proposed meanings do not count.
    ///
    /// The list is empty if the number has no meaning on the image: what is known about the number then says
    /// nothing about the node.
    pub fn candidate_causes(&'static self, number: i32, image: Option<ImageVersion>) -> Vec<Cause> {
        let meanings = match self.lookup(number, image) {
            Lookup::Exact(meaning) => vec![meaning],
            Lookup::Ambiguous(meanings) => meanings,
            Lookup::Unknown => return Vec::new(),
        };
        let found: Vec<Cause> = meanings
            .into_iter()
            .filter(|meaning| !meaning.is_proposal())
            .flat_map(Meaning::candidate_causes)
            .copied()
            .collect();
        // The list of the code ranks the causes of different meanings.
        let ranked = self.codes.get(&number).map_or(&[][..], |code| &code.candidate_causes);
        ranked.iter().copied().filter(|cause| found.contains(cause)).collect()
    }
}

/// Keeps one meaning of each name, in the order of the list: the newest that a node can end with, otherwise the
/// newest. What a name stands for has changed over time, too.
fn one_per_name(found: Vec<&'static Meaning>) -> Vec<&'static Meaning> {
    let mut kept: Vec<&'static Meaning> = Vec::new();
    for meaning in found {
        match kept.iter_mut().find(|other| other.name == meaning.name) {
            Some(other) if meaning.surfaces.can() || !other.surfaces.can() => *other = meaning,
            Some(_) => {}
            None => kept.push(meaning),
        }
    }
    kept
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

    /// The meaning that a Windows image has for a number.
    fn windows(number: i32, image: &str) -> &'static Meaning {
        match Catalogue::of(Os::Windows).lookup(number, Some(image.parse().unwrap())) {
            Lookup::Exact(meaning) => meaning,
            other => panic!("{number} on {image}: {other:?}"),
        }
    }

    fn causes(number: i32, image: Option<&str>) -> Vec<Cause> {
        let image = image.map(|image| image.parse().unwrap());
        Catalogue::of(Os::Linux).candidate_causes(number, image)
    }

    #[test]
    fn a_number_without_a_meaning_on_an_image_suggests_no_cause_there() {
        assert_eq!(causes(232, Some("202601.27.0")), []);
        assert_eq!(causes(232, Some("202605.01.0")), [Cause::ImageContractDrift]);
        assert_eq!(causes(232, None), [Cause::ImageContractDrift], "not that of the proposal");
        assert_eq!(causes(211, Some("2024.11.05")), [], "reserved at that time");
        assert_eq!(causes(9999, None), []);
    }

    #[test]
    fn the_causes_of_a_number_are_those_of_its_meaning_on_the_image() {
        let system_extension =
            [Cause::RegistryUnreachable, Cause::RegistryUnauthorized, Cause::ArtifactMissing];
        assert_eq!(causes(231, Some("202601.27.0")), [Cause::ImdsUnreachable]);
        assert_eq!(causes(231, Some("202605.01.0")), system_extension);
        let both = [&system_extension[..], &[Cause::ImdsUnreachable]].concat();
        assert_eq!(causes(231, Some("202603.05.0")), both);
        assert_eq!(causes(231, None), both);
        assert_eq!(causes(225, Some("202605.18.0")), [Cause::EgressBlocked, Cause::DnsFailure]);
        assert_eq!(causes(124, Some("202605.18.0"))[0], Cause::TimeBudgetExhausted);
    }

    #[test]
    fn without_an_image_no_cause_of_a_recent_meaning_is_lost() {
        for os in [Os::Linux, Os::Windows] {
            for code in Catalogue::of(os).codes() {
                let recent = Catalogue::of(os).candidate_causes(code.code, None);
                let lost = code.candidate_causes.iter().filter(|cause| !recent.contains(cause));
                // Images of 2023 no longer start: 124 was also what 65 is now.
                let lost: Vec<_> = lost.filter(|_| (os, code.code) != (Os::Linux, 124)).collect();
                assert!(lost.is_empty(), "{os:?} {}: {lost:?}", code.code);
            }
        }
    }

    #[test]
    fn a_name_whose_meaning_has_changed_stays_one_name() {
        assert_eq!(names(49, None), ["ERR_MODPROBE_FAIL"]);
        assert_eq!(names(49, Some("202601.27.0")), ["ERR_MODPROBE_FAIL"]);
        let meaning = |image| {
            let Lookup::Exact(meaning) = Catalogue::of(Os::Linux).lookup(49, image) else {
                panic!("49 has one name");
            };
            meaning.meaning.as_str()
        };
        assert!(!meaning(Some("202607.26.0".parse().unwrap())).contains("deny"));
        assert!(meaning(Some("202607.27.0".parse().unwrap())).contains("deny"));
        assert!(meaning(None).contains("deny"));
        let named = |image: &str| {
            let image = Some(image.parse().unwrap());
            let found = Catalogue::of(Os::Linux).named(49, "ERR_MODPROBE_FAIL", image);
            found.unwrap().meaning.contains("deny")
        };
        assert!(!named("202601.27.0") && named("202608.03.0"));
        assert!(named("2019.05.16"), "before the first file of codes: the newest");
        assert_eq!(Catalogue::of(Os::Linux).named(49, "ERR_NOTHING", None), None);
    }

    #[test]
    fn windows_raised_the_codes_of_the_wire_server_until_july_2026() {
        for number in [19, 20, 21] {
            assert!(windows(number, "20348.5020.260708").surfaces.can());
            assert!(!windows(number, "20348.5020.260709").surfaces.can());
            let undated = Catalogue::of(Os::Windows).lookup(number, None);
            assert!(matches!(undated, Lookup::Exact(meaning) if meaning.surfaces.can()));
        }
    }

    #[test]
    fn windows_had_other_texts_for_tokens_of_the_registry_until_june_2026() {
        let (old, new) = (windows(77, "20348.4893.260617"), windows(77, "20348.4893.260618"));
        assert_eq!(old.texts, ["failed to retrieve AAD access token: <exception>"]);
        assert_eq!(new.texts, ["failed to obtain IMDS tokens with all endpoints"]);
        let all = &Catalogue::of(Os::Windows).code(79).unwrap().texts;
        assert!(all.iter().any(|text| text == "failed to parse refresh token"), "{all:?}");
        assert!(all.iter().any(|text| text.contains("obtain tokens")), "{all:?}");
    }

    #[test]
    fn the_early_start_of_scriptless_phase_2_never_gives_a_node_its_exit_code() {
        for number in [10, 11] {
            let code = Catalogue::of(Os::Linux).code(number).unwrap();
            let early = code.meanings.iter().find(|one| one.name == "(fetch_provision_config.py)");
            assert!(early.is_some_and(|one| !one.surfaces.can() && one.texts.len() == 1));
        }
        assert_eq!(names(10, Some("202608.15.0")), ["ERR_MISSING_CUDA_PACKAGE"]);
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
