//! A report that the cluster keeps, as a person reads it.

use std::fmt::Write as _;

use bringup_contract::{Cause, Open, Retryable};
use bringup_diagnosis::Confidence;
use bringup_objects::BootstrapReport;
use bringup_objects::cluster_api::{CLUSTER_LABEL, REPLACEMENT_USEFUL};
use bringup_objects::condition::{Condition, find};
use bringup_objects::report::{
    Collector, CollectorState, CseResult, EvidenceLine, Moment, Phase, ReportStatus,
};
use kube::ResourceExt as _;

use crate::images::Image;
use crate::report::{self, sentence};
use crate::wrap::{hang, wrap};

/// How many moments of the boot are shown.
const MOST_MOMENTS: usize = 8;
/// How many last lines are shown when the cause is not known.
const MOST_LAST_WORDS: usize = 3;

/// What happened, the line that proves it, and what to do.
pub(crate) fn story(report: &BootstrapReport, who: &str) -> String {
    let empty = ReportStatus::default();
    let status = report.status.as_ref().unwrap_or(&empty);
    let mut text = wrap(&headline(report), "");
    if let Some(verdict) = &status.verdict {
        text.push_str(&wrap(&sentence(&verdict.title), ""));
    }
    text.push('\n');
    text.push_str(&wrap(who, ""));
    text.push_str(&proof(status));
    text.push_str(&overruled(status));
    text.push_str(&timeline(&status.timeline));
    text.push_str(&collectors(&status.collectors));
    if !status.remediation.is_empty() {
        let _ = write!(text, "\nWhat to do:\n{}", wrap(&status.remediation.join(" "), "  "));
    }
    text
}

fn headline(report: &BootstrapReport) -> String {
    let cause = report.cause().unwrap_or("no verdict yet");
    let mut line = match report.phase() {
        Open::Known(Phase::Superseded) => format!("SUCCEEDED after all, judged {cause} before"),
        Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => format!("FAILED: {cause}"),
    };
    if let Some(cse) = report.status.as_ref().and_then(|status| status.cse.as_ref()) {
        line.push_str(&exit_code(cse));
    }
    line
}

/// The code with its constant, or all it can be.
fn exit_code(cse: &CseResult) -> String {
    let mut text = cse.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    match (&cse.constant, cse.constant_candidates.as_slice()) {
        (Some(constant), _) => {
            let _ = write!(text, " {constant}");
        }
        (None, []) => {}
        (None, candidates) => {
            let _ = write!(text, " ({})", candidates.join(" or "));
        }
    }
    if let Some(outer) = cse.outer_status.filter(|outer| Some(*outer) != cse.exit_code) {
        let _ = write!(text, ", outer exit status {outer}");
    }
    text
}

/// The line that the verdict rests on. Further lines are the last words of each text, which are of
/// use where there is no verdict.
fn proof(status: &ReportStatus) -> String {
    let shown = |label: &str, line: &EvidenceLine| {
        let around = |lines: &[String]| -> String {
            lines.iter().map(|line| hang(line, "    ", "    ")).collect()
        };
        let (before, after) = (around(&line.before), around(&line.after));
        let proof = hang(&line.line, "  | ", "  | ");
        format!("\n{label} ({}):\n{before}{proof}{after}", line.source)
    };
    let proven = status.verdict.as_ref().is_some_and(|one| one.cause != Cause::Unknown);
    match &status.root_evidence {
        Some(root) if proven => shown("Proof", root),
        None if proven => {
            "\nProof: none, no line shows it; the cause is concluded from the codes.\n".to_owned()
        }
        Some(_) | None => {
            let lines = status.evidence.iter().take(MOST_LAST_WORDS);
            lines.map(|line| shown("Last words", line)).collect()
        }
    }
}

fn overruled(status: &ReportStatus) -> String {
    let mut text = String::new();
    for (index, other) in status.contributing.iter().enumerate() {
        text.push_str(if index == 0 { "\nWhat misled:\n" } else { "" });
        text.push_str(&wrap(&format!("{}: {}", other.cause, other.line), "  "));
    }
    let explanation = status.verdict.as_ref().and_then(|verdict| verdict.explanation.as_deref());
    match explanation.filter(|_| text.is_empty()) {
        Some(why) => format!("\nWhat misled:\n{}", wrap(why, "  ")),
        None => text,
    }
}

/// The first and the last moments: between them lies what is least asked for.
pub(crate) fn timeline(moments: &[Moment]) -> String {
    let Some(start) = moments.first().map(|moment| moment.at.0) else { return String::new() };
    let skipped = moments.len().saturating_sub(MOST_MOMENTS);
    let half = MOST_MOMENTS / 2;
    let mut text = "\nTimeline:\n".to_owned();
    for (index, moment) in moments.iter().enumerate() {
        if skipped > 0 && index == half {
            let _ = writeln!(text, "  ... {skipped} more ...");
        }
        if skipped > 0 && (half..half + skipped).contains(&index) {
            continue;
        }
        let since = moment.at.0.duration_since(start).as_secs();
        let at = moment.at.0.strftime("%Y-%m-%dT%H:%M:%SZ");
        let lead = format!("  {at}  +{since:<4} s  ");
        text.push_str(&hang(&moment.what, &lead, &" ".repeat(lead.len())));
    }
    text
}

