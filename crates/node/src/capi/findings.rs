//! Why a wait ended without success, according to the logs. The diagnosis decides; this module calls it, and
//! also reads the facts that only a wait needs.

use bringup_contract::{Cause, Os};
use bringup_diagnosis::diagnosis::Proof;
use bringup_diagnosis::redaction::Redacted;
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Verdict, diagnose};
use serde::Serialize;

use super::kubeadm::{self, Kubeadm};
use super::signatures;
use crate::summary::Sureness;

/// The largest number of evidence lines in a report.
const EVIDENCE: usize = 5;

/// The longest evidence line in a report, in bytes.
const LINE: usize = 512;

/// The findings from the logs.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) cause: Cause,
    /// How certain the cause is.
    pub(crate) sureness: Sureness,
    /// The exit code of the scripts, if they have one.
    pub(crate) code: Option<i64>,
    /// The name of that code.
    pub(crate) constant: Option<String>,
    /// The log lines that prove the cause.
    pub(crate) evidence: Vec<Line>,
    /// The progress of kubeadm.
    pub(crate) kubeadm: Kubeadm,
    /// Whether the commands of the user data failed as a whole.
    pub(crate) commands_failed: bool,
    /// The logs that were read, and the logs that are missing.
    pub(crate) looked_at: Vec<String>,
}

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// The name of the log.
    pub(crate) log: String,
    /// The line number in the log, from 1, counted from the point where reading began.
    #[serde(rename = "line")]
    pub(crate) number: usize,
    /// The common name of such lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<&'static str>,
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

/// Reads the logs. `deeper` returns logs that contain errors on every machine, such as kubelet's errors while
/// it waits for its configuration; they are read only if the other logs name no cause, or only kubelet
/// itself.
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

/// Whether the logs without `deeper` leave the cause open.
fn is_open(diagnosis: &Diagnosis) -> bool {
    diagnosis.verdict != Verdict::Failed
        || matches!(
            diagnosis.cause.reason,
            Cause::Unknown | Cause::UserDataInvalid | Cause::KubeletFailure
        )
}

/// Whether cloud-init or cloudbase-init reports that the commands of the user data failed.
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
