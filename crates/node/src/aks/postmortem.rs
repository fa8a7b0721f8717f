//! Examines a failed attempt: collects the logs and the states of the units and of the machine. This module
//! only reads; the diagnosis decides.

pub(crate) mod units;

use bringup_contract::{Cause, Os};
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source, Verdict, diagnose};
use jiff::Timestamp;

use crate::agent::Agent;
use crate::aks::exit_code::{self, Own};
use crate::aks::preflight::{self, Finding, State, Subject, Which};
use crate::host::linux::store;
use crate::host::paths::Root;
use crate::outcome::Outcome;
use crate::summary::{EVIDENCE_BYTES, EVIDENCE_LINES, Summary, Sureness};

/// The number of bytes that are read from the end of a log.
const LOG: u64 = 256 * 1024;

#[derive(Debug)]
pub(crate) struct PostMortem {
    pub(crate) diagnosis: Diagnosis,
    /// The step that failed.
    pub(crate) step: Option<String>,
    /// The findings of checks that run afterwards for the cause that the logs name.
    pub(crate) probes: Vec<Finding>,
}

/// Reads the logs of an attempt that began at `since`, and diagnoses them.
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
    let (mut step, mut log) = (None, String::new());
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
                log = text;
            }
            Err(error) => {
                pieces.push(Piece::missing(Source::ScriptLog, name, &error.to_string()));
            }
        }
    }
    let step = step.or_else(|| last_step(result?.text("Output")));
    let step = step.or_else(|| last_event(&agent.root, since));
    pieces.extend(units::examine(agent, &log, since));
    let evidence = Evidence { pieces, os: Some(Os::Linux), ..Evidence::default() };
    let diagnosis = diagnose(&evidence);
    let probes = preflight::run(&subject(agent), which(diagnosis.cause.reason));
    PostMortem { diagnosis, step, probes }
}

/// The checks that can confirm each cause. Disk and locks are always checked.
fn which(cause: Cause) -> Which {
    Which::Only(match cause {
        Cause::DnsFailure | Cause::ApiServerDnsFailure => &["disk", "packages", "dns"],
        Cause::ImdsUnreachable => &["disk", "packages", "imds"],
        Cause::WireServerUnreachable => &["disk", "packages", "wireserver"],
        Cause::TlsTrustFailure | Cause::ClusterCaMismatch => &["disk", "packages", "clock"],
        _ => &["disk", "packages"],
    })
}

fn subject(agent: &Agent) -> Subject {
    Subject {
        root: agent.root.clone(),
        path: std::env::var("PATH").unwrap_or_default(),
        needs_oras: false,
        variables: agent.variables.clone(),
        endpoints: agent.settings.endpoints.clone(),
    }
}

/// The last step with an end event of the scripts: the step after this one failed.
fn last_event(root: &Root, since: Option<Timestamp>) -> Option<String> {
    let files = std::fs::read_dir(root.events()).ok()?.filter_map(Result::ok);
    let names = files.filter_map(|file| {
        let path = file.path();
        let number: u128 = path.file_stem()?.to_str()?.parse().ok()?;
        let written = Timestamp::try_from(file.metadata().ok()?.modified().ok()?).ok()?;
        since.is_none_or(|since| written >= since).then_some((number, path))
    });
    let mut newest: Vec<_> = names.collect();
    newest.sort_unstable_by(|left, right| right.cmp(left));
    newest.iter().take(8).find_map(|(_, path)| {
        let event: serde_json::Value =
            serde_json::from_str(&store::head(path, 16 * 1024).ok()?).ok()?;
        let task = event["TaskName"].as_str().filter(|task| task.starts_with("AKS.CSE."))?;
        Some(format!("after {}", task.chars().take(100).collect::<String>()))
    })
}

/// The step that began last: a step that ends the scripts writes no end event.
pub(crate) fn last_step(log: &str) -> Option<String> {
    let (_, rest) = log.rsplit_once("logs_to_events ")?;
    let name = rest.split_whitespace().next()?.trim_matches(['\'', '"']);
    name.starts_with("AKS.").then(|| name.chars().take(120).collect())
}

