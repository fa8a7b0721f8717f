//! The verdict on a node, as one value that many faces are made from.

use bringup_contract::cse::CodeSource;
pub use bringup_contract::report::Confidence;
use bringup_contract::{Cause, Family, ImageVersion, Retryable};
use jiff::Timestamp;
use serde::Serialize;

use crate::evidence::Source;
use crate::redaction::Redacted;

/// How the bootstrap ended, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It failed.
    Failed,
    /// It succeeded.
    Succeeded,
    /// It is under way.
    Running,
    /// The evidence does not tell.
    Unknown,
}

/// The platform that the evidence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// A Linux machine.
    Linux,
    /// A Windows machine.
    Windows,
    /// Azure itself, before any machine.
    Arm,
}

/// The cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// The cause.
    pub reason: Cause,
    /// What it is about.
    pub family: Family,
    /// The people or the system that can fix it, such as `image owner`.
    pub owner: &'static str,
    /// Whether the same attempt may work later.
    pub retryable: Retryable,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Blame {
    /// A cause with what follows from it.
    pub fn new(cause: Cause, confidence: Confidence) -> Self {
        Self {
            reason: cause,
            family: cause.family(),
            owner: cause.owner(),
            retryable: cause.retryable(),
            confidence,
        }
    }
}

/// A line that proves a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The piece of evidence it stands in.
    pub source: Source,
    /// What that piece is called.
    pub name: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The line.
    pub text: Redacted,
    /// What stands before it, of a serial log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Redacted>,
    /// What stands after it, of a serial log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Redacted>,
    /// Where in the line the sign stands, in characters: from and to.
    #[serde(skip)]
    pub span: (usize, usize),
}

/// Something that seemed to be the case and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overruled {
    /// The constant or cause.
    pub reason: String,
    /// Why it does not count.
    pub why: String,
}

/// A moment of the boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: &'static str,
}

/// What is to be said of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// How the bootstrap ended.
    pub verdict: Verdict,
    /// The exit code of the bootstrap.
    pub exit_code: Option<i32>,
    /// Where the exit code stood.
    pub code_source: Option<CodeSource>,
    /// The exit status that the extension's handler saw.
    pub outer_exit_code: Option<i32>,
    /// The name of the exit code, if it has one and it is certain.
    pub constant: Option<String>,
    /// The names it can have, if several.
    pub constant_candidates: Vec<String>,
    /// The most specific ARM error code.
    pub arm_code: Option<String>,
    /// What the evidence is about.
    pub platform: Option<Platform>,
    /// The version of the node's image.
    pub image_version: Option<ImageVersion>,
    /// Why it failed; `Unknown` when it did not, or when the cause is not known.
    pub cause: Blame,
    /// The verdict in a sentence.
    pub summary: String,
    /// The lines that prove it, best first.
    pub proof: Vec<Proof>,
    /// What the script itself said last, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<Redacted>,
    /// What to do.
    pub remedy: String,
    /// What seemed to be the case and is not.
    pub overruled: Vec<Overruled>,
    /// How long the bootstrap script ran.
    pub duration_seconds: Option<u64>,
    /// The stages of the boot.
    pub timeline: Vec<Step>,
    /// What was looked at, and what is missing.
    pub looked_at: Vec<String>,
}
