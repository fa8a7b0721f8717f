//! Values in words, the same in every output for people.

use std::fmt::Write as _;

use bringup_contract::{Open, Retryable};
use bringup_diagnosis::Confidence;

/// The text to show if no line proves the cause.
pub(crate) const NO_PROOF: &str =
    "Proof: none. No line shows the cause; it follows from the codes alone.";

/// A summary as a sentence of its own, with a capital at the beginning and a full stop at the end.
pub fn sentence(summary: &str) -> String {
    let mut characters = summary.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let whole = first.unwrap_or_default() + characters.as_str();
    if whole.ends_with('.') { whole } else { whole + "." }
}

/// Whether a retry may help, in words.
pub fn retry(retryable: Retryable) -> &'static str {
    match retryable {
        Retryable::Yes => "a retry without changes usually succeeds",
        Retryable::Maybe => "a retry without changes may succeed",
        Retryable::No => "a retry fails until the cause is fixed",
    }
}

/// The confidence of the verdict, in words.
pub(crate) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high: the evidence proves it",
        Confidence::Medium => "medium: the evidence supports it, but does not prove it",
        Confidence::Low => "low: a guess, because the evidence is inconclusive",
    }
}

/// [`retry`] of a stored value. A value that this version does not know is shown as stored.
pub(crate) fn stored_retry(retryable: &Open<Retryable>) -> &str {
    match retryable {
        Open::Known(known) => retry(*known),
        Open::Other(word) => word,
    }
}

/// [`confidence`] of a stored value. A value that this version does not know is shown as stored.
pub(crate) fn stored_confidence(stored: &Open<Confidence>) -> &str {
    match stored {
        Open::Known(known) => confidence(*known),
        Open::Other(word) => word,
    }
}

/// The exit code with its constant, or with all possible constants, and the status that the handler reported.
pub(crate) fn exit_code(
    code: Option<i32>,
    constant: Option<&str>,
    candidates: &[String],
    outer: Option<i32>,
) -> String {
    let mut text = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    match (constant, candidates) {
        (Some(constant), _) => {
            let _ = write!(text, " {constant}");
        }
        (None, []) => {}
        (None, candidates) => {
            let _ = write!(text, " ({})", candidates.join(" or "));
        }
    }
    if let Some(outer) = outer.filter(|outer| Some(*outer) != code) {
        let _ = write!(text, ", outer exit status {outer}");
    }
    text
}