/// The short form of a result.
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
    if let Some(PostMortem { diagnosis, step, .. }) = found {
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
    if let Some(PostMortem { probes, .. }) = found {
        weigh(&mut summary, probes);
    }
    // With a wrong clock, valid certificates look invalid.
    let skew = preflight.iter().find(|finding| finding.cause == Some(Cause::ClockSkew));
    let blames_trust =
        matches!(summary.cause, Some(Cause::TlsTrustFailure | Cause::ClusterCaMismatch));
    if let Some(finding) = skew.filter(|_| blames_trust) {
        summary.cause = Some(Cause::ClockSkew);
        summary.ev.insert(0, finding.detail.truncated(EVIDENCE_BYTES));
        summary.ev.truncate(EVIDENCE_LINES);
    }
    // A finding from before the attempt is stronger than a guess from the exit code; if the finding stopped
    // the attempt, the finding is the cause.
    let fatal = preflight.iter().find(|finding| finding.state == State::Fatal);
    let stopped =
        name.is_some_and(|name| name == exit_code::ORAS || name == Own::PreflightRefused.name());
    if let Some(finding) = fatal.filter(|_| stopped || summary.conf == Some(Sureness::Low)) {
        summary.cause = finding.cause.or(summary.cause);
        summary.conf = Some(if stopped { Sureness::High } else { Sureness::Medium });
        if stopped {
            summary.ev.clear();
        }
        // One line each: the probes, their addresses, and the answer of the package database.
        let (what, parts) =
            finding.detail.as_str().split_once("; ").unwrap_or((&finding.detail, ""));
        let mut parts: Vec<&str> = parts.split("; ").collect();
        parts.sort_by_key(|part| !part.starts_with("probed"));
        for line in parts.into_iter().filter(|part| !part.is_empty()).chain([what]) {
            summary.prove(line);
        }
    }
    if result.exit == exit_code::REFUSED && summary.name.is_empty() {
        exit_code::REFUSED_NAME.clone_into(&mut summary.name);
    }
    summary
}

/// Weighs the findings from after the attempt: a finding confirms a cause or makes it less certain, but never
/// removes evidence of the logs.
fn weigh(summary: &mut Summary, probes: &[Finding]) {
    for probe in probes {
        let unsure = summary.conf == Some(Sureness::Low);
        match (probe.check, probe.state) {
            ("disk", State::Fatal) if unsure => {
                summary.cause = probe.cause;
                summary.conf = Some(Sureness::Medium);
                summary.prove(&probe.detail);
            }
            ("disk" | "packages", _) => {}
            (_, State::Ok) if summary.conf == Some(Sureness::High) => {
                summary.conf = Some(Sureness::Medium);
                summary.prove(&format!("{} works now: {}", probe.check, probe.detail));
            }
            (_, State::Warn | State::Timeout) => summary.prove(&probe.detail),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(check: &'static str, state: State) -> Finding {
        let detail = bringup_diagnosis::redaction::redact("what was seen").text;
        Finding {
            check,
            state,
            found: None,
            cause: Some(Cause::DiskFull),
            name: None,
            ms: 0,
            detail,
            data: serde_json::Value::Null,
        }
    }

    #[test]
    fn a_probe_that_works_now_makes_a_cause_less_sure_and_takes_no_evidence() {
        let mut summary = Summary::new(52, "");
        summary.cause = Some(Cause::DnsFailure);
        summary.conf = Some(Sureness::High);
        summary.prove("no servers could be reached");
        weigh(&mut summary, &[probe("dns", State::Ok)]);
        assert_eq!(
            (summary.cause, summary.conf),
            (Some(Cause::DnsFailure), Some(Sureness::Medium))
        );
        assert_eq!(summary.ev[0].as_str(), "no servers could be reached");
    }

    #[test]
    fn a_disk_that_is_full_explains_only_what_nothing_else_explains() {
        let mut summary = Summary::new(1, "");
        summary.cause = Some(Cause::Unknown);
        summary.conf = Some(Sureness::Low);
        weigh(&mut summary, &[probe("disk", State::Fatal)]);
        assert_eq!(summary.cause, Some(Cause::DiskFull));
        summary.cause = Some(Cause::BinaryMissing);
        summary.conf = Some(Sureness::High);
        weigh(&mut summary, &[probe("disk", State::Fatal)]);
        assert_eq!(summary.cause, Some(Cause::BinaryMissing));
    }

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
