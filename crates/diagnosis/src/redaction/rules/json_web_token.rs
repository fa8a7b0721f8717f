//! Rule `json-web-token`.
//!
//! Removes: tokens of the form `eyJ….eyJ….signature`, whole, also with a part missing at the end.
//! Access tokens of Entra, refresh tokens of registries and service account tokens have this form,
//! and its bearer has all its rights.
//!
//! Leaves alone: base64 of other JSON; [`super::encoded_secret`] looks inside that.

use std::ops::Range;

use super::encoded_secret;
use crate::redaction::scan::{Look, Scan};
use crate::redaction::value;
use crate::redaction::view::View;
use crate::redaction::wrap;

const RULE: &str = "json-web-token";

/// Three parts when signed, five when encrypted.
const MOST_PARTS: usize = 5;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let inside = is_letter(view.before(anchor.start)) && !view.is_break(anchor.start);
    let is_new = scan.is_new(Look::JsonWebToken, anchor.start);
    if inside || !is_new || view.slice(anchor.clone()) != b"eyJ" {
        return;
    }
    let header_end = value::end_of_letters(view, anchor.start, 16, is_letter);
    scan.note(Look::JsonWebToken, header_end);
    let mut end = header_end;
    for _ in 1..MOST_PARTS {
        if let Some(part) = part_apart(view, end) {
            end = value::end_of_letters(view, part, 16, is_letter);
            continue;
        }
        let part = end + 1;
        let goes_on = view.at(end) == b'.'
            && is_letter(view.at(part))
            && (!view.is_break(end) || wrap::continues(view, end, true))
            && (!view.is_break(part) || wrap::continues(view, part, true));
        if !goes_on {
            break;
        }
        end = value::end_of_letters(view, part, 16, is_letter);
    }
    let while_padded =
        end + view.bytes()[end..].iter().take(2).take_while(|byte| **byte == b'=').count();
    if end > header_end + 4 || is_header(view.slice(anchor.start..header_end)) {
        scan.strike(anchor.start..while_padded, RULE);
        for piece in wrap::pieces_behind_prefix(view, while_padded) {
            scan.strike(piece, RULE);
        }
    }
}

/// The next part of a token whose dots have blanks around them. It is longer than a word.
fn part_apart(view: &View, end: usize) -> Option<usize> {
    let dot = value::after_blanks(view, end);
    let part = value::after_blanks(view, dot + 1);
    let is_apart = view.at(dot) == b'.' && (dot > end || part > dot + 1) && !view.is_break(end);
    is_apart.then_some(())?;
    let limit = view.len().min(part + SHORTEST_APART);
    let letters = view.count_while(part.min(limit)..limit, is_letter);
    (letters == SHORTEST_APART).then_some(part)
}

/// Shorter parts are not looked for after a blank.
const SHORTEST_APART: usize = 16;

/// Members of a token's payload.
const CLAIMS: [&[u8]; 7] = [
    b"\"iss\":\"",
    b"\"aud\":\"",
    b"\"oid\":\"",
    b"\"sub\":\"",
    b"\"exp\":1",
    b"\"iat\":1",
    b"\"nbf\":1",
];

/// Whether what was decoded is a part of a token's payload.
pub(super) fn has_claims(decoded: &[u8]) -> bool {
    CLAIMS.iter().any(|claim| memchr::memmem::find(decoded, claim).is_some())
}

/// Whether this is the beginning of a token's header, of which the rest is lost.
fn is_header(encoded: &[u8]) -> bool {
    const MEMBERS: [&[u8]; 6] =
        [b"\"alg\"", b"\"typ\"", b"\"kid\"", b"\"enc\"", b"\"x5t\"", b"\"cty\""];
    let decoded = encoded_secret::decoded(encoded);
    has_claims(&decoded)
        || MEMBERS.iter().any(|member| memchr::memmem::find(&decoded, member).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    const HEADER: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9";

    #[test]
    fn a_token_goes_whole_wrapped_and_cut() {
        for text in [
            format!("{HEADER}.eyJhdWQiOiJ4In0.c2lnbmF0dXJl"),
            format!("{HEADER}.eyJhdWQiOiJ4In0"),
            HEADER.to_owned(),
            format!("{}\r\n  {}.eyJhdWQi\r\nOiJ4In0.c2lnbmF0dXJl", &HEADER[..9], &HEADER[9..]),
        ] {
            let output = redacted(&text);
            assert!(output.starts_with("[redacted json-web-token]"), "{output}");
            assert_eq!(output.trim_end(), "[redacted json-web-token]");
        }
        let output =
            redacted(&format!("{HEADER}.eyJhdWQiOiJ4In0.c2lnbmF0dXJl\\nRBAC token detected"));
        assert_eq!(output, "[redacted json-web-token]\\nRBAC token detected");
    }

    #[test]
    fn other_json_in_base64_stays() {
        assert_kept(&["eyJFeGl0Q29kZSI6IjIxMSIsIkVycm9yIjoiIn0=", "obeyJohn.then"]);
    }
}
