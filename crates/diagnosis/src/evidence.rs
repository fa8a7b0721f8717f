//! What is known of a node that may have failed. Evidence is immutable, redacted, and each piece
//! says where it comes from, or why it is missing.

use bringup_contract::ImageVersion;
use serde::{Deserialize, Serialize};

use crate::lines::{clean, without_controls};
use crate::redaction::{Redacted, redact};
use crate::signatures::Signatures;

/// Where a piece of evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Text of an unknown kind.
    Text,
    /// The message of a VM extension.
    Extension,
    /// What a managed run command printed.
    RunCommand,
    /// `provision.json`.
    ProvisionResult,
    /// The log of the bootstrap scripts.
    ScriptLog,
    /// What systemd says of a unit.
    Journal,
    /// The serial console.
    SerialLog,
    /// An answer or error of ARM.
    Arm,
    /// The activity log.
    ActivityLog,
    /// Objects and Events of Kubernetes.
    Kubernetes,
    /// What bringup-node reported.
    NodeReport,
}

impl Source {
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Extension => "extension message",
            Self::RunCommand => "run command",
            Self::ProvisionResult => "provision.json",
            Self::ScriptLog => "script log",
            Self::Journal => "journal",
            Self::SerialLog => "serial log",
            Self::Arm => "ARM answer",
            Self::ActivityLog => "activity log",
            Self::Kubernetes => "Kubernetes",
            Self::NodeReport => "node report",
        }
    }
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// Where it comes from.
    pub source: Source,
    /// What it is called: a file, an object.
    pub name: String,
    /// What it says, or why it says nothing.
    pub content: Content,
    /// Of an excerpt, the number that each of its lines has in the whole text; of a whole text, none.
    #[serde(skip)]
    pub(crate) numbers: Vec<u32>,
}

/// Missing is not false: a piece was seen, or could not be had, or was not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// It was seen, and this is what it says.
    Seen(Redacted),
    /// It was asked for and could not be had, because of this.
    Missing(Redacted),
    /// The source was not queried.
    NotAsked,
}

impl Piece {
    /// A piece that was seen. Secrets are removed here, before anything else looks at it.
    pub fn seen(source: Source, name: &str, text: &str) -> Self {
        let name = redact(name).text.to_string();
        Self::new(source, name, Content::Seen(redacted(text)))
    }

    /// A piece that could not be had.
    pub fn missing(source: Source, name: &str, why: &str) -> Self {
        Self::new(source, name.to_owned(), Content::Missing(redact(why).text))
    }

    /// A piece that was not asked for.
    pub fn not_asked(source: Source, name: &str) -> Self {
        Self::new(source, name.to_owned(), Content::NotAsked)
    }

    fn new(source: Source, name: String, content: Content) -> Self {
        Self { source, name, content, numbers: Vec::new() }
    }

    /// The number that a line of this text has in the whole of which it is an excerpt, both from 1.
    pub(crate) fn number_of(&self, line: usize) -> usize {
        let number = self.numbers.get(line.saturating_sub(1)).copied();
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(line)
    }

    /// The text, if it was seen.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Seen(text) => Some(text.as_str()),
            Content::Missing(_) | Content::NotAsked => None,
        }
    }
}

/// The text without control characters and secrets. A lone carriage return may join what stands
/// around it or part it, so that text is read both ways.
fn redacted(text: &str) -> Redacted {
    let joined = redact(&without_controls(text)).text;
    if joined.contains('\r') { redact(&clean(&joined)).text } else { joined }
}

/// All that is known of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The pieces. Their order does not matter to the verdict.
    pub pieces: Vec<Piece>,
    /// The version of the node's image, where it is known from elsewhere.
    pub image_version: Option<ImageVersion>,
    /// The operating system, where it is known from elsewhere.
    pub os: Option<bringup_contract::Os>,
    /// The host of the API server, where it is known: a name or an address without a port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<String>,
    /// What its user knows, and we do not.
    #[serde(skip)]
    pub signatures: Signatures,
}

impl Evidence {
    /// Evidence that consists of one text.
    pub fn of_text(text: &str) -> Self {
        Self { pieces: vec![Piece::seen(Source::Text, "text", text)], ..Self::default() }
    }
}
