//! Signatures of users: lines that only they know, and what they mean. They are read once, at the start,
//! and live as long as the program.

use std::collections::HashSet;
use std::sync::Arc;

use bringup_contract::Cause;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::lines::normal;
use crate::matcher::Page;
use crate::rule::{Rule, Sign};
use crate::rules::RULES;

/// The version of the form of files.
pub const VERSION: u32 = 1;
/// How many signatures a file may have.
const MOST: usize = 200;
/// How long what is looked for may be.
const LONGEST: usize = 500;
/// How much memory a pattern may take once it is compiled.
const LARGEST: usize = 1 << 20;
/// The ranks there are.
const RANKS: std::ops::RangeInclusive<u16> = 1..=499;

/// A file of signatures, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureFile {
    /// The version of its form.
    pub version: u32,
    /// The signatures.
    pub signatures: Vec<WrittenSignature>,
}

/// A signature, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenSignature {
    /// What it is called.
    pub id: String,
    /// A part of a line, in any case; or else a pattern.
    #[serde(default)]
    pub literal: Option<String>,
    /// A pattern that a part of a line matches, as it stands.
    #[serde(default)]
    pub regex: Option<String>,
    /// What it proves.
    pub cause: String,
    /// Of several signs, the one with the lowest rank decides.
    pub rank: u16,
    /// Where more is said of it.
    #[serde(default)]
    pub reference: Option<String>,
}

/// What is wrong with signatures.
#[derive(Debug, thiserror::Error)]
pub enum FaultySignatures {
    /// The file is of another version.
    #[error("version {0} of signatures is not known: write version: {VERSION}")]
    Version(u32),
    /// There are too many.
    #[error("{0} signatures are too many: {MOST} are looked for at most")]
    TooMany(usize),
    /// One makes no sense.
    #[error("signature {place}, `{id}`: {problem}")]
    Signature {
        /// Which of the file, from 1.
        place: usize,
        /// What it is called.
        id: String,
        /// What is wrong, and what is right.
        problem: String,
    },
    /// The pattern of one is none.
    #[error(
        "signature {place}, `{id}`: its regex cannot be used; write one that is valid and small"
    )]
    Pattern {
        /// Which of the file, from 1.
        place: usize,
        /// What it is called.
        id: String,
        /// Why.
        #[source]
        source: regex::Error,
    },
}

/// A signature that makes sense.
#[derive(Debug)]
pub(crate) struct Signature {
    id: String,
    reference: Option<String>,
    pub(crate) rule: &'static Rule,
    pub(crate) sign: &'static Sign,
}

/// Signatures of a user. Clones share them; by default there are none.
#[derive(Debug, Clone, Default)]
pub struct Signatures(Arc<Vec<Signature>>);

impl PartialEq for Signatures {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|one| &one.id).eq(other.0.iter().map(|one| &one.id))
    }
}

impl Eq for Signatures {}

impl TryFrom<SignatureFile> for Signatures {
    type Error = FaultySignatures;

    fn try_from(file: SignatureFile) -> Result<Self, FaultySignatures> {
        if file.version != VERSION {
            return Err(FaultySignatures::Version(file.version));
        }
        if file.signatures.len() > MOST {
            return Err(FaultySignatures::TooMany(file.signatures.len()));
        }
        let mut known = HashSet::new();
        let mut signatures = Vec::new();
        for (index, written) in file.signatures.into_iter().enumerate() {
            let is_new = known.insert(written.id.clone());
            signatures.push(written.checked(index + 1, is_new)?);
        }
        Ok(Self(Arc::new(signatures)))
    }
}

impl WrittenSignature {
    fn checked(self, place: usize, is_new: bool) -> Result<Signature, FaultySignatures> {
        let wrong = |problem: &str| FaultySignatures::Signature {
            place,
            id: self.id.clone(),
            problem: problem.to_owned(),
        };
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if self.id.is_empty() || self.id.len() > 60 || !self.id.chars().all(is_plain) {
            return Err(wrong("its id has to be 1 to 60 letters, digits, dots and dashes"));
        }
        if !is_new {
            return Err(wrong("its id is taken; give each its own"));
        }
        if !RANKS.contains(&self.rank) {
            return Err(wrong("its rank has to be 1 to 499; the lowest decides"));
        }
        let reference = self.reference.as_deref().unwrap_or("https://");
        if !reference.starts_with("https://") || reference.len() > 300 || reference.contains(' ') {
            return Err(wrong("its reference has to be an address that begins with https://"));
        }
        let cause = self.cause.parse::<Cause>().ok().filter(|cause| *cause != Cause::Unknown);
        let rule = cause.and_then(|cause| RULES.iter().find(|rule| rule.cause == cause));
        let Some(rule) = rule else {
            return Err(wrong("its cause is none; `bringup explain --list` names them"));
        };
        let (all, pattern): (&'static [&'static str], _) = match (&self.literal, &self.regex) {
            (Some(literal), None) if (4..=LONGEST).contains(&literal.trim().len()) => {
                let part: &'static str = Box::leak(normal(literal.trim()).into_boxed_str());
                (Box::leak(Box::new([part])), None)
            }
            (None, Some(regex)) if regex.len() <= LONGEST => {
                let pattern = RegexBuilder::new(regex).size_limit(LARGEST).build();
                let pattern = pattern.map_err(|source| FaultySignatures::Pattern {
                    place,
                    id: self.id.clone(),
                    source,
                })?;
                if pattern.is_match("") {
                    return Err(wrong("its regex fits every line; write what the line says"));
                }
                let pattern: &'static Regex = Box::leak(Box::new(pattern));
                (&[], Some(pattern))
            }
            (Some(_), None) => return Err(wrong("its literal has to be 4 to 500 letters long")),
            (None, Some(_)) => return Err(wrong("its regex may be 500 letters long at most")),
            (None, None) | (Some(_), Some(_)) => {
                return Err(wrong("it needs a literal or a regex, and not both"));
            }
        };
        let sign = Sign { pattern, ..Sign::new(self.rank, all) };
        let sign: &'static Sign = Box::leak(Box::new(sign));
        Ok(Signature { id: self.id, reference: self.reference, rule, sign })
    }
}

