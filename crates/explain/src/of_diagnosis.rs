//! Explains a diagnosis that was just made.

use std::fmt::Write as _;

use bringup_contract::Cause;
use bringup_diagnosis::diagnosis::Proof;
use bringup_diagnosis::{Diagnosis, Evidence, Verdict};

use crate::block::{Block, Explanation, Moment};
use crate::excerpt;
use crate::words::{self, NO_PROOF, exit_code, sentence};

impl Explanation {
    /// Explains a diagnosis, with the lines before and after the proof.
    pub fn of_diagnosis(diagnosis: &Diagnosis, evidence: &Evidence) -> Self {
        let failed = diagnosis.verdict == Verdict::Failed;
        let is_known = diagnosis.cause.reason != Cause::Unknown;
        let mut told = Self::default();
        told.push(Block::Headline(diagnosis.verdict, headline(diagnosis)));
        told.paragraph(sentence(&diagnosis.summary));
        for proof in worth_showing(&diagnosis.proof) {
            let label =
                format!("Proof: {}, line {} ({})", proof.name, proof.line, proof.source.words());
            told.push(Block::Quote { label, rows: excerpt::rows(proof, evidence) });
        }
        if failed && diagnosis.proof.is_empty() && is_known {
            told.push(Block::Quote { label: NO_PROOF.to_owned(), rows: Vec::new() });
        }
        if !diagnosis.overruled.is_empty() {
            let overruled = diagnosis.overruled.iter();
            let paragraphs = overruled.map(|one| format!("{}: {}", one.reason, one.why)).collect();
            told.push(Block::Section { title: "What misled".to_owned(), paragraphs });
        }
        if !diagnosis.timeline.is_empty() {
            let moment = |step: &bringup_diagnosis::diagnosis::Step| Moment {
                at: step.at,
                what: step.what.to_owned(),
            };
            let moments = diagnosis.timeline.iter().map(moment).collect();
            told.push(Block::Timeline { moments, failed });
        }
        if failed || diagnosis.verdict == Verdict::Unknown {
            let paragraphs = vec![diagnosis.remedy.clone()];
            told.push(Block::Section { title: "What to do".to_owned(), paragraphs });
        }
        if failed && is_known {
            told.push(Block::Facts(facts(diagnosis)));
        }
        if !is_known && diagnosis.verdict != Verdict::Succeeded {
            let paragraphs = diagnosis.looked_at.clone();
            told.push(Block::Section { title: "Evidence read".to_owned(), paragraphs });
        }
        told
    }
}

/// The best proof, and one from another text: another one from the same text adds nothing.
fn worth_showing(proofs: &[Proof]) -> impl Iterator<Item = &Proof> {
    let elsewhere = proofs.iter().skip(1).find(|proof| proof.name != proofs[0].name);
    proofs.first().into_iter().chain(elsewhere)
}

/// The verdict, the cause and the code, in one line.
fn headline(diagnosis: &Diagnosis) -> String {
    let mut line = match diagnosis.verdict {
        Verdict::Failed => format!("FAILED: {}", diagnosis.cause.reason),
        Verdict::Succeeded => "SUCCEEDED".to_owned(),
        Verdict::Running => "RUNNING".to_owned(),
        Verdict::Unknown => "UNKNOWN".to_owned(),
    };
    line.push_str(&exit_code(
        diagnosis.exit_code,
        diagnosis.constant.as_deref(),
        &diagnosis.constant_candidates,
        diagnosis.outer_exit_code,
    ));
    if let Some(code) = &diagnosis.arm_code {
        let _ = write!(line, ", ARM error {code}");
    }
    if let Some(seconds) = diagnosis.duration_seconds {
        let _ = write!(line, ", after {seconds} s");
    }
    line
}

fn facts(diagnosis: &Diagnosis) -> Vec<(&'static str, String)> {
    let cause = &diagnosis.cause;
    let mut facts = vec![
        ("Owner", cause.owner.to_owned()),
        ("Try again", words::retry(cause.retryable).to_owned()),
        ("Confidence", words::confidence(cause.confidence).to_owned()),
    ];
    facts.extend(diagnosis.image_version.map(|image| ("Image", image.to_string())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    fn text(evidence: &Evidence) -> String {
        Explanation::of_diagnosis(&bringup_diagnosis::diagnose(evidence), evidence).text()
    }

    #[test]
    fn an_explanation_fits_the_terminal_and_shows_the_line() {
        let log = format!("{}\noras: command not found\n+ exit 211\n", "x".repeat(500));
        let report = text(&Evidence::of_text(&log));
        assert!(report.starts_with("FAILED: BinaryMissing"), "{report}");
        assert!(report.contains("2 | oras: command not found"), "{report}");
        assert!(report.lines().all(|line| line.width() <= 80), "{report}");
    }

    #[test]
    fn an_unknown_cause_lists_what_was_looked_at() {
        let report = text(&Evidence::of_text("hello"));
        assert!(report.starts_with("UNKNOWN\n"), "{report}");
        assert!(report.contains("Evidence read:"), "{report}");
    }
}
