//! Whether a name and what follows it are part of a sentence.

use super::separator::Separator;
use crate::redaction::name::Name;
use crate::redaction::shape;
use crate::redaction::value::{self, Value};
use crate::redaction::view::View;

/// Words that follow a flag or a colon in a sentence and are no password of anyone.
const WORDS: &str = "flag flags option options argument parameter value to is or and must cannot can \
    not was has for in with requires from of the a an if when as be are does should will may only \
    expired invalid missing via instead using unauthorized forbidden denied failed error eof";

/// Whether the value is the next word of a sentence: `token: unexpected status`, `--token flag`.
pub(super) fn reads_on(view: &View, name: &Name<'_>, separator: &Separator, value: &Value) -> bool {
    let text = &view.bytes()[value.range.clone()];
    let folded = text.to_ascii_lowercase();
    let bare = folded.trim_ascii_end();
    let word_end = bare.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
    let mut words = WORDS.split_ascii_whitespace().map(str::as_bytes);
    if words.any(|word| word == &bare[..word_end]) {
        return true;
    }
    if *separator == Separator::Flag {
        return false;
    }
    let is_plain = text.iter().all(|byte| byte.is_ascii_alphabetic() || b"-_'/,".contains(byte));
    if !is_plain && !is_status(view, value) {
        return false;
    }
    let end = value.range.end;
    let next = view.at(value::after_blanks(view, end));
    let goes_on = match view.at(end) {
        b':' | b',' => true,
        b' ' => {
            !view.is_break(value::after_blanks(view, end))
                && (next.is_ascii_alphanumeric() || b"\"'(/".contains(&next))
        }
        _ => false,
    };
    goes_on || is_in_sentence(view, name) && !name.is_password()
}

/// A small number before words: `401 Unauthorized`.
fn is_status(view: &View, value: &Value) -> bool {
    shape::is_number(&view.bytes()[value.range.clone()]) && value.range.len() <= 5
}

/// Whether another word stands before the name, as it does not before a key of YAML.
fn is_in_sentence(view: &View, name: &Name<'_>) -> bool {
    let start = name.range.start;
    view.before(start) == b' '
        && start > 1
        && view.before(start - 1).is_ascii_alphabetic()
        && !view.is_break(start)
}
