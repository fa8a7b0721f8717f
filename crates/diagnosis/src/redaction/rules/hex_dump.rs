//! Rule `hex-dump`.
//!
//! Removes: bytes in hexadecimal digits in which another rule finds a secret: dumps of `xxd`, `od` and
//! `hexdump`, with their text beside them, and long numbers that are text.
//!
//! Leaves alone: dumps of anything else, hashes and addresses.

use std::ops::Range;

use crate::redaction::scan::{self, Scan};
use crate::redaction::view::View;

const RULE: &str = "hex-dump";

/// Shorter dumps hold no secret with its name.
const SHORTEST: usize = 10;

/// The longest dump that is decoded.
const LONGEST: usize = 64 * 1024;

/// Looks at every sequence of pairs of digits.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>) {
    let view = scan.view;
    examine_lists(scan);
    let mut from = 0;
    while let Some(found) = next_pairs(view.bytes(), from) {
        let (range, bytes) = decoded(view, found);
        from = range.end.max(found + 1);
        let Some(deeper) = scan.depth.deeper() else { continue };
        if bytes.len() >= SHORTEST
            && is_text(&bytes)
            && !scan::examine(&View::of(&bytes), deeper).is_empty()
        {
            scan.look_at(range.start);
            scan.strike(range, RULE);
        }
    }
}

/// Whether the number in `run` is text with a secret in it; called for runs without other letters.
pub(in crate::redaction) fn examine_run(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let digits = view.slice(run.clone());
    let Some(deeper) = scan.depth.deeper() else { return };
    let mut bytes: Vec<u8> = digits.chunks_exact(2).filter_map(byte).collect();
    separate_arguments(&mut bytes);
    if bytes.len() * 2 == digits.len()
        && is_text(&bytes)
        && !scan::examine(&View::of(&bytes), deeper).is_empty()
    {
        scan.strike(run, RULE);
    }
}

/// Audit writes the arguments of a command with zeros between them. Text of two bytes a letter has more
/// of them, which the view leaves out.
fn separate_arguments(bytes: &mut [u8]) {
    if memchr::memchr_iter(0, bytes).count() * 3 < bytes.len() {
        bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    }
}

fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?).ok()
}

/// Looks at lists of bytes in other forms: `70:61:73`, `0x70,0x61`, `\\160\\141`, `112 97 115`.
fn examine_lists(scan: &mut Scan<'_>) {
    let view = scan.view;
    let Some(deeper) = scan.depth.deeper() else { return };
    let mut from = 0;
    while let Some(list) = next_list(view.bytes(), from) {
        from = list.end;
        let text = &view.bytes()[list.start..list.end.min(list.start + LONGEST)];
        for radix in [16, 8, 10] {
            let Some(bytes) = list_of(text, radix) else { continue };
            if bytes.len() >= SHORTEST
                && is_text(&bytes)
                && !scan::examine(&View::of(&bytes), deeper).is_empty()
            {
                scan.look_at(list.start);
                scan.strike(list, RULE);
                break;
            }
        }
    }
}

/// The letters of a list of bytes.
const LIST_LETTERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_hexdigit()
            || matches!(byte, b' ' | b',' | b':' | b'-' | b'\\' | b'x' | b'X');
        byte += 1;
    }
    table
};

/// The next run of letters of a list that is long enough for [`SHORTEST`] bytes and has as many numbers.
fn next_list(bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
    const WINDOW: usize = SHORTEST * 3 - 1;
    while let Some(window) = bytes.get(from..from + WINDOW) {
        if let Some(gap) = window.iter().rposition(|&byte| !LIST_LETTERS[usize::from(byte)]) {
            from += gap + 1;
            continue;
        }
        let rest = &bytes[from + WINDOW..];
        let more = rest.iter().position(|&byte| !LIST_LETTERS[usize::from(byte)]);
        let end = from + WINDOW + more.unwrap_or(rest.len());
        let is_separator = |byte: &&u8| matches!(byte, b' ' | b',' | b':' | b'-' | b'\\');
        if window.iter().filter(is_separator).count() + 3 >= SHORTEST * 3 / 5 {
            return Some(from..end);
        }
        from = end;
    }
    None
}

/// The bytes of a list of numbers, if all of them are bytes. The offset before the first is left out.
fn list_of(text: &[u8], radix: u32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let numbers = text.split(|byte| matches!(byte, b' ' | b',' | b':' | b'-' | b'\\'));
    for number in numbers.filter(|number| !number.is_empty()) {
        let number =
            number.strip_prefix(b"0x").or_else(|| number.strip_prefix(b"x")).unwrap_or(number);
        let is_wide = match radix {
            8 => number.len() != 3,
            16 => number.len() != 2,
            _ => number.len() > 3,
        };
        if is_wide && bytes.is_empty() {
            continue;
        }
        let digits = if is_wide { return None } else { number };
        let value = digits.iter().try_fold(0_u32, |value, digit| {
            Some(value * radix + char::from(*digit).to_digit(radix)?)
        })?;
        bytes.push(u8::try_from(value).ok()?);
    }
    Some(bytes)
}

