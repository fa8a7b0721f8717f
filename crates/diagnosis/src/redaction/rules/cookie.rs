//! Rule `cookie`.
//!
//! Removes: the values of `Cookie` and `Set-Cookie` headers; a session's cookie is as good as its
//! password.
//!
//! Leaves alone: the word elsewhere.

use std::ops::Range;

use super::authorization::end_of_header;
use super::named_value;
use crate::redaction::name::Name;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;

const RULE: &str = "cookie";

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let name = Name::around(view, anchor, scan.resume());
    if !(name.is("cookie") || name.is("setcookie")) {
        return;
    }
    let Some(start) = named_value::value_start(view, name.range.end) else { return };
    let start = start + usize::from(view.at(start) == b'[');
    let range = if value::is_quote(view.at(start)) {
        value::at(view, start).range
    } else {
        start..end_of_header(view, start)
    };
    let first = view.count_while(range.clone(), |byte| !value::is_blank(byte));
    let range = if view.find(range.clone(), b"=").is_none() {
        range.start..range.start + first
    } else {
        range
    };
    let text = view.slice(range.clone());
    if text.len() > shape::LONGEST_HARMLESS || is_session(text) && !shape::is_harmless(text) {
        scan.strike(range, RULE);
    }
}

/// `name=value`, or one word as only generators make it.
fn is_session(text: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(byte);
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    text.contains(&b'=') || text.len() >= 12 && digits >= 2 && text.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn cookies_go_to_the_end_of_their_line() {
        assert_eq!(
            redacted("< Set-Cookie: a=b; path=/\r\n< x"),
            "< Set-Cookie: [redacted cookie]\r\n< x"
        );
        assert_eq!(
            redacted("{\"Cookie\":\"a=b\",\"x\":1}"),
            "{\"Cookie\":\"[redacted cookie]\",\"x\":1}"
        );
    }

    #[test]
    fn the_word_alone_stays() {
        assert_kept(&["cookie: none", "cookies are off", "the cookie jar"]);
    }
}
