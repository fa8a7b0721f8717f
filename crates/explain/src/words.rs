//! Values in words, the same wherever a person reads them.

use bringup_contract::{Open, Retryable};
use bringup_diagnosis::Confidence;

/// A summary is written to be quoted; as a sentence of its own it begins with a capital and ends
/// with a full stop.
pub fn sentence(summary: &str) -> String {
    let mut characters = summary.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let whole = first.unwrap_or_default() + characters.as_str();
    if whole.ends_with('.') { whole } else { whole + "." }
}

/// Whether to try again.
pub fn retry(retryable: Retryable) -> &'static str {
    match retryable {
        Retryable::Yes => "usually works later, without a change",
        Retryable::Maybe => "may work later, without a change",
        Retryable::No => "fails again until the cause is fixed",
    }
}

/// How sure the verdict is.
pub(crate) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high: the evidence proves it",
        Confidence::Medium => "medium: the text speaks for it, and does not prove it",
        Confidence::Low => "low: a guess, the text does not decide",
    }
}

/// [`retry`] of a stored word. A word that this version does not know stands for itself.
pub(crate) fn stored_retry(retryable: &Open<Retryable>) -> &str {
    match retryable {
        Open::Known(known) => retry(*known),
        Open::Other(word) => word,
    }
}

/// [`confidence`] of a stored word. A word that this version does not know stands for itself.
pub(crate) fn stored_confidence(stored: &Open<Confidence>) -> &str {
    match stored {
        Open::Known(known) => confidence(*known),
        Open::Other(word) => word,
    }
}
