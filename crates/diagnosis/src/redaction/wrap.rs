//! Whether a value goes on after a line break.
//!
//! Consoles wrap lines anywhere, also in the middle of a key. A rule that believed every value to
//! end with its line would leave the rest of the key; one that believed none to would swallow the
//! beginning of every next line. So the next line is asked what it looks like.

use std::ops::Range;

use super::shape::{self, Mix};
use super::value::{is_blank, is_quote};
use super::view::View;

/// How much of the text after a line break is looked at.
const LOOK_AHEAD: usize = 96;

/// Widths at which consoles wrap.
const CONSOLE_WIDTHS: [usize; 8] = [79, 80, 99, 100, 119, 120, 132, 160];

/// Lines this short are of equal width by chance.
const NARROWEST: usize = 20;

/// Whether the value before the line break at `position` goes on after it.
///
/// `eager` says that the value cannot be complete; then anything goes on that does not look like
/// the beginning of another line. Otherwise it has to look like a piece of a value, or the lines
/// have to be of equal width, as a console makes them.
pub(super) fn continues(view: &View, position: usize, eager: bool) -> bool {
    let line_end = view.next_break(position + 1);
    let limit = line_end.min(position + LOOK_AHEAD);
    let is_end = |at: &usize| is_blank(view.at(*at)) || is_quote(view.at(*at));
    let end = (position..limit).find(is_end).unwrap_or(limit);
    let piece = view.slice(position..end);
    if piece.is_empty() || begins_a_line(piece) {
        return false;
    }
    eager || is_piece(piece) || has_equal_width(view, position)
}

/// Whether the line that ends at `position` is as wide as the one before or after it, or as a
/// console.
pub(super) fn has_equal_width(view: &View, position: usize) -> bool {
    let next_end = view.next_break(position + 1);
    let start = view.line_start(position);
    let width = position - start;
    let previous = start - view.line_start(start);
    width >= NARROWEST
        && (CONSOLE_WIDTHS.contains(&width) || width == previous || width == next_end - position)
}

/// No prefix of a log is longer.
const LONGEST_PREFIX: usize = 96;

/// The longest word that goes on behind a prefix, and the most lines of it.
const LONGEST_PIECE: usize = 512;
const MOST_PIECES: usize = 64;

/// The pieces of a value that ends with its line at `end` and goes on behind the prefix that a log writes
/// before every line. Each is alone on its line,
/// or the log says that it goes on.
pub(super) fn pieces_behind_prefix(view: &View, end: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut end = end;
    while pieces.len() < MOST_PIECES && view.is_break(end) {
        let Some((start, is_partial)) = after_prefix(view, end) else { break };
        let line_end = view.next_break(end + 1);
        let rest = view.slice(start..line_end.min(start + LONGEST_PIECE));
        let is_over = |byte: &u8| is_blank(*byte) || is_quote(*byte);
        let piece = &rest[..rest.iter().position(is_over).unwrap_or(rest.len())];
        let is_alone = start + piece.len() == line_end;
        let is_piece = is_alone && is_piece(piece) || shape::is_key_like(piece);
        let goes_on = is_partial || is_piece && !begins_a_line(piece);
        if piece.is_empty() || !goes_on {
            break;
        }
        pieces.push(start..start + piece.len());
        end = start + piece.len();
    }
    pieces
}

