//! Explains a report that is stored in the cluster.

use bringup_contract::{Cause, ImageVersion, Open};
use bringup_diagnosis::Verdict;
use bringup_objects::BootstrapReport;
use bringup_objects::cluster_api::{CLUSTER_LABEL, REPLACEMENT_USEFUL};
use bringup_objects::condition::{Condition, find};
use bringup_objects::report::{
    Collector, CollectorState, EvidenceLine, Moment as StoredMoment, Phase, ReportStatus,
};
use kube::ResourceExt as _;

use crate::block::{Block, Explanation, Moment, Row};
use crate::words::{self, NO_PROOF, exit_code, sentence};

/// The most last lines that are shown if the cause is not known.
const MOST_LAST_LINES: usize = 3;

impl Explanation {
    /// Explains a report: the failure, the line that proves it, and the remedy. `subject` is a sentence about
    /// the object that failed.
    pub fn of_report(report: &BootstrapReport, subject: &str) -> Self {
        let empty = ReportStatus::default();
        let status = report.status.as_ref().unwrap_or(&empty);
        let (verdict, line) = headline(report);
        let mut told = Self::default();
        told.push(Block::Headline(verdict, line));
        if let Some(verdict) = &status.verdict {
            told.paragraph(sentence(&verdict.title));
        }
        told.paragraph("");
        told.paragraph(subject);
        told.blocks.extend(proof(status));
        told.blocks.extend(overruled(status));
        told.timeline(&status.timeline, verdict == Verdict::Failed);
        told.collectors(&status.collectors);
        if !status.remediation.is_empty() {
            let paragraphs = vec![status.remediation.join(" ")];
            told.push(Block::Section { title: "What to do".to_owned(), paragraphs });
        }
        told
    }

    /// Appends the timeline of a boot.
    pub fn timeline(&mut self, moments: &[StoredMoment], failed: bool) {
        if !moments.is_empty() {
            let moment =
                |moment: &StoredMoment| Moment { at: moment.at.0, what: moment.what.clone() };
            self.push(Block::Timeline { moments: moments.iter().map(moment).collect(), failed });
        }
    }

    /// Appends the sources of evidence, and the result of each.
    pub fn collectors(&mut self, asked: &[Collector]) {
        if !asked.is_empty() {
            let entries = asked.iter().map(collector).collect();
            self.push(Block::List { title: Some("Sources".to_owned()), entries });
        }
    }

    /// Appends who can act on a report, and the properties of the machine. With `stored`, also the name of
    /// the report.
    pub fn facts(&mut self, report: &BootstrapReport, stored: bool) {
        let mut facts = Vec::new();
        let mut fact = |label, value: String| {
            if !value.is_empty() {
                facts.push((label, value));
            }
        };
        let spec = &report.spec;
        if let Some(verdict) = report.status.as_ref().and_then(|status| status.verdict.as_ref()) {
            fact("Owner", verdict.owner.clone());
            fact("Try again", words::stored_retry(&verdict.retryable).to_owned());
            fact("Confidence", words::stored_confidence(&verdict.confidence).to_owned());
        }
        fact("Image", image(report).unwrap_or_default());
        let machine = [
            spec.vm_size.as_deref(),
            spec.zone.as_deref(),
            spec.capacity_type.as_ref().map(Open::as_str),
            spec.provision_mode.as_ref().map(Open::as_str),
        ];
        let machine: Vec<&str> = machine.into_iter().flatten().collect();
        fact("Machine", machine.join(", "));
        fact("Replace", replacement(report).map(replacement_in_words).unwrap_or_default());
        if stored {
            let lost = match report.phase() {
                Open::Known(Phase::Lost) => {
                    ", the evidence was deleted before it could be read; it may still be found"
                }
                Open::Known(Phase::Final | Phase::Superseded) | Open::Other(_) => "",
            };
            fact("Report", format!("{}{lost}", place(report)));
        }
        self.push(Block::Facts(facts));
    }
}

fn headline(report: &BootstrapReport) -> (Verdict, String) {
    let cause = report.cause().unwrap_or("no verdict yet");
    let (verdict, mut line) = match report.phase() {
        Open::Known(Phase::Superseded) => {
            (Verdict::Succeeded, format!("SUCCEEDED after all, diagnosed as {cause} before"))
        }
        Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => {
            (Verdict::Failed, format!("FAILED: {cause}"))
        }
    };
    if let Some(cse) = report.status.as_ref().and_then(|status| status.cse.as_ref()) {
        line.push_str(&exit_code(
            cse.exit_code,
            cse.constant.as_deref(),
            &cse.constant_candidates,
            cse.outer_status,
        ));
    }
    (verdict, line)
}

