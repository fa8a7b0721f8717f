//! Rule `client-secret`.
//!
//! Removes: client secrets of Entra applications by their form alone, three letters, a digit, `Q~`
//! and more than thirty letters, since they turn up without their name in errors and traces.
//!
//! Leaves alone: other tildes.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::value;
use crate::redaction::view::View;

pub(super) const RULE: &str = "client-secret";

/// What stands before the digit.
const LETTERS_BEFORE_DIGIT: usize = 3;

/// What follows `Q~` in a secret that was not cut.
const COMPLETE: usize = 34;

/// What has to be left of a secret that was cut.
const SHORTEST: usize = 6;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'.' | b'-')
}

/// At every tilde; they are rare.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>) {
    let view = scan.view;
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'~', &view.bytes()[from..]) {
        let tilde = from + found;
        from = tilde + 1;
        if let Some(secret) = secret_around(view, tilde) {
            scan.look_at(secret.start);
            from = from.max(secret.end);
            scan.strike(secret, RULE);
        }
    }
}

/// The client secret that begins at `start`, if one does.
pub(super) fn secret_at(view: &View, start: usize) -> Option<Range<usize>> {
    let is_tilde = view.at(start + LETTERS_BEFORE_DIGIT + 2) == b'~';
    let secret = is_tilde.then(|| secret_around(view, start + LETTERS_BEFORE_DIGIT + 2))??;
    (secret.start == start).then_some(secret)
}

fn secret_around(view: &View, tilde: usize) -> Option<Range<usize>> {
    let bytes = view.bytes();
    let digit = tilde.checked_sub(2)?;
    if bytes[digit + 1] != b'Q' || !bytes[digit].is_ascii_digit() {
        return None;
    }
    let before = bytes[..digit]
        .iter()
        .rev()
        .take(LETTERS_BEFORE_DIGIT)
        .take_while(|&&byte| is_letter(byte))
        .count();
    if before < LETTERS_BEFORE_DIGIT {
        return None;
    }
    let mut end = value::end_of_letters(view, tilde + 1, COMPLETE, is_letter);
    while view.before(end) == b'.' {
        end -= 1;
    }
    (end > tilde + SHORTEST).then_some(digit - before..end)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_client_secret_goes_without_its_name_too() {
        let secret = "abc8Q~dEfGhIjKlMnOpQrStUvWxYz01234567ABC";
        assert_eq!(redacted(&format!("sent {secret}.")), "sent [redacted client-secret].");
        assert_eq!(redacted("sent abc8Q~dEfGhIj"), "sent [redacted client-secret]");
        let wrapped = format!("{}\r\n{} x", &secret[..14], &secret[14..]);
        assert_eq!(redacted(&wrapped), "[redacted client-secret]\r\n x");
    }

    #[test]
    fn other_tildes_stay() {
        assert_kept(&["~/Q~backup", "faq~old-version", "8Q~x"]);
    }
}
