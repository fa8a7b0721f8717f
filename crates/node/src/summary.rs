//! The summary: the result of an attempt in one line, which stays readable if a reader cuts it.

use bringup_contract::Cause;
use bringup_diagnosis::Confidence;
use bringup_diagnosis::redaction::{Redacted, redact};
use serde::{Deserialize, Serialize};

/// The tag in front of a summary that stands alone on a line.
pub(crate) const TAG: &str = "BRINGUP-NODE/1 ";

/// The longest line of evidence.
pub(crate) const EVIDENCE_BYTES: usize = 160;

/// The largest number of evidence lines.
pub(crate) const EVIDENCE_LINES: usize = 3;

/// The result of an attempt. The keys are written in this order: if the line is cut, the first keys stay
/// readable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    v: u8,
    /// The class of the exit code: `wait` and `join` have numbers of their own; `None` for the AKS scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    pub(crate) exit: i32,
    /// The name of the exit code.
    #[serde(default)]
    pub(crate) name: String,
    /// The exit code of the program that failed: from a failure sentinel, or from the AKS scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// The cause; a success has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// How certain the cause is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conf: Option<Sureness>,
    /// The step that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<Redacted>,
    /// Lines that prove the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ev: Vec<Redacted>,
    /// Checks that were not ok, such as `oras:absent`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pf: Vec<String>,
    /// Warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warn: Vec<String>,
    /// The duration in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) took: Option<u64>,
    /// The ID of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// The beginning of the boot ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
    /// The version of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) img: Option<String>,
    /// The path of the whole report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<String>,
    /// The machine ID; in a mark only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    end: u8,
}

/// How certain a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sureness {
    /// The text proves the cause.
    High,
    /// The text makes the cause likely.
    Medium,
    /// The cause is a guess.
    Low,
}

impl From<Confidence> for Sureness {
    fn from(confidence: Confidence) -> Self {
        match confidence {
            Confidence::High => Self::High,
            Confidence::Medium => Self::Medium,
            Confidence::Low => Self::Low,
        }
    }
}

impl Summary {
    /// A summary with only the exit code and its name.
    pub(crate) fn new(exit: i32, name: &str) -> Self {
        Self {
            v: 1,
            kind: None,
            exit,
            name: name.to_owned(),
            code: None,
            cause: None,
            conf: None,
            step: None,
            ev: Vec::new(),
            pf: Vec::new(),
            warn: Vec::new(),
            took: None,
            run: None,
            boot: None,
            img: None,
            report: None,
            machine: None,
            end: 1,
        }
    }

    /// Adds a line of evidence, unless there are enough.
    pub(crate) fn prove(&mut self, line: &str) {
        let line = redact(line.trim()).text.truncated(EVIDENCE_BYTES);
        if self.ev.len() < EVIDENCE_LINES && !line.is_empty() && !self.ev.contains(&line) {
            self.ev.push(line);
        }
    }

    /// The object in at most `limit` bytes, as far as shortening can achieve that: the longest text is
    /// shortened first.
    pub(crate) fn encoded(&self, limit: usize) -> String {
        let mut summary = self.clone();
        loop {
            let text = safe(&serde_json::to_string(&summary).unwrap_or_default());
            if text.len() <= limit || !summary.shorten() {
                return text;
            }
        }
    }

    /// The line with its tag.
    pub(crate) fn line(&self, limit: usize) -> String {
        format!("{TAG}{}", self.encoded(limit.saturating_sub(TAG.len() + 1)))
    }

    /// Removes some content; returns false if nothing is left to remove.
    fn shorten(&mut self) -> bool {
        let longest = self.ev.iter_mut().chain(self.step.as_mut()).max_by_key(|text| text.len());
        if let Some(text) = longest.filter(|text| text.len() > 40) {
            *text = text.truncated(text.len() * 3 / 4);
            return true;
        }
        self.ev.pop().is_some()
            || self.warn.pop().is_some()
            || self.pf.pop().is_some()
            || self.step.take().is_some()
            || self.report.take().is_some()
            || self.machine.take().is_some()
            || self.img.take().is_some()
    }
}

/// JSON without the markers that other readers search for. In JSON, a quotation mark always separates `[`
/// from a word, so a marker can only occur inside a text, where the escaped form means the same.
pub(crate) fn safe(json: &str) -> String {
    json.replace("[stdout]", "\\u005bstdout]").replace("[stderr]", "\\u005bstderr]")
}

#[cfg(test)]
mod tests {
    use bringup_contract::cse;

    use super::*;

    #[test]
    fn the_summary_is_read_by_those_who_read_extension_messages() {
        let mut summary = Summary::new(232, "ERR_ORAS_BINARY_NOT_FOUND");
        summary.cause = Some(Cause::BinaryMissing);
        summary.conf = Some(Sureness::High);
        summary.pf.push("oras:absent".to_owned());
        summary.prove("oras: absent");
        let node = cse::read(&format!("noise\n{}\n", summary.line(1_000))).node.unwrap();
        assert_eq!((node.exit, node.whole), (Some(232), true));
        assert_eq!(node.cause, Some(Cause::BinaryMissing));
        assert_eq!(node.confidence.as_deref(), Some("high"));
        assert_eq!(node.evidence, ["oras: absent"]);
        assert_eq!(node.preflight, ["oras:absent"]);
    }

    #[test]
    fn a_long_summary_is_shortened_and_stays_whole() {
        let mut summary = Summary::new(211, "X");
        for letter in ["\"", "\\", "[stderr]"] {
            summary.prove(&letter.repeat(200));
        }
        summary.pf = vec!["binaries:warn".to_owned(); 20];
        let line = summary.line(600);
        assert!(line.len() < 600, "{} bytes", line.len());
        assert!(line.ends_with("\"end\":1}") && !line.contains("[stderr]"));
        assert_eq!(cse::read(&line).node.unwrap().exit, Some(211));
    }

    #[test]
    fn a_secret_in_the_evidence_does_not_leave() {
        let mut summary = Summary::new(1, "");
        summary.prove("curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789'");
        assert!(!summary.line(1_000).contains("abcdefghijklmnop"));
    }
}