/// The letters of a dump. A table, since every text is read through it.
const LETTERS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_hexdigit() || byte == b' ';
        byte += 1;
    }
    table
};

/// Where two or four digits and a blank are repeated.
///
/// Looks at the last letter of a window first, so most words are never read: a dump has more than
/// eleven letters.
fn next_pairs(bytes: &[u8], from: usize) -> Option<usize> {
    const WINDOW: usize = 11;
    let mut position = from;
    while let Some(window) = bytes.get(position..position + WINDOW) {
        let other = window.iter().rposition(|byte| !LETTERS[usize::from(*byte)]);
        position += match other {
            Some(other) => other + 1,
            None if is_pairs(bytes, position) => return Some(position),
            None => 1,
        };
    }
    None
}

/// Whether at least four groups of two or four digits begin at `position`, each after one blank.
fn is_pairs(bytes: &[u8], position: usize) -> bool {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    if !is_digit(position) || position.checked_sub(1).is_some_and(is_digit) {
        return false;
    }
    let mut at = position;
    let width = if is_digit(position + 2) { 4 } else { 2 };
    for _ in 0..4 {
        let is_group = (at..at + width).all(is_digit) && bytes.get(at + width) == Some(&b' ');
        if !is_group {
            return false;
        }
        at += width + 1;
    }
    true
}

/// The dump that begins at `start` and the bytes in it. On each line the groups end with the line, or
/// at two blanks, after which the text stands; the next line begins with its offset.
fn decoded(view: &View, start: usize) -> (Range<usize>, Vec<u8>) {
    let mut bytes = Vec::new();
    let limit = view.len().min(start + LONGEST);
    let mut position = start;
    let mut end = start;
    while position < limit {
        let line_end = view.next_break(position + 1).min(limit);
        let groups = groups_end(view, position, line_end);
        let line: Vec<u8> =
            view.slice(position..groups).iter().copied().filter(u8::is_ascii_hexdigit).collect();
        if line.len() < 4 {
            break;
        }
        bytes.extend(line.chunks_exact(2).filter_map(byte));
        // The text beside the groups is what they hold.
        end = line_end;
        let Some(next) = after_offset(view, line_end) else { break };
        position = next;
    }
    (start..end, bytes)
}

/// Where the groups of digits end: at the line's end, at two blanks, or at something else.
fn groups_end(view: &View, start: usize, line_end: usize) -> usize {
    let is_over = |at: &usize| {
        let byte = view.at(*at);
        !(byte.is_ascii_hexdigit() || byte == b' ')
            || byte == b' '
                && view.at(*at + 1) == b' '
                && view.at(*at + 2) != b' '
                && *at > start + 40
    };
    (start..line_end).find(is_over).unwrap_or(line_end)
}

/// Where the groups of the line at `line` begin: after its offset.
fn after_offset(view: &View, line: usize) -> Option<usize> {
    view.is_break(line).then_some(())?;
    let near = view.slice(line..view.len().min(line + 16));
    let digits = near.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match (digits, near.get(digits)) {
        (6..=8, Some(b':' | b' ')) => {
            let blanks = near[digits + 1..].iter().take_while(|byte| **byte == b' ').count();
            Some(line + digits + 1 + blanks)
        }
        (2 | 4, Some(b' ')) => Some(line),
        _ => None,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let readable =
        bytes.iter().filter(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0));
    !bytes.is_empty() && readable.count() * 8 >= bytes.len() * 7
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    fn hex(text: &str, separator: &str) -> String {
        let pairs: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        pairs.join(separator)
    }

    #[test]
    fn a_dump_with_a_secret_in_it_goes() {
        let text = "password=hunter2";
        assert_eq!(redacted(&hex(text, " ")), "[redacted hex-dump]");
        assert_eq!(redacted(&format!("x {} y", hex(text, ""))), "x [redacted hex-dump] y");
        let dump = "00000000: 7061 7373 776f 7264 3d68 756e 7465 7232  password=hunter2\n00000010: 0a  .\n";
        let output = redacted(dump);
        assert!(!output.contains("6e74 6572") && !output.contains("hunter2"), "{output}");
    }

    #[test]
    fn other_dumps_stay() {
        assert_kept(&[
            "Code: 48 8b 05 1f 2e 3d 4c 5b 6a 79 88 97 a6 b5 c4 d3",
            &hex("an ordinary line", " "),
            "sha256 72c7fd14fa50f1496bac9c2128b8a31f99cb026ef11aa658437cc1297eaa60ef",
        ]);
    }
}