impl Signatures {
    /// The signatures that are met on a page: which, and on which line.
    pub(crate) fn on<'a>(
        &'a self,
        page: &'a Page<'_>,
    ) -> impl Iterator<Item = (usize, &'a Signature, usize)> {
        self.0.iter().enumerate().flat_map(move |(index, one)| {
            let lines = 0..page.lines.len();
            let met = lines.filter(move |line| match one.sign.pattern {
                Some(pattern) => pattern.is_match(&page.lines[*line].text),
                None => page.normal_line(*line).contains(one.sign.all[0]),
            });
            met.map(move |line| (index, one, line))
        })
    }

    /// What is to be said of one beside what its cause says.
    pub(crate) fn note(&self, index: usize) -> Option<String> {
        let one = self.0.get(index)?;
        let reference = one.reference.as_deref().map(|at| format!(", see {at}"));
        Some(format!("Known here as {}{}.", one.id, reference.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, Evidence, Verdict, diagnose};

    fn signature(id: &str) -> WrittenSignature {
        WrittenSignature {
            id: id.to_owned(),
            literal: Some("License \"Server\" says no".to_owned()),
            regex: None,
            cause: "ConfigRejected".to_owned(),
            rank: 20,
            reference: Some("https://wiki.contoso.example/license".to_owned()),
        }
    }

    fn read(signatures: Vec<WrittenSignature>) -> Result<Signatures, FaultySignatures> {
        Signatures::try_from(SignatureFile { version: VERSION, signatures })
    }

    #[test]
    fn a_line_that_only_its_user_knows_is_found_and_goes_by_its_rank() {
        let text = "step 1\ncurl: (6) Could not resolve host: a.example\nlicense 'server' says NO\n+ exit 9";
        let mut evidence = Evidence::of_text(text);
        assert_eq!(diagnose(&evidence).cause.reason, Cause::DnsFailure);
        evidence.signatures = read(vec![signature("contoso.license")]).unwrap();
        let found = diagnose(&evidence);
        assert_eq!((found.verdict, found.cause.reason), (Verdict::Failed, Cause::ConfigRejected));
        assert_eq!(found.cause.confidence, Confidence::High);
        assert_eq!(found.proof[0].text.as_str(), "license 'server' says NO");
        assert_eq!(found.proof[0].span, (0, 24));
        let note = "Known here as contoso.license, see https://wiki.contoso.example/license.";
        assert!(found.remedy.ends_with(note), "{}", found.remedy);
        evidence.signatures =
            read(vec![WrittenSignature { rank: 400, ..signature("late") }]).unwrap();
        assert_eq!(diagnose(&evidence).cause.reason, Cause::DnsFailure, "the lowest rank decides");
    }

    #[test]
    fn a_pattern_is_found_where_it_stands() {
        let pattern = Some(r"lease \d+ (expired|revoked)".to_owned());
        let own = WrittenSignature { literal: None, regex: pattern, ..signature("contoso.lease") };
        let mut evidence = Evidence::of_text("é lease 17 revoked\nlease x expired");
        evidence.signatures = read(vec![own]).unwrap();
        let found = diagnose(&evidence);
        assert_eq!(found.cause.reason, Cause::ConfigRejected);
        assert_eq!((found.proof.len(), found.proof[0].span), (1, (2, 18)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_it_is_said_what_is_right() {
        let with = |change: fn(&mut WrittenSignature)| {
            let mut one = signature("a.b");
            change(&mut one);
            read(vec![signature("first"), one]).expect_err("it makes no sense").to_string()
        };
        for (said, part) in [
            (with(|one| one.id = "first".to_owned()), "its id is taken"),
            (with(|one| one.id = "a b".to_owned()), "letters, digits, dots and dashes"),
            (with(|one| one.rank = 0), "1 to 499"),
            (with(|one| one.cause = "Nonsense".to_owned()), "bringup explain"),
            (with(|one| one.cause = "Unknown".to_owned()), "its cause is none"),
            (with(|one| one.literal = None), "a literal or a regex"),
            (with(|one| one.regex = Some("x+y".to_owned())), "and not both"),
            (with(|one| one.literal = Some(" a ".to_owned())), "4 to 500 letters"),
            (with(|one| one.reference = Some("wiki".to_owned())), "https://"),
            (
                with(|one| (one.literal, one.regex) = (None, Some("a(".to_owned()))),
                "cannot be used",
            ),
            (with(|one| (one.literal, one.regex) = (None, Some("a*".to_owned()))), "every line"),
            (
                with(|one| (one.literal, one.regex) = (None, Some("(a{1000}){1000}".to_owned()))),
                "small",
            ),
        ] {
            assert!(said.contains(part), "{said}");
            assert!(said.starts_with("signature 2, `"), "{said}");
        }
        let other = SignatureFile { version: 2, signatures: Vec::new() };
        assert!(Signatures::try_from(other).unwrap_err().to_string().contains("write version: 1"));
        let many = (0..201).map(|number| signature(&format!("n{number}"))).collect();
        assert!(read(many).unwrap_err().to_string().contains("200"));
    }
}
