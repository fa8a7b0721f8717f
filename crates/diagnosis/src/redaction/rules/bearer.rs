//! Rules `bearer-token` and `basic-credential`.
//!
//! Remove: what follows the words `Bearer` and `Basic` where it is a credential. Clients print
//! their headers in many forms, so the words alone have to do.
//!
//! Leave alone: the words in sentences, a registry's challenge (`Bearer realm=…`), sizes of
//! machines (`Basic_A0`).

use std::ops::Range;

use super::super::scan::Scan;
use super::super::shape;
use super::super::value;
use super::super::view::View;
use super::super::wrap;
use super::encoded_secret;

/// Shorter credentials do not exist; shorter words do.
const SHORTEST: usize = 8;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// At `bearer`.
pub(in super::super) fn examine_bearer(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let Some(credential) = credential(scan.view, &anchor) else { return };
    if !shape::is_word(&scan.view.bytes()[credential.clone()]) || credential.len() > 24 {
        scan.strike(credential, "bearer-token");
    }
}

/// At `basic`.
pub(in super::super) fn examine_basic(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let Some(credential) = credential(scan.view, &anchor) else { return };
    let text = &scan.view.bytes()[credential.clone()];
    let unpadded = text.iter().position(|byte| *byte == b'=').map_or(text, |end| &text[..end]);
    let unpadded = &unpadded[..unpadded.len().min(shape::LONGEST_HARMLESS)];
    let decoded = encoded_secret::decoded(unpadded);
    let is_pair =
        decoded.contains(&b':') && decoded.iter().all(|byte| *byte >= b' ' && *byte != 0x7F);
    if is_pair || shape::is_key_like(text) || text.len() > shape::LONGEST_HARMLESS {
        scan.strike(credential, "basic-credential");
    }
}

fn credential(view: &View, word: &Range<usize>) -> Option<Range<usize>> {
    let blanks = value::after_blanks(view, word.end);
    let wrapped = view.is_break(word.end) && wrap::continues(view, word.end, false);
    let encoded_blank = view.bytes()[word.end..].starts_with(b"%20");
    let start = match () {
        () if encoded_blank => word.end + 3,
        () if blanks > word.end || wrapped => blanks,
        () if matches!(view.at(word.end), b'+' | b':' | b'=') => {
            value::after_blanks(view, word.end + 1)
        }
        () => return None,
    };
    let start = start + usize::from(value::is_quote(view.at(start)));
    let mut end = value::end_of_letters(view, start, SHORTEST, is_letter);
    if view.before(end) == b'='
        && value::is_quote(view.at(end))
        && shape::is_word(&view.bytes()[start..end - 1])
    {
        return None;
    }
    while view.before(end) == b'.' {
        end -= 1;
    }
    (end >= start + SHORTEST).then_some(start..end)
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
