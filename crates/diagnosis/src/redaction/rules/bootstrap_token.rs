//! Rule `bootstrap-token`.
//!
//! Removes: the secret half of a kubelet bootstrap token, `abcdef.0123456789abcdef`, wherever it
//! stands. With it anyone can ask the cluster for a node's certificate.
//!
//! Leaves alone: the first half, which is the token's public id and says which token it was; host
//! names and object names that only look alike.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::view::View;

pub(super) const RULE: &str = "bootstrap-token";

/// Letters of the public id.
const ID: usize = 6;
/// Letters of the secret.
const SECRET: usize = 16;
/// Letters of a token with its dot.
pub(in crate::redaction) const LENGTH: usize = ID + 1 + SECRET;

fn is_token_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether `text` is a token and nothing else.
fn is_token(text: &[u8]) -> bool {
    text.len() == LENGTH
        && text[ID] == b'.'
        && text[..ID].iter().chain(&text[ID + 1..]).all(|&byte| is_token_letter(byte))
}

/// The secret half of the token that begins at `start`, if one does.
pub(super) fn secret_half_at(view: &View, start: usize) -> Option<Range<usize>> {
    let token = start..start + LENGTH;
    let is_whole =
        view.bytes().get(token.clone()).is_some_and(is_token) && is_bounded(view, &token);
    is_whole.then(|| start + ID + 1..token.end)
}

/// Looks for tokens within a run of letters.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let mut from = run.start;
    while let Some(found) = view.find(from..run.end, b".") {
        let dot = from + found;
        from = dot + 1;
        let Some(start) = dot.checked_sub(ID).filter(|start| *start >= run.start) else { continue };
        let token = start..start + LENGTH;
        if token.end <= run.end && is_token(view.slice(token.clone())) && is_bounded(view, &token) {
            scan.strike(dot + 1..token.end, RULE);
            from = token.end;
        }
    }
}

/// Whether the token stands for itself. Between parts of a longer name it needs a digit.
fn is_bounded(view: &View, token: &Range<usize>) -> bool {
    let before = if view.is_break(token.start) || is_after_escape(view, token.start) {
        b' '
    } else {
        view.before(token.start)
    };
    let after = match (view.at(token.end), view.at(token.end + 1)) {
        _ if view.is_break(token.end) => b' ',
        (b'.', next) if !next.is_ascii_alphanumeric() => b' ',
        (after, _) => after,
    };
    let joins = |byte: u8| matches!(byte, b'-' | b'_' | b'.' | b'/');
    let secret = view.slice(token.start + ID + 1..token.end);
    !before.is_ascii_alphanumeric()
        && !after.is_ascii_alphanumeric()
        && (!(joins(before) || joins(after)) || secret.iter().any(u8::is_ascii_digit))
}

/// Whether a percent escape that was left as it is, such as `%20`, ends at `position`.
fn is_after_escape(view: &View, position: usize) -> bool {
    position.checked_sub(3).is_some_and(|start| {
        let escape = view.slice(start..position);
        escape[0] == b'%' && escape[1..].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn the_secret_half_goes_and_the_id_stays() {
        for (text, expected) in [
            ("join abcdef.0123456789abcdef now", "join abcdef.[redacted bootstrap-token] now"),
            ("abcdef.01234\r\n  56789abcdef.", "abcdef.[redacted bootstrap-token]\r\n."),
            ("%20abcdef.0123456789abcdef", "%20abcdef.[redacted bootstrap-token]"),
            ("x\\nabcdef.0123456789abcdef\\ny", "x\\nabcdef.[redacted bootstrap-token]\\ny"),
            ("(abcdef.abcdefghijklmnop)", "(abcdef.[redacted bootstrap-token])"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn names_that_look_alike_stay() {
        assert_kept(&[
            "could not find a JWS signature for token ID \"uvwxyz\"",
            "lookup server.internalnetworks.example: no such host",
            "abcdef.0123456789abcdef0123456789abcdef",
            "ABCDEF.0123456789ABCDEF",
        ]);
    }
}
