//! Rule `complex-password`.
//!
//! Removes: a word of small and capital letters, digits and marks between them, wherever it stands:
//! what people make up where a policy asks for all four. Many programs take passwords under names of
//! which no list knows.
//!
//! Leaves alone: versions, formats, addresses, names of types and everything else that lacks one of
//! the four.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::shape::{self, Mix};
use crate::redaction::view::View;

const RULE: &str = "complex-password";

/// The longest word that is looked at, to each side of its mark.
const LONGEST: usize = 48;

/// How far before a word the beginning of an address is searched.
const LONGEST_ADDRESS: usize = 256;

/// At every mark that is rare in logs.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>) {
    let view = scan.view;
    let bytes = view.bytes();
    let first = memchr::memchr3_iter(b'!', b'#', b'?', bytes);
    for mark in first.chain(memchr::memchr3_iter(b'*', b'^', b'%', bytes)) {
        if !view.before(mark).is_ascii_alphanumeric()
            || !view.at(mark + 1).is_ascii_alphanumeric()
            || view.is_break(mark)
        {
            continue;
        }
        let word = word_around(view, mark);
        if is_password(&bytes[word.clone()]) && !is_part_of_address(view, &word) {
            scan.look_at(word.start);
            scan.strike(word, RULE);
        }
    }
}

/// Whether the word is a part of an address or the name of a parameter.
fn is_part_of_address(view: &View, word: &Range<usize>) -> bool {
    let before = view.slice(word.start.saturating_sub(LONGEST_ADDRESS)..word.start);
    let start = before.iter().rposition(|byte| b" \t\"'`<>".contains(byte)).map_or(0, |at| at + 1);
    view.at(word.end) == b'='
        || memchr::memmem::find(&before[start..], b"://").is_some()
        || matches!(view.before(word.start), b'%' | b'\\')
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#?*^%$@&+~-_".contains(&byte)
}

/// The word around `mark`, on its line.
fn word_around(view: &View, mark: usize) -> Range<usize> {
    let line = view.line_start(mark + 1).max(mark.saturating_sub(LONGEST));
    let end = view.next_break(mark + 1).min(mark + LONGEST);
    let before = view.slice(line..mark).iter().rev().take_while(|byte| is_letter(**byte)).count();
    let after = view.slice(mark..end).iter().take_while(|byte| is_letter(**byte)).count();
    mark - before..mark + after
}

/// Digits have to stand among letters, as they do in place of some, or else the word ends with a
/// random tail.
fn is_password(word: &[u8]) -> bool {
    let is_escape = |at: usize| {
        word[at] == b'%'
            && word.get(at + 1..at + 3).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    shape::is_complex(word) && Mix::of(word).changes >= 4 && !(0..word.len()).any(is_escape)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_password_goes_wherever_it_stands() {
        for (text, expected) in [
            ("mytool -Z Sp4rrow!Hill9 x", "mytool -Z [redacted complex-password] x"),
            ("xftp -u bob,Sp4rrow?Hill9 h", "xftp -u bob,[redacted complex-password] h"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn other_words_with_marks_stay() {
        assert_kept(&[
            "%!s(MISSING) 100%Done error#12 C#7 Go1.22*v1.Node",
            "https://host.example/v2/Path1?Name=X1#Part2",
            "kernel: Linux version 6.8.0-1021-azure #25-Ubuntu SMP",
            "a?b:c x*y File1*Name",
        ]);
    }
}
