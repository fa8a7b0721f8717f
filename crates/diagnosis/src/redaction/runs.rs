//! Places without words: long runs of letters of which keys are made.

use std::ops::Range;

use super::rules::{bootstrap_token, encoded_secret, hex_dump, vendor_token};
use super::scan::Scan;
use super::view::View;
use super::wrap;

/// A bootstrap token has 23 letters; nothing shorter is looked at.
const SHORTEST: usize = bootstrap_token::LENGTH;

/// Letters of base64 in both alphabets, and the dot of tokens. A table, since every text is read
/// through it.
const RUN_LETTERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'.');
        byte += 1;
    }
    table
};

fn is_run_letter(byte: u8) -> bool {
    RUN_LETTERS[usize::from(byte)]
}

/// Shows every run that is not decided yet to the rules about runs.
pub(super) fn examine(scan: &mut Scan<'_>) {
    let view = scan.view;
    let decided = scan.decided();
    let mut decided = decided.iter().peekable();
    let mut position = 0;
    while let Some(run) = next_run(view.bytes(), position) {
        position = run.end;
        let mut from = run.start;
        while let Some(range) = decided.next_if(|range| range.start < run.end) {
            examine_run(scan, from..range.start.max(from));
            from = from.max(range.end);
        }
        // What was decided may reach beyond this run.
        position = position.max(from);
        examine_run(scan, from..run.end.max(from));
    }
}

fn examine_run(scan: &mut Scan<'_>, run: Range<usize>) {
    if run.len() < SHORTEST {
        return;
    }
    scan.look_at(run.start);
    bootstrap_token::examine(scan, run.clone());
    vendor_token::examine(scan, run.clone());
    if let Some(digits) = hexadecimal(scan.view.slice(run.clone())) {
        hex_dump::examine_run(scan, run.end - digits..run.end);
        return;
    }
    let has_capitals = |any, byte: &u8| any | byte.is_ascii_uppercase();
    if scan.view.slice(run.clone()).iter().fold(false, has_capitals) {
        encoded_secret::examine_base32(scan, run.clone());
        for piece in unwrapped(scan.view, run) {
            encoded_secret::examine(scan, piece);
        }
    }
}

/// How many digits of a number in hexadecimal end a run: all of it, or what follows a name or `0x`
/// (`data=7061…`).
fn hexadecimal(run: &[u8]) -> Option<usize> {
    let name = run.iter().take(LONGEST_NAME).position(|byte| *byte == b'=').map_or(0, |at| at + 1);
    let digits = &run[name..];
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    let is_number = digits.iter().fold(true, |all, byte| all & byte.is_ascii_hexdigit());
    (is_number && digits.len() >= SHORTEST - 1).then_some(digits.len())
}

/// The longest name before a number, with its `=`.
const LONGEST_NAME: usize = 48;

/// The next run of at least [`SHORTEST`] letters.
///
/// Looks at the last letter such a run would have first, so most short words are never read.
fn next_run(bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
    while let Some(window) = bytes.get(from..from + SHORTEST) {
        if let Some(gap) = window.iter().rposition(|&byte| !is_run_letter(byte)) {
            from += gap + 1;
        } else {
            let rest = &bytes[from + SHORTEST..];
            let more = rest.iter().position(|&byte| !is_run_letter(byte)).unwrap_or(rest.len());
            return Some(from..from + SHORTEST + more);
        }
    }
    None
}

/// Splits a run at line breaks after which something else begins.
fn unwrapped(view: &View, run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = run.start;
    std::iter::from_fn(move || {
        if start >= run.end {
            return None;
        }
        let mut end = view.next_break(start + 1);
        while end < run.end && wrap::continues(view, end, false) {
            end = view.next_break(end + 1);
        }
        let piece = start..end.min(run.end);
        start = piece.end;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::next_run;

    #[test]
    fn only_long_runs_are_found_and_found_whole() {
        let text = b"short words and (abcdef.0123456789abcdef) x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        assert_eq!(next_run(text, 0), Some(17..40));
        assert_eq!(next_run(text, 40), Some(44..74));
        assert_eq!(next_run(text, 74), None);
        assert_eq!(next_run(b"", 0), None);
    }
}
