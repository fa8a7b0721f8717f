//! Rule `authorization`.
//!
//! Removes: the credentials of `Authorization` and similar headers, whatever their scheme; the
//! scheme stays. For registries' `auth` members see [`super::named_value`].
//!
//! Leaves alone: settings and sentences about authorization.

use std::ops::Range;

use super::{named_value, tool_password};
use crate::redaction::name;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "authorization";

/// Schemes whose credentials have several parts, and go up to the end of the line.
const OF_MANY_PARTS: [&[u8]; 4] = [b"digest", b"aws4-hmac-sha256", b"sharedkey", b"sharedkeylite"];

/// Schemes with one part.
const OF_ONE_PART: [&[u8]; 6] = [b"bearer", b"basic", b"negotiate", b"ntlm", b"token", b"apikey"];

/// How a websocket's protocol carries a token to the API server.
const KUBERNETES: &[u8] = b"authorization.k8s.io.";

/// How a mail client proves itself.
const MAIL: [&[u8]; 4] = [b"auth plain ", b"auth login ", b"auth xoauth2 ", b"authenticate plain "];

/// At `auth`.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    if view.reads(anchor.start, KUBERNETES) {
        let start = anchor.start + KUBERNETES.len();
        let end = value::end_of_letters(view, start, 0, name::is_name_letter);
        if end > start + SHORTEST_UNKNOWN && view.bytes()[..anchor.start].ends_with(b".bearer.") {
            scan.strike(start..end, RULE);
        }
        return;
    }
    if MAIL.iter().any(|words| view.reads(anchor.start, words)) {
        tool_password::examine_mail(scan, anchor);
        return;
    }
    if !view.reads(anchor.start, b"authorization") {
        named_value::examine(scan, anchor);
        return;
    }
    let more =
        view.bytes()[anchor.end..].iter().take(80).take_while(|byte| name::is_name_letter(**byte));
    let name_end = anchor.end + more.count();
    let Some(start) = named_value::value_start(view, name_end) else { return };
    // Go prints a header as a list.
    let list = view.reads(start, b"[]string{");
    let start = start + if list { b"[]string{".len() } else { usize::from(view.at(start) == b'[') };
    let value = value::at(view, start);
    let text = view.slice(value.range.clone());
    let scheme = text.iter().position(|byte| value::is_blank(*byte)).unwrap_or(text.len());
    let named = text[..scheme].strip_suffix(b"\\").unwrap_or(&text[..scheme]);
    let is_one_of = |schemes: &[&[u8]]| schemes.iter().any(|name| named.eq_ignore_ascii_case(name));
    let credentials = if is_one_of(&OF_MANY_PARTS) {
        let from = value::after_blanks(view, value.range.start + scheme);
        from..end_of_header(view, from).max(value.range.end)
    } else if is_one_of(&OF_ONE_PART) {
        let from = value::after_blanks(view, value.range.start + scheme);
        if value.quoted { from..value.range.end } else { from..value::bare_end(view, from) }
    } else if let Some(unknown) = of_unknown_scheme(view, &value) {
        unknown
    } else {
        value.range.clone()
    };
    let text = view.slice(credentials.clone());
    let has_scheme = credentials.start > value.range.start;
    let is_sentence = shape::is_word(text) && !(has_scheme && view.at(credentials.end) != b' ');
    let is_setting =
        matches!(text.first(), Some(b'{' | b'|')) && text.len() <= shape::LONGEST_HARMLESS;
    if !(shape::is_harmless(text) || is_sentence || is_setting) {
        scan.strike(credentials, RULE);
    }
}

/// Shorter words after the name of a scheme are part of a sentence.
const SHORTEST_UNKNOWN: usize = 8;

/// The credentials after a scheme that is not known: `GenieKey 0f1e…`. They have digits; words of a
/// sentence do not.
fn of_unknown_scheme(view: &View, value: &value::Value) -> Option<Range<usize>> {
    let start = value::after_blanks(view, value.range.end);
    let scheme = view.slice(value.range.clone());
    let is_scheme = !value.quoted
        && scheme.len() <= 32
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && start > value.range.end
        && !view.is_break(start);
    is_scheme.then_some(())?;
    let end = value::bare_end(view, start);
    let text = view.slice(start..end);
    let is_credential = text.len() >= SHORTEST_UNKNOWN
        && text.iter().filter(|byte| byte.is_ascii_digit()).count() >= 2;
    is_credential.then_some(start..end)
}

/// The end of the line, or of the quotation the header stands in. A parameter's value, `name="value"`,
/// is a quotation within the header.
pub(super) fn end_of_header(view: &View, start: usize) -> usize {
    let line_end = view.next_break(start + 1);
    let mut is_inside = false;
    let is_end = |at: &usize| {
        if view.at(*at) != b'"' {
            return false;
        }
        let opens = !is_inside && matches!(view.before(*at), b'=' | b',');
        let closes = is_inside;
        is_inside = opens;
        !(opens || closes)
    };
    (start..line_end).find(is_end).unwrap_or(line_end)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn credentials_go_and_the_scheme_stays() {
        for (text, expected) in [
            ("> Authorization: Bearer abc", "> Authorization: Bearer [redacted authorization]"),
            (
                "-H \"Authorization: Basic abc\" x",
                "-H \"Authorization: Basic [redacted authorization]\" x",
            ),
            (
                "'authorization': 'Bearer abc def'",
                "'authorization': 'Bearer [redacted authorization]'",
            ),
            (
                "map[Authorization:[Bearer abc] B:[c]]",
                "map[Authorization:[Bearer [redacted authorization]] B:[c]]",
            ),
            ("Proxy-Authorization: hunter2", "Proxy-Authorization: [redacted authorization]"),
            (
                "-H 'x' \"Authorization: Digest username=\"b\", response=\"0f1e\"\" y",
                "-H 'x' \"Authorization: Digest [redacted authorization]\" y",
            ),
            (
                "Authorization: SharedKey a:b c\nx",
                "Authorization: SharedKey [redacted authorization]\nx",
            ),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn settings_and_sentences_stay() {
        assert_kept(&[
            "authorization:\n  mode: Webhook",
            "--authorization-mode=Webhook",
            "Authorization: failed to check",
            "\"authorization\": {\"mode\": \"Webhook\"}",
            "unauthorized: authentication required",
        ]);
    }
}
