//! After a failed attempt: what do the logs say? The diagnosis decides; this only reads.

use bringup_contract::{Cause, Os};
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use jiff::Timestamp;

use crate::agent::Agent;
use crate::code::{self, Own};
use crate::preflight::{Finding, State};
use crate::result::Outcome;
use crate::store;
use crate::summary::{EVIDENCE_BYTES, EVIDENCE_LINES, Summary, Sureness};

/// How much of a log is read, from its end.
const LOG: u64 = 256 * 1024;

/// What was found.
#[derive(Debug)]
pub(crate) struct PostMortem {
    /// The verdict of the diagnosis.
    pub(crate) diagnosis: Diagnosis,
    /// The step that failed.
    pub(crate) step: Option<String>,
}

/// Reads what an attempt left that began at `since`, and diagnoses it.
pub(crate) fn examine(
    agent: &Agent,
    result: Option<&Outcome>,
    since: Option<Timestamp>,
) -> PostMortem {
    let (root, secrets) = (&agent.root, &agent.secrets);
    let mut pieces = Vec::new();
    match result {
        Some(result) => {
            pieces.push(Piece::seen(Source::ProvisionResult, "provision.json", &result.written()));
        }
        None => pieces.push(Piece::missing(Source::ProvisionResult, "provision.json", "no result")),
    }
    let mut step = None;
    for (path, name) in [
        (root.outbound_log(), "cluster-provision-cse-output.log"),
        (root.script_log(), "cluster-provision.log"),
    ] {
        let modified = path.metadata().and_then(|data| data.modified()).ok();
        let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
        let old = since.zip(modified).is_some_and(|(since, modified)| modified < since);
        match store::tail(&path, LOG) {
            Ok(_) if old => {
                pieces.push(Piece::missing(Source::ScriptLog, name, "older than the attempt"));
            }
            Ok(text) => {
                let text = secrets.strike(&text);
                step = last_step(&text).or(step);
                pieces.push(Piece::seen(Source::ScriptLog, name, &text));
            }
            Err(error) => {
                pieces.push(Piece::missing(Source::ScriptLog, name, &error.to_string()));
            }
        }
    }
    let step = step.or_else(|| last_step(result?.text("Output")));
    let evidence = Evidence { pieces, image_version: None, os: Some(Os::Linux) };
    PostMortem { diagnosis: diagnose(&evidence), step }
}

/// The step that was begun last: one that ends the scripts leaves nothing behind it.
pub(crate) fn last_step(log: &str) -> Option<String> {
    let (_, rest) = log.rsplit_once("logs_to_events ")?;
    let name = rest.split_whitespace().next()?.trim_matches(['\'', '"']);
    name.starts_with("AKS.").then(|| name.chars().take(120).collect())
}

/// What an attempt came to, in short.
pub(crate) fn summarise(
    result: &Outcome,
    name: Option<&str>,
    found: Option<&PostMortem>,
    preflight: &[Finding],
) -> Summary {
    let mut summary = Summary::new(result.exit, name.unwrap_or_default());
    summary.took = result.seconds();
    let odd = preflight.iter().filter(|finding| finding.state.is_odd());
    summary.pf = odd.map(Finding::short).collect();
    if result.exit == 0 {
        return summary;
    }
    summary.cause = Some(Cause::Unknown);
    summary.conf = Some(Sureness::Low);
    if let Some(PostMortem { diagnosis, step }) = found {
        if let (None, Some(constant)) = (name, &diagnosis.constant) {
            summary.name.clone_from(constant);
        }
        if diagnosis.verdict == Verdict::Failed {
            summary.cause = Some(diagnosis.cause.reason);
            summary.conf = Some(diagnosis.cause.confidence.into());
        }
        for proof in &diagnosis.proof {
            summary.prove(proof.text.as_str());
        }
        summary.img = diagnosis.image_version.map(|version| version.to_string());
        summary.step = step.as_ref().map(|step| bringup_diagnosis::redaction::redact(step).text);
    }
    let own = name.and_then(Own::named).map(Own::cause);
    if let Some(cause) = own.filter(|cause| *cause != Cause::Unknown) {
        summary.cause = Some(cause);
        summary.conf = Some(Sureness::Medium);
    }
    // A clock that goes wrong makes good certificates look bad.
    let skew = preflight.iter().find(|finding| finding.cause == Some(Cause::ClockSkew));
    let blames_trust =
        matches!(summary.cause, Some(Cause::TlsTrustFailure | Cause::ClusterCaMismatch));
    if let Some(finding) = skew.filter(|_| blames_trust) {
        summary.cause = Some(Cause::ClockSkew);
        summary.ev.insert(0, finding.detail.truncated(EVIDENCE_BYTES));
        summary.ev.truncate(EVIDENCE_LINES);
    }
    // What stood fast before the attempt beats a guess by its code; where it stopped the attempt,
    // it is the cause.
    let fatal = preflight.iter().find(|finding| finding.state == State::Fatal);
    let stopped =
        name.is_some_and(|name| name == code::ORAS || name == Own::PreflightRefused.name());
    if let Some(finding) = fatal.filter(|_| stopped || summary.conf == Some(Sureness::Low)) {
        summary.cause = finding.cause.or(summary.cause);
        summary.conf = Some(if stopped { Sureness::High } else { Sureness::Medium });
        if stopped {
            summary.ev.clear();
        }
        // What was probed, where, and what the package database says: a line each.
        let (what, parts) =
            finding.detail.as_str().split_once("; ").unwrap_or((&finding.detail, ""));
        let mut parts: Vec<&str> = parts.split("; ").collect();
        parts.sort_by_key(|part| !part.starts_with("probed"));
        for line in parts.into_iter().filter(|part| !part.is_empty()).chain([what]) {
            summary.prove(line);
        }
    }
    if result.exit == code::REFUSED && summary.name.is_empty() {
        code::REFUSED_NAME.clone_into(&mut summary.name);
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_that_was_begun_last_failed() {
        let log = "+ logs_to_events AKS.CSE.one one\n+ logs_to_events AKS.CSE.two.three 'two x'\n";
        assert_eq!(last_step(log).as_deref(), Some("AKS.CSE.two.three"));
        assert_eq!(last_step("nothing"), None);
    }

    #[test]
    fn a_success_has_no_cause() {
        let summary = summarise(&Outcome::own(0, "", ""), None, None, &[]);
        assert_eq!((summary.cause, summary.conf), (None, None));
    }
}
