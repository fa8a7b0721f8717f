//! Removes secrets from untrusted text, and keeps the text diagnosable.
//!
//! # Flow
//!
//! 1. `view` reads the text as a person would: escapes undone, wrapped lines joined, with a map
//!    back to the source. Rules look at the view only, so none of them knows about JSON levels,
//!    percent signs, ANSI colours or console widths.
//! 2. `anchors` finds, in one pass, every place where a rule could strike by its words
//!    (`token`, `sig`, `://`, …); `runs` finds what has no words: long runs of key-like letters.
//! 3. Each `rules` module looks at its places only and reports what it would remove.
//! 4. `strikes` maps what is to go back to the source and writes the marker in its stead.
//!
//! # Guarantees
//!
//! - Linear in time and memory, for any text; no panic.
//! - Fails closed: a value with a secret's name and an unknown shape goes; an unclosed quotation
//!   goes to the end of its line; letters that could be a key and decode to nothing readable go;
//!   text beyond [`MAXIMUM_BYTES`] goes unread.
//! - Line breaks stay, also those inside a secret, so line numbers stay valid.
//! - An escape sequence is never cut, so JSON that was valid stays valid.
//! - Redacting twice gives what redacting once gives.

use serde::{Deserialize, Deserializer, Serialize};

mod anchors;
mod name;
mod pieces;
mod redacted;
mod rules;
mod runs;
mod scan;
mod shape;
mod strikes;
mod value;
mod view;
mod words;
mod work;
mod wrap;

#[cfg(test)]
mod hostile;

pub use redacted::Redacted;

/// Longer text is cut here before it is read; a marker with the length of the rest takes its place.
pub const MAXIMUM_BYTES: usize = 32 * 1024 * 1024;

/// How often a text is read before it is given up. Two rounds are the rule for a text with secrets,
/// three have been seen.
const MAXIMUM_ROUNDS: usize = 8;

/// The name of the marker that stands for text beyond [`MAXIMUM_BYTES`].
const OVER_BUDGET: &str = "over-budget";

/// What [`redact`] made of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// The text without its secrets.
    pub text: Redacted,
    /// How many places were replaced.
    pub count: usize,
    /// The names of the rules that struck, sorted, each once.
    pub rules: Vec<&'static str>,
}

/// Removes every secret that can be recognised, each replaced by `[redacted <rule>]`.
///
/// A pure function; see the module for what it guarantees.
pub fn redact(text: &str) -> Redaction {
    redact_within(text, MAXIMUM_BYTES)
}

/// [`redact`] with another limit than [`MAXIMUM_BYTES`].
fn redact_within(text: &str, maximum_bytes: usize) -> Redaction {
    let kept = text.floor_char_boundary(maximum_bytes);
    let mut redaction = redact_until_clean(&text[..kept]);
    if kept < text.len() {
        redaction.add_over_budget(text.len() - kept);
    }
    redaction
}

/// What a rule finds depends on what stands around it, and that changes when something is removed.
/// So the surroundings of what was removed are read again, until no rule finds anything in them.
fn redact_until_clean(text: &str) -> Redaction {
    let mut rendered = strikes::render(text, pieces::examine(text));
    let mut rules = std::mem::take(&mut rendered.rules);
    for _ in 1..MAXIMUM_ROUNDS {
        let found = pieces::examine_around(&rendered.text, &rendered.markers);
        if found.is_empty() {
            return Redaction::of(Redacted::trusted(rendered.text), rules);
        }
        rendered = strikes::render(&rendered.text, found);
        rules.append(&mut rendered.rules);
    }
    // Nothing is left but the line breaks, since proofs name lines by their number.
    let breaks = "\n".repeat(memchr::memchr_iter(b'\n', rendered.text.as_bytes()).count());
    let mut redaction = Redaction::of(Redacted::trusted(breaks), rules);
    redaction.add_over_budget(rendered.text.len());
    redaction
}

impl Redaction {
    fn of(text: Redacted, mut rules: Vec<&'static str>) -> Self {
        let count = rules.len();
        rules.sort_unstable();
        rules.dedup();
        Self { text, count, rules }
    }

    /// Appends the marker for `length` bytes that were not read.
    fn add_over_budget(&mut self, length: usize) {
        let marker = Redacted::trusted(format!("[redacted {OVER_BUDGET} {length} bytes]"));
        self.text = Redacted::concat(&[&self.text, &marker]);
        self.count += 1;
        self.rules.push(OVER_BUDGET);
        self.rules.sort_unstable();
        self.rules.dedup();
    }
}

impl Serialize for Redacted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What is read back is redacted again: every file is untrusted.
impl<'de> Deserialize<'de> for Redacted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| redact(&text).text)
    }
}

#[cfg(test)]
mod tests {
    use super::{redact, redact_within};

    #[test]
    fn text_beyond_the_budget_is_replaced_by_its_length_and_never_passed_through() {
        let redaction = redact_within("exit status=50\nhunter2 é", 24);
        assert_eq!(
            redaction.text.as_str(),
            "exit status=50\nhunter2 [redacted over-budget 2 bytes]"
        );
        assert_eq!(redaction.rules, ["over-budget"]);
    }

    #[test]
    fn a_text_without_secrets_is_unchanged() {
        let redaction = redact("+ exit 211\r\n");
        assert_eq!(redaction.text.as_str(), "+ exit 211\r\n");
        assert_eq!((redaction.count, redaction.rules.len()), (0, 0));
    }
}