/// Where the text of the line that begins at `line` starts, if the line before it has the same prefix;
/// and whether the prefix of a container's log says that the line before was not whole.
fn after_prefix(view: &View, line: usize) -> Option<(usize, bool)> {
    let before = view.line_start(line).max(line.saturating_sub(LONGEST_PIECE));
    let first = view.slice(before..line);
    let second = view.slice(line..view.next_break(line + 1).min(line + LONGEST_PREFIX));
    let is_partial = find(first, b" stdout P ").or_else(|| find(first, b" stderr P ")).is_some();
    if is_partial && let Some(at) = find(second, b" stdout ").or_else(|| find(second, b" stderr "))
    {
        return Some((line + at + b" stdout F ".len(), true))
            .filter(|(at, _)| *at < line + second.len());
    }
    // The program's name with its number stands in both: `kubelet[2101]: `.
    let end = find(second, b"]: ")? + b"]: ".len();
    let program = second[..end - 2].iter().rposition(|byte| is_blank(*byte)).map_or(0, |at| at + 1);
    let is_same = end < second.len() && find(first, &second[program..end]).is_some();
    is_same.then_some((line + end, false))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// Letters as they stand in the middle of a key: digits among letters, or unusual case.
fn is_piece(piece: &[u8]) -> bool {
    let mix = Mix::of(piece);
    mix.changes >= 2
        || (mix.digits > 0 && mix.changes > 0)
        || piece.ends_with(b"=")
        || piece.len() > 2 && piece.iter().any(|byte| b"%~!?+=@#$^*".contains(byte))
}

/// Whether `piece`, the first thing after a line break, looks like the beginning of a line of its
/// own. It is not empty.
fn begins_a_line(piece: &[u8]) -> bool {
    b"[{<>*#(|}])".contains(&piece[0])
        || piece.iter().all(|byte| *byte == b'+')
        || is_flag(piece)
        || is_word_of_a_sentence(piece)
        || is_name_with_a_value(piece)
        || is_log_prefix(piece)
        || shape::is_time(piece)
        || shape::is_path(piece)
        || shape::is_address(piece)
}

/// `-x`, `--name`, `--name=value`, `-word`.
fn is_flag(piece: &[u8]) -> bool {
    let (dashes, rest) = split(piece, |byte| byte == b'-');
    let (name, rest) = split(rest, |byte| byte.is_ascii_alphabetic() || byte == b'-');
    let is_whole = rest.is_empty() || rest[0] == b'=';
    matches!(dashes.len(), 1 | 2) && is_whole && (name.is_empty() || shape::is_word(name))
}

/// `Failed`, `cloud-init[2031]:`, `node3.`, `docker/config`.
fn is_word_of_a_sentence(piece: &[u8]) -> bool {
    let (word, rest) = split(piece, |byte| byte.is_ascii_alphabetic() || b"-_'".contains(&byte));
    let (digits, rest) = split(rest, |byte| byte.is_ascii_digit());
    let has_few_digits = digits.is_empty() || word.len() >= 3 && digits.len() <= 3;
    let is_over = match rest {
        [] | [b'.' | b'!' | b'?'] | [b':' | b',' | b';' | b'[' | b'(', ..] => true,
        [b'!' | b'?', next, ..] => !next.is_ascii_alphanumeric(),
        [b'.', ..] => shape::is_camel_case(word) && !piece.iter().any(u8::is_ascii_digit),
        [b'/', ..] => !piece.iter().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
        _ => false,
    };
    (shape::is_word(word) || shape::is_camel_case(word)) && has_few_digits && is_over
}

/// `NAME=value`, `ExitCode: |35|`.
fn is_name_with_a_value(piece: &[u8]) -> bool {
    let (name, rest) = split(piece, |byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
    let is_name = shape::is_word(name) || shape::is_identifier(name);
    let is_assigned = match rest {
        [b'=', after, ..] => *after != b'=',
        [b':', after, ..] => !after.is_ascii_alphanumeric(),
        [b':'] => true,
        _ => false,
    };
    is_name && is_assigned
}

/// `I0909`, `10.0.0.4:`, `v1.32.4`, `17:24:06,`.
fn is_log_prefix(piece: &[u8]) -> bool {
    let kubernetes = |digits: &[u8]| digits.len() == 4 && shape::is_number(digits);
    match piece {
        [b'I' | b'W' | b'E' | b'F', digits @ ..] if kubernetes(digits) => true,
        [b'v' | b'0'..=b'9', rest @ ..] => {
            rest.iter().all(|byte| byte.is_ascii_digit() || b".:/-,".contains(byte))
        }
        _ => false,
    }
}

/// The letters at the beginning of `text`, and the rest.
fn split(text: &[u8], is_letter: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| is_letter(**byte)).count())
}

#[cfg(test)]
mod tests {
    use super::{View, begins_a_line, continues, is_piece};

    #[test]
    fn beginnings_of_lines_are_recognised() {
        for piece in [
            "+",
            "++",
            "[stderr]",
            "{",
            "-x",
            "--token",
            "Failed",
            "ERR_X,",
            "cloud-init[2031]:",
            "node3",
            "NAME=x",
            "ExitCode:",
            "I0909",
            "v1.32.4",
            "10.0.0.4:",
            "2025-09-12T08:33:51Z",
            "/var/log/azure",
            "https://x.example",
            "docker/config",
            "done.",
            "MountVolume.SetUp",
        ] {
            assert!(begins_a_line(piece.as_bytes()), "{piece}");
        }
        for piece in
            ["MDA/QTBhYUBw", "F/kcNwofxa", "a.aa0aa0a0", "QmFy=", "er2x", "-aB3dE5", "--0aB3"]
        {
            assert!(!begins_a_line(piece.as_bytes()), "{piece}");
        }
    }

    #[test]
    fn pieces_of_keys_are_recognised() {
        for piece in ["d5F7", "QTBhYUBw", "ab=", "a%2Bc"] {
            assert!(is_piece(piece.as_bytes()), "{piece}");
        }
        assert!(!is_piece(b"letters"));
    }

    #[test]
    fn lines_of_equal_width_were_wrapped() {
        let goes_on = |first: &str, second: &str| {
            let view = View::of(format!("{first}\n{second}").as_bytes());
            continues(&view, first.len(), false)
        };
        assert!(goes_on(&"ab.".repeat(8), &"cd.".repeat(8)));
        assert!(goes_on(&"ab.".repeat(40), "cd.ef"));
        assert!(!goes_on(&"ab.".repeat(8), &"cd.".repeat(7)));
        assert!(!goes_on("ab.", "cd."));
    }
}
