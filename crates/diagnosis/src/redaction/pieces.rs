//! Reads a text piece by piece, so that what is looked at stays in a cache however long the text is.
//!
//! A piece ends with a line. Each is read together with the beginning of the next one, so that a
//! secret over several lines is seen whole wherever the cut falls.

use std::ops::Range;

use super::scan::{self, Depth};
use super::strikes::Strike;
use super::view::View;

/// The length of a piece, if its last line is short.
const PIECE: usize = 256 * 1024;

/// How much of the next piece is read: more than any secret with line breaks needs.
const MARGIN: usize = 16 * 1024;

/// How far around a removed secret a text is read again.
const SURROUNDINGS: usize = 1024;

/// Everything in the text that has to go, as parts of the text.
pub(super) fn examine(text: &str) -> Vec<Strike> {
    examine_in(PIECE, text)
}

fn examine_in(length: usize, text: &str) -> Vec<Strike> {
    let mut strikes = Vec::new();
    let mut view = View::default();
    let mut start = 0;
    while start < text.len() {
        let end = end_of_line(text, start + length);
        examine_piece(text, start..end, MARGIN, &mut view, &mut strikes);
        start = end;
    }
    strikes
}

/// Like [`examine`], but only around the `places`, which are sorted.
pub(super) fn examine_around(text: &str, places: &[Range<usize>]) -> Vec<Strike> {
    let mut strikes = Vec::new();
    let mut view = View::default();
    let mut places = places.iter().peekable();
    while let Some(place) = places.next() {
        let start = start_of_line(text, place.start.saturating_sub(SURROUNDINGS));
        let mut end = end_of_line(text, place.end + SURROUNDINGS);
        while let Some(next) = places.next_if(|next| next.start < end + SURROUNDINGS) {
            if next.end + SURROUNDINGS > end {
                end = end_of_line(text, next.end + SURROUNDINGS);
            }
        }
        examine_piece(text, start..end, 0, &mut view, &mut strikes);
    }
    strikes
}

fn examine_piece(
    text: &str,
    piece: Range<usize>,
    margin: usize,
    view: &mut View,
    strikes: &mut Vec<Strike>,
) {
    let margin = text.len().min(piece.end + margin);
    view.read(&text.as_bytes()[piece.start..margin]);
    for found in scan::examine(view, Depth::Text) {
        let range = view.source_range(&found.range);
        // What is found within the margin alone is found again with the next piece.
        let is_here = |position: usize| piece.start + position < piece.end;
        if is_here(range.start) || is_here(view.source_start(found.place)) {
            let quote = found.quote.map(|quote| {
                let quote = view.source_range(&(quote..quote + 1));
                piece.start + quote.start..piece.start + quote.end
            });
            let range = piece.start + range.start..piece.start + range.end;
            strikes.push(Strike { range, rule: found.rule, quote });
        }
    }
}

/// The end of the line that holds the byte at `position`.
fn end_of_line(text: &str, position: usize) -> usize {
    let rest = text.as_bytes().get(position..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |at| position + at + 1)
}

/// The beginning of the line that holds the byte at `position`.
fn start_of_line(text: &str, position: usize) -> usize {
    let before = &text.as_bytes()[..position.min(text.len())];
    memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::examine_in;

    #[test]
    fn a_secret_is_found_whole_wherever_the_cut_falls() {
        const LENGTH: usize = 256;
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq1xZ9Jk2LmN4oP6q\n-----END PRIVATE KEY-----\n";
        let signature = "sig=aB3cD5eF7gH9\r\n  jK1mN3pQ5rS7tU9\n";
        for secret in [key, "PASSWORD=\r\n  hunt3r2x \n", signature] {
            for shift in 0..secret.len() {
                let lines = "x\n".repeat((LENGTH - shift) / 2);
                let text = format!("{lines}{secret}{}", "y\n".repeat(LENGTH));
                let strikes = examine_in(LENGTH, &text);
                let end = strikes.iter().map(|strike| strike.range.end).max();
                assert_eq!(end, Some(lines.len() + secret.trim_end().len()), "{shift} {secret}");
            }
        }
    }
}
