//! Whether a name and what follows it are part of a sentence.

use super::Subject;
use super::separator::{Separator, next_text};
use crate::redaction::name::{Name, is_name_letter};
use crate::redaction::shape;
use crate::redaction::value::{self, Value};
use crate::redaction::view::View;
use crate::redaction::words::Kind;

/// Words that follow a flag or a colon in a sentence and are no passwords.
const WORDS: &str = "flag flags option options argument parameter value to is or and must cannot can \
    not was has for in with requires from of the a an if when as be are does should will may only \
    expired invalid missing via instead using unauthorized forbidden denied failed error eof \
    incorrect wrong mismatch required changed authentication unexpected no empty blank unset expiry \
    updated too already never";

/// The most words of a passphrase.
const MOST_WORDS: usize = 25;

/// Whether `text` is a word that sentences have beside the word for a secret.
pub(super) fn is_word_of_prose(text: &[u8]) -> bool {
    WORDS.split_ascii_whitespace().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether the value is the next word of a sentence: `token: unexpected status`, `--token flag`.
pub(super) fn reads_on(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let text = view.slice(value.range.clone());
    let bare = text.trim_ascii_end();
    let word_end = bare.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
    if is_word_of_prose(&bare[..word_end]) {
        return true;
    }
    if begins_program_message(view, subject, value) {
        return true;
    }
    if is_size(view, value) || is_error_of_path(view, subject, value) {
        return true;
    }
    if subject.separator == Separator::Flag || is_phrase(view, subject) {
        return false;
    }
    if shape::is_word(text) && precedes_prose(view, value.range.end) {
        return true;
    }
    if subject.name.is_identifier() || is_member_of_flow(view, subject, value) {
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
    goes_on || is_in_sentence(view, &subject.name) && subject.kind != Kind::Password
}

/// `16 bytes`, `(2048 bit)`: how long a secret is.
fn is_size(view: &View, value: &Value) -> bool {
    let text = view.slice(value.range.clone());
    let number = text.strip_prefix(b"(").unwrap_or(text);
    let end = value.range.end;
    shape::is_number(number) && (view.reads(end, b" bytes") || view.reads(end, b" bit"))
}

/// `open /etc/client.key: permission denied`: the name is the end of a path, and the value a word.
fn is_error_of_path(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let start = subject.name.range.start;
    let is_path =
        view.before(start) == b'/' && start > 1 && !value::is_blank(view.before(start - 1));
    is_path && shape::is_word(view.slice(value.range.clone()))
}

/// Whether the word after the blank at `end` is one of a sentence: `is forbidden`, `with the`.
fn precedes_prose(view: &View, end: usize) -> bool {
    view.at(end) == b' ' && !view.is_break(end) && is_word_of_prose(next_text(view, end + 1))
}

/// `passwd: password updated successfully`: what a program says about its work.
fn begins_program_message(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    subject.name.is("passwd")
        && view.reads(value.range.start, b"password ")
        && value.range.len() == b"password".len()
}

/// Whether the value is a member of YAML's `{name: bob, password: value, type: text}`.
fn is_member_of_flow(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let start = subject.name.range.start;
    let before = view.slice(start.saturating_sub(2)..start);
    let begins = before.ends_with(b"{") || before == b", ";
    let end = value.range.end;
    begins
        && match view.at(end) {
            b'}' => true,
            b',' => {
                let next = value::after_blanks(view, end + 1);
                let letters = (next..next + 32).take_while(|at| is_name_letter(view.at(*at)));
                view.at(next + letters.count()) == b':'
            }
            _ => false,
        }
}

/// A small number before words: `401 Unauthorized`.
fn is_status(view: &View, value: &Value) -> bool {
    shape::is_number(view.slice(value.range.clone())) && value.range.len() <= 5
}

/// Whether another word stands before the name, as it does not before a key of YAML.
pub(super) fn is_in_sentence(view: &View, name: &Name<'_>) -> bool {
    let start = name.range.start;
    view.before(start) == b' '
        && start > 1
        && view.before(start - 1).is_ascii_alphabetic()
        && !view.is_break(start)
        && !name.is_identifier()
}

/// Whether the value is all that follows on the line, words and all: a passphrase, or a password that
/// begins its line as a key of YAML does.
fn is_phrase(view: &View, subject: &Subject<'_>) -> bool {
    let start = subject.name.range.start;
    // A French password is three words.
    let before = view.slice(start.saturating_sub(b"mot de ".len())..start);
    let start = start - if before.eq_ignore_ascii_case(b"mot de ") { before.len() } else { 0 };
    let line = view.line_start(start + 1);
    let begins_line = start == line
        || start == 0
        || is_log_prefix(view.slice(line.max(start.saturating_sub(64))..start));
    subject.separator == Separator::Loose
        && subject.kind == Kind::Password
        && (subject.name.has("phrase")
            || subject.name.has("mnemonic")
            || begins_line
            || is_indented(view, start))
}

/// Whether a program's name or the stream of a container stands before, and nothing of a sentence:
/// `cloud-init[1102]: `, `stdout F `.
fn is_log_prefix(before: &[u8]) -> bool {
    before.ends_with(b"]: ") || before.ends_with(b"stdout F ") || before.ends_with(b"stderr F ")
}

/// Whether only blanks stand before `start` on the first line; the view keeps those.
fn is_indented(view: &View, start: usize) -> bool {
    start <= 64 && view.slice(..start).iter().all(|byte| value::is_blank(*byte))
}

/// The end of a passphrase of several words.
pub(super) fn phrase_end(view: &View, subject: &Subject<'_>, value: &Value) -> usize {
    let mut end = value.range.end;
    // A password is one word or several plain ones; a passphrase is all there is.
    let is_whole = subject.name.has("phrase");
    let is_letter = |byte: u8| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'-' | b'\'')
            || is_whole && !value::is_blank(byte)
    };
    if !is_phrase(view, subject)
        || !view.slice(value.range.clone()).iter().all(|byte| is_letter(*byte))
    {
        return end;
    }
    for _ in 1..MOST_WORDS {
        let start = end + 1;
        let limit = view.next_break(start).min(start + 32);
        if view.at(end) != b' ' || view.is_break(end) || start > limit {
            break;
        }
        let near = view.slice(start..limit);
        let length = near.iter().take_while(|byte| is_letter(**byte)).count();
        let after = start + length;
        let is_over = after >= view.len() || view.is_break(after) || view.at(after) == b' ';
        if length == 0 || !is_over {
            break;
        }
        end = after;
    }
    if is_whole { end_of_plain_lines(view, subject.name.range.start, end) } else { end }
}

/// The most further lines of a value without quotation marks.
const MOST_LINES: usize = 8;

/// The end of the lines with which YAML goes on with a value: indented further than its name, and no
/// names themselves.
fn end_of_plain_lines(view: &View, name: usize, end: usize) -> usize {
    let parent = view.indentation(view.line_start(name + 1));
    let mut end = end;
    for _ in 0..MOST_LINES {
        let next = view.next_break(end + 1);
        let is_more = view.is_break(end)
            && view.indentation(end) > parent
            && next - end <= shape::LONGEST_HARMLESS
            && !view.slice(end..next).iter().any(|byte| matches!(byte, b':' | b'='))
            && view.at(end) != b'-';
        if !is_more {
            break;
        }
        end = next;
    }
    end
}