/// The sources that were asked, and the result of each.
pub(crate) fn collectors(asked: &[Collector]) -> String {
    let mut text = String::new();
    for (index, one) in asked.iter().enumerate() {
        text.push_str(if index == 0 { "\nAsked:\n" } else { "" });
        let Some(state) = one.state.known() else {
            text.push_str(&hang(
                &format!("{} {}: {}", one.name, one.state, one.detail),
                "  ",
                "    ",
            ));
            continue;
        };
        let came = match state {
            CollectorState::Ok => "answered",
            CollectorState::Empty => "had nothing to tell",
            CollectorState::Disabled => "is switched off",
            CollectorState::Denied => "may not be asked",
            CollectorState::Throttled => "could not be asked in time",
            CollectorState::Late => "was gone, or not there yet",
            CollectorState::Failed => "could not be asked",
        };
        let detail =
            if one.detail.is_empty() { String::new() } else { format!(": {}", one.detail) };
        text.push_str(&hang(&format!("{} {came}{detail}", one.name), "  ", "    "));
    }
    text
}

/// The owner of the failure, and the facts about the machine.
pub(crate) fn facts(report: &BootstrapReport) -> String {
    let mut text = String::new();
    let mut fact = |label: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&hang(value, &format!("{label:<12}"), &" ".repeat(12)));
        }
    };
    let spec = &report.spec;
    if let Some(verdict) = report.status.as_ref().and_then(|status| status.verdict.as_ref()) {
        fact("Owner:", &verdict.owner);
        fact("Try again:", retry_in_words(&verdict.retryable));
        fact("Confidence:", confidence_in_words(&verdict.confidence));
    }
    fact("Image:", &Image::of_report(report).map(|image| image.words()).unwrap_or_default());
    let machine = [
        spec.vm_size.as_deref(),
        spec.zone.as_deref(),
        spec.capacity_type.as_ref().map(Open::as_str),
        spec.provision_mode.as_ref().map(Open::as_str),
    ];
    let machine: Vec<&str> = machine.into_iter().flatten().collect();
    fact("Machine:", &machine.join(", "));
    fact("Replace:", &replacement(report).map(replacement_in_words).unwrap_or_default());
    text
}

/// Where a report is kept, and how far it has come.
pub(crate) fn whereabouts(report: &BootstrapReport) -> String {
    let lost = match report.phase() {
        Open::Known(Phase::Lost) => {
            ", evidence was gone before it could be read; it may still be found"
        }
        Open::Known(Phase::Final | Phase::Superseded) | Open::Other(_) => "",
    };
    hang(&format!("{}{lost}", place(report)), "Report:     ", "            ")
}

/// Whether another machine would help, in what is known of a Machine.
pub(crate) fn replacement(report: &BootstrapReport) -> Option<&Condition> {
    find(&report.status.as_ref()?.conditions, REPLACEMENT_USEFUL)
}

fn replacement_in_words(useful: &Condition) -> String {
    let word = match useful.status.as_str() {
        "True" => "useful",
        "False" => "not useful",
        _ => "not known whether useful",
    };
    format!("{word}: {}", useful.message)
}

/// The cluster of a Machine.
pub(crate) fn cluster(report: &BootstrapReport) -> Option<&str> {
    let parent = report.spec.parent_ref.as_ref().filter(|parent| parent.kind == "Cluster");
    let label = report.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER_LABEL));
    label.map(String::as_str).or_else(|| Some(parent?.name.as_str()))
}

/// Where a report is.
pub(crate) fn place(report: &BootstrapReport) -> String {
    format!("{}/{}", report.namespace().unwrap_or_default(), report.name_any())
}

/// Whether to try again. A word that is not known stands for itself.
fn retry_in_words(retryable: &Open<Retryable>) -> &str {
    match retryable {
        Open::Known(known) => report::retry_in_words(*known),
        Open::Other(word) => word,
    }
}

fn confidence_in_words(confidence: &Open<Confidence>) -> &str {
    match confidence {
        Open::Known(known) => report::confidence_in_words(*known),
        Open::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bringup_objects::report::ReportVerdict;

    #[test]
    fn what_stands_around_a_proof_is_shown_beside_it() {
        let root = EvidenceLine {
            source: "serial log".to_owned(),
            line: "No space left on device".to_owned(),
            before: vec!["+ tar".to_owned(), "opt/cni".to_owned()],
            after: vec!["finished".to_owned()],
            ..EvidenceLine::default()
        };
        let verdict = ReportVerdict { cause: Cause::DiskFull.into(), ..ReportVerdict::default() };
        let status = ReportStatus {
            verdict: Some(verdict),
            root_evidence: Some(root),
            ..ReportStatus::default()
        };
        assert_eq!(
            proof(&status),
            "\nProof (serial log):\n    + tar\n    opt/cni\n  | No space left on device\n    finished\n"
        );
    }
}
