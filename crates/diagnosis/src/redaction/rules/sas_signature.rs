//! Rule `sas-signature`.
//!
//! Removes: the signature of a shared access signature, `sig=…`, in an address or on its own, also
//! percent-encoded once or more, and the signatures of other clouds' presigned addresses. The rest
//! of the address stays: host, path, dates and permissions explain a failed download, and open
//! nothing without the signature.
//!
//! Leaves alone: other words with `sig` in them.

use std::ops::Range;

use crate::redaction::name;
use crate::redaction::scan::Scan;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "sas-signature";

/// 32 bytes in base64, without the padding.
const COMPLETE: usize = 43;

/// Shorter values are no signature: `sig=9`, `sig=TERM`.
const SHORTEST: usize = 8;

/// A percent is left in the view where a line break split its escape.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'%')
}

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let word_end = if view.reads(anchor.start, b"signature") {
        anchor.start + b"signature".len()
    } else {
        anchor.end
    };
    if !name::stands_alone(view, &(anchor.start..word_end))
        && !view.bytes()[..anchor.start].ends_with(b"%26")
    {
        return;
    }
    let after_quote = word_end + usize::from(value::is_quote(view.at(word_end)));
    let separator = value::after_blanks(view, after_quote);
    let quoted_name = after_quote > word_end;
    if !(view.at(separator) == b'=' || quoted_name && view.at(separator) == b':') {
        return;
    }
    let mut start = value::after_blanks(view, separator + 1);
    start += usize::from(value::is_quote(view.at(start)));
    let end = exact_end(view, start).unwrap_or_else(|| {
        let end = value::end_of_letters(view, start, COMPLETE, is_letter);
        view.find(start..end, b"%26").map_or(end, |at| start + at)
    });
    if end - start >= SHORTEST {
        scan.strike(start..end, RULE);
    }
}

/// The end of a signature of full length, however it is wrapped.
fn exact_end(view: &View, start: usize) -> Option<usize> {
    let padding = start + COMPLETE;
    let letters = view.bytes().get(start..padding)?;
    let is_exact = letters.iter().all(|&byte| is_letter(byte) && !matches!(byte, b'=' | b'%'))
        && view.at(padding) == b'=';
    is_exact.then_some(padding + 1)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_signature_goes_and_the_address_stays() {
        let marker = "[redacted sas-signature]";
        for (text, expected) in [
            (
                "https://x.example/a?sv=1&sig=aB3%2BcD5%2FeF7gH9%3D&sp=r",
                format!("https://x.example/a?sv=1&sig={marker}&sp=r"),
            ),
            (
                "u=https%3A%2F%2Fx%3Fsv%3D1%26sig%3DaB3%252BcD5eF7gH9%26sp%3Dr",
                format!("u=https%3A%2F%2Fx%3Fsv%3D1%26sig%3D{marker}%26sp%3Dr"),
            ),
            (
                r"?sv=1\u0026sig=aB3cD5eF7gH9\u0026sp=r",
                format!(r"?sv=1\u0026sig={marker}\u0026sp=r"),
            ),
            ("zip?sig=aB3cD5eF7gH9. \r\nError: no", format!("zip?sig={marker}. \r\nError: no")),
            ("zip?sig=aB3cD5eF7g\r\nH9jK1mN3%3D'", format!("zip?sig={marker}\r\n'")),
            ("{\"sig\": \"aB3cD5eF7gH9\"}", format!("{{\"sig\": \"{marker}\"}}")),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn other_words_stay() {
        assert_kept(&[
            "sig=TERM",
            "design=Bauhaus1919x",
            "assignment = aB3cD5eF",
            "signal: killed",
            "signature verification failed",
        ]);
    }
}
