//! Rules `bearer-token` and `basic-credential`.
//!
//! Remove: what follows the words `Bearer` and `Basic` where it is a credential. Clients print
//! their headers in many forms, so the words alone have to do.
//!
//! Leave alone: the words in sentences, a registry's challenge (`Bearer realm=…`), sizes of
//! machines (`Basic_A0`).

use std::ops::Range;

use super::encoded_secret;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;
use crate::redaction::wrap;

/// Shorter credentials do not exist; shorter words do.
const SHORTEST: usize = 8;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// At `bearer`.
pub(in crate::redaction) fn examine_bearer(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let Some(credential) = credential(scan.view, &anchor) else { return };
    if !shape::is_word(scan.view.slice(credential.clone())) || credential.len() > 24 {
        scan.strike(credential, "bearer-token");
    }
}

/// At `basic`.
pub(in crate::redaction) fn examine_basic(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let Some(credential) = credential(scan.view, &anchor) else { return };
    let text = scan.view.slice(credential.clone());
    let unpadded = text.iter().position(|byte| *byte == b'=').map_or(text, |end| &text[..end]);
    let unpadded = &unpadded[..unpadded.len().min(shape::LONGEST_HARMLESS)];
    let decoded = encoded_secret::decoded(unpadded);
    let is_pair =
        decoded.contains(&b':') && decoded.iter().all(|byte| *byte >= b' ' && *byte != 0x7F);
    if is_pair || shape::is_key_like(text) || text.len() > shape::LONGEST_HARMLESS {
        scan.strike(credential, "basic-credential");
    }
}

/// What follows the word, if it is long enough and not a parameter of a challenge.
fn credential(view: &View, word: &Range<usize>) -> Option<Range<usize>> {
    let start = credential_start(view, word.end)?;
    let start = start + usize::from(value::is_quote(view.at(start)));
    let mut end = value::end_of_letters(view, start, SHORTEST, is_letter);
    let is_parameter = view.before(end) == b'='
        && value::is_quote(view.at(end))
        && shape::is_word(view.slice(start..end - 1));
    while view.before(end) == b'.' {
        end -= 1;
    }
    (!is_parameter && end >= start + SHORTEST).then_some(start..end)
}

/// Where a credential begins after a word that ends at `end`: after a blank, in whatever form.
fn credential_start(view: &View, end: usize) -> Option<usize> {
    const ENCODED_BLANK: &[u8] = b"%20";
    let blanks = value::after_blanks(view, end);
    if view.bytes()[end..].starts_with(ENCODED_BLANK) {
        Some(end + ENCODED_BLANK.len())
    } else if blanks > end || view.is_break(end) && wrap::continues(view, end, false) {
        Some(blanks)
    } else if matches!(view.at(end), b'+' | b':' | b'=') {
        Some(value::after_blanks(view, end + 1))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn credentials_after_the_words_go() {
        for (text, expected) in [
            ("{ a: 'Bearer aB3dE5gH7' }", "{ a: 'Bearer [redacted bearer-token]' }"),
            ("bearer%20aB3dE5gH7.x", "bearer%20[redacted bearer-token]"),
            ("Basic dXNlcjpwYXNz x", "Basic [redacted basic-credential] x"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn sentences_and_challenges_stay() {
        assert_kept(&[
            "invalid bearer token, retrying",
            "WWW-Authenticate: Bearer realm=\"https://r.example/oauth2/token\",service=\"r.example\"",
            "Bearer authorization failed",
            "the Basic Load Balancer retires",
            "sku: Basic_A0",
        ]);
    }
}
