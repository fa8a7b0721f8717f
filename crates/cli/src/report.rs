//! A diagnosis as a person reads it.

use std::fmt::Write as _;

use bringup_contract::{Cause, Retryable};
use bringup_diagnosis::diagnosis::Proof;
use bringup_diagnosis::{Confidence, Diagnosis, Evidence, Verdict};

use crate::excerpt;
use crate::wrap::wrap;

/// The whole report.
pub(crate) fn text(diagnosis: &Diagnosis, evidence: &Evidence) -> String {
    let mut text = wrap(&headline(diagnosis), "");
    text.push_str(&wrap(&sentence(&diagnosis.summary), ""));
    let failed = diagnosis.verdict == Verdict::Failed;
    for proof in worth_showing(&diagnosis.proof) {
        let place =
            format!("Proof: {}, line {} ({})", proof.name, proof.line, proof.source.words());
        text.push('\n');
        text.push_str(&wrap(&place, ""));
        text.push_str(&excerpt::show(proof, evidence));
    }
    if failed && diagnosis.proof.is_empty() && diagnosis.cause.reason != Cause::Unknown {
        text.push_str("\nProof: none, no line shows it; the cause is concluded from the codes.\n");
    }
    for (index, overruled) in diagnosis.overruled.iter().enumerate() {
        text.push_str(if index == 0 { "\nWhat misled:\n" } else { "" });
        text.push_str(&wrap(&format!("{}: {}", overruled.reason, overruled.why), "  "));
    }
    if !diagnosis.timeline.is_empty() {
        text.push('\n');
        text.push_str(&timeline(diagnosis));
    }
    if failed || diagnosis.verdict == Verdict::Unknown {
        let _ = write!(text, "\nWhat to do:\n{}", wrap(&diagnosis.remedy, "  "));
    }
    if failed && diagnosis.cause.reason != Cause::Unknown {
        text.push('\n');
        text.push_str(&facts(diagnosis));
    }
    if diagnosis.cause.reason == Cause::Unknown && diagnosis.verdict != Verdict::Succeeded {
        text.push_str("\nLooked at:\n");
        for piece in &diagnosis.looked_at {
            text.push_str(&wrap(piece, "  "));
        }
    }
    text
}

/// The best proof, and one from another source: more lines of the same source add nothing.
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
    if let Some(code) = diagnosis.exit_code {
        let _ = write!(line, ", exit code {code}");
    }
    match (&diagnosis.constant, diagnosis.constant_candidates.as_slice()) {
        (Some(constant), _) => {
            let _ = write!(line, " {constant}");
        }
        (None, []) => {}
        (None, candidates) => {
            let _ = write!(line, " ({})", candidates.join(" or "));
        }
    }
    if let Some(outer) =
        diagnosis.outer_exit_code.filter(|outer| Some(*outer) != diagnosis.exit_code)
    {
        let _ = write!(line, ", outer exit status {outer}");
    }
    if let Some(code) = &diagnosis.arm_code {
        let _ = write!(line, ", ARM error {code}");
    }
    if let Some(seconds) = diagnosis.duration_seconds {
        let _ = write!(line, ", after {seconds} s");
    }
    line
}

/// A summary is written to be quoted; here it stands alone.
pub(crate) fn sentence(summary: &str) -> String {
    let mut characters = summary.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let whole = first.unwrap_or_default() + characters.as_str();
    if whole.ends_with('.') { whole } else { whole + "." }
}

fn timeline(diagnosis: &Diagnosis) -> String {
    let mut text = "Timeline:\n".to_owned();
    let start = diagnosis.timeline.first().map(|step| step.at);
    for step in &diagnosis.timeline {
        let since = start.map_or(0, |start| step.at.duration_since(start).as_secs());
        let _ = writeln!(text, "  {}  +{since:<4} s  {}", step.at, step.what);
    }
    text
}

fn facts(diagnosis: &Diagnosis) -> String {
    let cause = &diagnosis.cause;
    let mut text = String::new();
    let mut fact = |label: &str, value: &str| {
        text.push_str(&crate::wrap::hang(value, &format!("{label:<12}"), &" ".repeat(12)));
    };
    fact("Owner:", cause.owner);
    fact("Try again:", retry_in_words(cause.retryable));
    fact("Confidence:", confidence_in_words(cause.confidence));
    if let Some(image) = diagnosis.image_version {
        fact("Image:", &image.to_string());
    }
    text
}

/// Whether to try again.
pub(crate) fn retry_in_words(retryable: Retryable) -> &'static str {
    match retryable {
        Retryable::Yes => "usually works later, without a change",
        Retryable::Maybe => "may work later, without a change",
        Retryable::No => "fails again until somebody changes something",
    }
}

/// How sure it is.
pub(crate) fn confidence_in_words(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high: the evidence proves it",
        Confidence::Medium => "medium: the text speaks for it, and does not prove it",
        Confidence::Low => "low: a guess, the text does not decide",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn a_report_fits_the_terminal_and_shows_the_line() {
        let log = format!("{}\noras: command not found\n+ exit 211\n", "x".repeat(500));
        let evidence = Evidence::of_text(&log);
        let report = text(&bringup_diagnosis::diagnose(&evidence), &evidence);
        assert!(report.starts_with("FAILED: BinaryMissing"), "{report}");
        assert!(report.contains("2 | oras: command not found"), "{report}");
        assert!(report.lines().all(|line| line.width() <= 80), "{report}");
    }

    #[test]
    fn what_is_not_known_says_what_was_looked_at() {
        let evidence = Evidence::of_text("hello");
        let report = text(&bringup_diagnosis::diagnose(&evidence), &evidence);
        assert!(report.starts_with("UNKNOWN\n"), "{report}");
        assert!(report.contains("Looked at:"), "{report}");
    }
}
