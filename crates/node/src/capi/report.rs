//! The output of a wait: a line for programs, a line for human readers, and the complete report.

use bringup_contract::Cause;
use bringup_diagnosis::redaction::redact;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::exit::Exit;
use super::findings::Line;
use crate::summary::{Summary, Sureness, TAG};

/// The longest line for human readers, in bytes.
const SENTENCE: usize = 500;

/// The complete report of a wait.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    pub(crate) v: u8,
    /// Tells the exit codes of `wait` from the exit codes of the AKS scripts.
    pub(crate) kind: &'static str,
    pub(crate) version: &'static str,
    pub(crate) exit: u8,
    pub(crate) name: String,
    /// The code of the failure sentinel, or of the AKS scripts.
    pub(crate) code: Option<i64>,
    pub(crate) cause: Option<Cause>,
    pub(crate) confidence: Option<Sureness>,
    pub(crate) sentence: String,
    pub(crate) phase: &'static str,
    pub(crate) signature: Option<Signature>,
    pub(crate) waited_ms: u64,
    /// The time limit of the whole wait.
    pub(crate) deadline_ms: u64,
    /// When the limit is over; `None` before the limit begins to count.
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) boots: u32,
    pub(crate) boot: Option<String>,
    pub(crate) sentinels: Vec<String>,
    pub(crate) watch: String,
    pub(crate) cloud_init: Value,
    pub(crate) kubeadm: Option<KubeadmReport>,
    pub(crate) kubelet: KubeletReport,
    pub(crate) disk_free: Option<u64>,
    pub(crate) clock_skew_ms: Option<i64>,
    pub(crate) evidence: Vec<Line>,
    pub(crate) warnings: Vec<String>,
    pub(crate) looked_at: Vec<String>,
}

/// The log line that decided, by its common name.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Signature {
    pub(crate) id: &'static str,
    pub(crate) log: String,
    pub(crate) line: usize,
}

/// The progress of kubeadm.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KubeadmReport {
    pub(crate) joined: bool,
    pub(crate) phase: Option<String>,
    pub(crate) check: Option<String>,
}

/// The health of kubelet.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct KubeletReport {
    pub(crate) active: Option<bool>,
    pub(crate) restarts: Option<u32>,
    pub(crate) healthz: Option<String>,
}

impl Report {
    /// The short form.
    pub(crate) fn summary(&self, told: Option<String>) -> Summary {
        let mut summary = Summary::new(i32::from(self.exit), &self.name);
        summary.kind = Some(self.kind.to_owned());
        summary.code = self.code;
        summary.cause = self.cause;
        summary.conf = self.confidence;
        let kubeadm = self.kubeadm.as_ref().and_then(|kubeadm| kubeadm.phase.as_deref());
        let step =
            kubeadm.map_or_else(|| self.phase.to_owned(), |phase| format!("kubeadm {phase}"));
        summary.step = (self.exit != Exit::Succeeded.number()).then(|| redact(&step).text);
        for line in &self.evidence {
            summary.prove(line.text.as_str());
        }
        if self.evidence.is_empty() && summary.step.is_some() {
            summary.prove(&self.sentence);
        }
        summary.warn.clone_from(&self.warnings);
        summary.took = Some(self.waited_ms / 1_000);
        summary.boot = self.boot.as_ref().map(|boot| boot.chars().take(8).collect());
        summary.report = told;
        summary
    }
}

/// The line for programs, with its line break; it is the last line of the standard output.
pub(crate) fn summary_line(summary: &Summary, limit: usize) -> String {
    let line = format!("{}\n", summary.line(limit));
    debug_assert!(line.starts_with(TAG));
    line
}

/// The line for human readers, with its line break.
pub(crate) fn human_line(exit: u8, sentence: &str) -> String {
    let line: String = sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let outcome = if exit == 0 { "wait" } else { "wait failed" };
    format!("{outcome} ({exit}): {}\n", redact(&line).text.truncated(SENTENCE))
}