/// The line that proves the verdict; if the cause is not known, the last lines of each text.
fn proof(status: &ReportStatus) -> Vec<Block> {
    let shown = |label: &str, line: &EvidenceLine| {
        let row =
            |text: &String| Row { number: None, text: text.clone(), is_proof: false, span: None };
        let mut rows: Vec<Row> = line.before.iter().map(row).collect();
        rows.push(Row { is_proof: true, ..row(&line.line) });
        rows.extend(line.after.iter().map(row));
        Block::Quote { label: format!("{label} ({}):", line.source), rows }
    };
    let proven = status.verdict.as_ref().is_some_and(|one| one.cause != Cause::Unknown);
    match &status.root_evidence {
        Some(root) if proven => vec![shown("Proof", root)],
        None if proven => {
            vec![Block::Quote { label: NO_PROOF.to_owned(), rows: Vec::new() }]
        }
        Some(_) | None => {
            let lines = status.evidence.iter().take(MOST_LAST_LINES);
            lines.map(|line| shown("Last lines", line)).collect()
        }
    }
}

fn overruled(status: &ReportStatus) -> Option<Block> {
    let contributing = status.contributing.iter();
    let mut paragraphs: Vec<String> =
        contributing.map(|other| format!("{}: {}", other.cause, other.line)).collect();
    if paragraphs.is_empty() {
        paragraphs.push(status.verdict.as_ref()?.explanation.clone()?);
    }
    Some(Block::Section { title: "What misled".to_owned(), paragraphs })
}

fn collector(one: &Collector) -> String {
    let Some(state) = one.state.known() else {
        return format!("{} {}: {}", one.name, one.state, one.detail);
    };
    let came = match state {
        CollectorState::Ok => "was read",
        CollectorState::Empty => "is empty",
        CollectorState::Disabled => "is disabled",
        CollectorState::Denied => "is forbidden",
        CollectorState::Throttled => "was throttled",
        CollectorState::Late => "was not found",
        CollectorState::Failed => "could not be read",
    };
    let detail = if one.detail.is_empty() { String::new() } else { format!(": {}", one.detail) };
    format!("{} {came}{detail}", one.name)
}

/// The image of a report: `V3gen2 202601.27.0`.
fn image(report: &BootstrapReport) -> Option<String> {
    let named = report.spec.image.as_deref().and_then(|id| {
        let version = ImageVersion::find(id)?;
        Some(match family(id) {
            Some(family) => format!("{family} {version}"),
            None => version.to_string(),
        })
    });
    named.or_else(|| report.spec.image_version.clone())
}

/// The image family in the ID of an image: `…/images/V3gen2/versions/202601.27.0`.
pub fn family(id: &str) -> Option<&str> {
    let mut segments = id.split('/');
    segments.find(|one| one.eq_ignore_ascii_case("images"))?;
    segments.next()
}

/// The condition whether replacing the machine would help, in a report about a Machine.
pub fn replacement(report: &BootstrapReport) -> Option<&Condition> {
    find(&report.status.as_ref()?.conditions, REPLACEMENT_USEFUL)
}

fn replacement_in_words(useful: &Condition) -> String {
    let word = match useful.status.as_str() {
        "True" => "useful",
        "False" => "not useful",
        _ => "unknown",
    };
    format!("{word}: {}", useful.message)
}

/// The cluster of the Machine that a report is about.
pub fn cluster(report: &BootstrapReport) -> Option<&str> {
    let parent = report.spec.parent_ref.as_ref().filter(|parent| parent.kind == "Cluster");
    let label = report.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER_LABEL));
    label.map(String::as_str).or_else(|| Some(parent?.name.as_str()))
}

/// The namespace and name of a report.
pub fn place(report: &BootstrapReport) -> String {
    format!("{}/{}", report.namespace().unwrap_or_default(), report.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bringup_objects::report::ReportVerdict;

    #[test]
    fn the_lines_around_a_proof_are_shown_beside_it() {
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
            Explanation { blocks: proof(&status) }.text(),
            "\nProof (serial log):\n    + tar\n    opt/cni\n  | No space left on device\n    finished\n"
        );
    }
}
