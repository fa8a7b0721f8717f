//! Rule `hex-dump`, for letters that are written apart: `od -c`, `p a s s w o r d = …`.
//!
//! Removes: the letters, if another rule finds a secret in the word that they make.
//!
//! Leaves alone: other letters apart.

use std::ops::Range;

use crate::redaction::scan::{self, Scan};
use crate::redaction::value::is_blank;
use crate::redaction::view::View;

const RULE: &str = "hex-dump";

/// The longest text that is read.
const LONGEST: usize = 4096;

/// The most blanks between two letters.
const WIDEST: usize = 4;

/// At the first letters of a name for a secret, with blanks between them.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let Some(deeper) = scan.depth.deeper() else { return };
    let (letters, end) = joined(view, anchor.start);
    if scan::examine(&View::of(&letters), deeper).is_empty() {
        scan.skip_to(end);
    } else {
        scan.strike(anchor.start..end, RULE);
    }
}

/// The letters from `start` on that have blanks around them, and where the last one ends. A dump goes on
/// after the offset that its next line begins with.
fn joined(view: &View, start: usize) -> (Vec<u8>, usize) {
    let limit = view.len().min(start + LONGEST);
    let mut letters = Vec::new();
    let (mut position, mut end) = (start, start);
    while position < limit {
        letters.push(view.at(position));
        end = position + 1;
        let next = if view.is_break(end) { after_offset(view, end) } else { end };
        let blanks = (next..next + WIDEST).take_while(|at| is_blank(view.at(*at))).count();
        position = next + blanks;
        let is_single = blanks > 0
            && (is_blank(view.at(position + 1))
                || view.is_break(position + 1)
                || position + 1 >= view.len());
        if !is_single {
            break;
        }
    }
    if letters.ends_with(b"=") || letters.ends_with(b":") {
        // The value may be written as usual.
        let word = view.count_while(position..limit.max(position), |byte| !is_blank(byte));
        letters.extend_from_slice(view.slice(position..position + word));
        end = position + word;
    }
    (letters, end)
}

/// The position after the digits of an offset at the beginning of a line.
fn after_offset(view: &View, line: usize) -> usize {
    line + (line..line + 8).take_while(|at| view.at(*at).is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_secret_in_letters_apart_goes() {
        assert_eq!(redacted("x p a s s w o r d = h u n t 2"), "x [redacted hex-dump]");
        assert_eq!(
            redacted("0000000   t   o   k   e   n   =   h\n0000020   u   n   t\n0000023\n"),
            "0000000   [redacted hex-dump]\n\n0000023\n"
        );
    }

    #[test]
    fn other_letters_apart_stay() {
        assert_kept(&["p a s s a g e", "the t o k e n word"]);
    }
}
