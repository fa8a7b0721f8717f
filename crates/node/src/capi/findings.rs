//! Why a wait ended as it did: what the logs say. The diagnosis decides; this asks it, and reads
//! beside it what only a waiter wants to know.

use bringup_contract::{Cause, Os};
use bringup_diagnosis::diagnosis::Proof;
use bringup_diagnosis::redaction::Redacted;
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Verdict, diagnose};
use serde::Serialize;

use super::kubeadm::{self, Kubeadm};
use super::signatures;
use crate::summary::Sureness;

/// A report has not more lines of evidence than this.
const EVIDENCE: usize = 5;

/// A line of evidence in a report is not longer than this.
const LINE: usize = 512;

/// What the logs say.
#[derive(Debug)]
pub(crate) struct Findings {
    /// The cause.
    pub(crate) cause: Cause,
    /// How sure it is.
    pub(crate) sureness: Sureness,
    /// The exit code of the scripts, if they have one.
    pub(crate) code: Option<i64>,
    /// The name of that code.
    pub(crate) constant: Option<String>,
    /// The lines that prove it.
    pub(crate) evidence: Vec<Line>,
    /// What kubeadm wrote.
    pub(crate) kubeadm: Kubeadm,
    /// The commands of the user data failed as a whole.
    pub(crate) commands_failed: bool,
    /// What was looked at, and what is missing.
    pub(crate) looked_at: Vec<String>,
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// The log it stands in.
    pub(crate) log: String,
    /// Its number there, from 1, counted from where reading began.
    #[serde(rename = "line")]
    pub(crate) number: usize,
    /// The name that such lines have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<&'static str>,
    /// The line.
    pub(crate) text: Redacted,
}

impl From<&Proof> for Line {
    fn from(proof: &Proof) -> Self {
        Self {
            log: proof.name.clone(),
            number: proof.line,
            signature: signatures::name_of(proof.text.as_str()),
            text: proof.text.trimmed().truncated(LINE),
        }
    }
}

/// Reads the logs. `deeper` are those that hold noise on every machine, such as kubelet's while it
/// waits for its configuration; they are read only when the others name no cause, or only kubelet itself.
pub(crate) fn examine(pieces: Vec<Piece>, deeper: impl FnOnce() -> Vec<Piece>, os: Os) -> Findings {
    let texts: Vec<&str> = pieces.iter().filter_map(Piece::text).collect();
    let written = texts.join("\n");
    let kubeadm = kubeadm::read(&written);
    let commands_failed = texts.iter().any(|text| commands_failed(text));
    let mut evidence = Evidence { pieces, os: Some(os), ..Evidence::default() };
    let mut diagnosis = diagnose(&evidence);
    if is_open(&diagnosis) && !kubeadm.joined {
        evidence.pieces.extend(deeper());
        let more = diagnose(&evidence);
        if more.verdict == Verdict::Failed && more.cause.reason != Cause::Unknown {
            diagnosis = more;
        }
    }
    let failed = diagnosis.verdict == Verdict::Failed;
    Findings {
        cause: if failed { diagnosis.cause.reason } else { Cause::Unknown },
        sureness: if failed { diagnosis.cause.confidence.into() } else { Sureness::Low },
        code: diagnosis.exit_code.map(i64::from),
        evidence: diagnosis.proof.iter().take(EVIDENCE).map(Line::from).collect(),
        constant: diagnosis.constant,
        kubeadm,
        commands_failed,
        looked_at: diagnosis.looked_at,
    }
}

/// Whether the logs without noise leave the question open.
fn is_open(diagnosis: &Diagnosis) -> bool {
    diagnosis.verdict != Verdict::Failed
        || matches!(
            diagnosis.cause.reason,
            Cause::Unknown | Cause::UserDataInvalid | Cause::KubeletFailure
        )
}

/// Whether cloud-init or cloudbase-init says that the commands of the user data failed.
fn commands_failed(log: &str) -> bool {
    let ended_badly = |line: &str| {
        let code = line.split_once("ended with exit code: ").map(|(_, code)| code.trim());
        code.is_some_and(|code| !matches!(code, "0" | "1001" | "1002" | "1003"))
    };
    log.contains("Failed to run module scripts")
        || log.contains("'scripts_user'")
        || log.contains("'scripts-user'")
        || log.lines().any(ended_badly)
}

#[cfg(test)]
mod tests {
    use bringup_diagnosis::Source;

    use super::*;

    fn found(log: &str, deeper: &str) -> Findings {
        let piece = |name: &str, text: &str| Piece::seen(Source::ScriptLog, name, text);
        let deeper = vec![piece("kubelet", deeper)];
        examine(vec![piece("cloud-init-output.log", log)], || deeper, Os::Linux)
    }

    #[test]
    fn the_cause_comes_with_the_line_that_proves_it_and_its_name() {
        let found = found("x\ncurl: (6) Could not resolve host: dl.example.com\n", "");
        assert_eq!(found.cause, Cause::DnsFailure);
        let first = &found.evidence[0];
        assert_eq!((first.number, first.signature), (2, Some("curl.dns")));
    }

    #[test]
    fn kubelet_is_asked_only_when_the_others_leave_it_open() {
        let kubelet = "failed to run Kubelet: running with swap on is not supported";
        let open = found("nothing to see\n", kubelet);
        assert_eq!(open.cause, Cause::KubeletConfigInvalid);
        let clear = found("curl: (6) Could not resolve host: dl.example.com\n", kubelet);
        assert_eq!(clear.cause, Cause::DnsFailure);
    }

    #[test]
    fn failed_commands_are_known_on_both_systems() {
        assert!(commands_failed("cc_scripts_user.py[WARNING]: Failed to run module scripts_user"));
        assert!(commands_failed("INFO x Script \"C:\\a.ps1\" ended with exit code: 1\r\n"));
        assert!(!commands_failed("INFO x Script \"C:\\a.ps1\" ended with exit code: 0\r\n"));
        assert!(!commands_failed("running 'modules:final'"));
    }

    #[test]
    fn logs_that_say_nothing_blame_nobody() {
        let found = found("", "");
        assert_eq!((found.cause, found.sureness), (Cause::Unknown, Sureness::Low));
        assert!(found.evidence.is_empty());
    }
}
