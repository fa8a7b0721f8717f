//! Programs that read a password from what is piped into them.

use std::ops::Range;

use super::{LINE, RULE, command_end, strike_value};
use crate::redaction::scan::Scan;
use crate::redaction::value;
use crate::redaction::view::View;

/// At a program or flag that reads one password.
pub(super) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = command_end(view, anchor.end);
    let string = view.find(anchor.end..end, b"<<<");
    let string = string.map(|at| anchor.end + at + b"<<<".len());
    let places = [echoed(scan, &anchor), string, traced_after(view, anchor.end)];
    for start in places.into_iter().flatten() {
        strike_value(scan, start);
        if start < anchor.start {
            strike_repeated(scan, start, anchor.start);
        }
    }
}

/// Removes further arguments that are the same as the one at `start`: a new password is given twice.
fn strike_repeated(scan: &mut Scan<'_>, start: usize, end: usize) {
    let view = scan.view;
    let password = view.slice(value::at(view, start).range);
    if !(4..=64).contains(&password.len()) {
        return;
    }
    let line = view.line_start(start + 1).max(start.saturating_sub(LINE));
    for range in [line..start, (start + password.len()).min(end)..end] {
        if let Some(at) = view.find(range.clone(), password) {
            let again = range.start + at;
            scan.strike(again..again + password.len(), RULE);
        }
    }
}

/// At `chpasswd`, which reads `user:password` from an `echo` before it, a string after it, or the
/// list of cloud-init's setting of that name.
pub(super) fn examine_account_list(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let near = view.slice(anchor.end..view.len().min(anchor.end + LINE));
    let list = memchr::memmem::find(near, b"list:").map(|at| anchor.end + at + b"list:".len());
    if let Some(start) = list.filter(|start| view.is_break(*start) && view.at(*start) == b'-') {
        strike_items(scan, start);
    }
    examine_here_document(scan, anchor.end);
    let end = command_end(view, anchor.end);
    let string = view.find(anchor.end..end, b"<<<");
    let string = string.map(|at| anchor.end + at + b"<<<".len());
    for start in [echoed(scan, &anchor), string, list].into_iter().flatten() {
        let start = value::after_blanks(view, start);
        let range = value::block(view, start).unwrap_or_else(|| value::at(view, start).range);
        let text = view.slice(range.clone());
        let is_encoded = text.ends_with(b"=")
            && view.find(range.end..anchor.start.max(range.end), b"base64").is_some();
        let is_formatted = view.find(start.saturating_sub(24)..start, b"%s").is_some();
        if text.contains(&b':') || is_encoded || is_formatted {
            scan.strike(range, RULE);
        }
    }
}

/// The lines of YAML's `- user:password`.
fn strike_items(scan: &mut Scan<'_>, start: usize) {
    let view = scan.view;
    let mut line = start;
    for _ in 0..MOST_ITEMS {
        if !(view.is_break(line) && view.at(line) == b'-') {
            return;
        }
        let item = value::at(view, value::after_blanks(view, line + 1)).range;
        if view.slice(item.clone()).contains(&b':') {
            scan.strike(item, RULE);
        }
        line = view.next_break(line + 1);
    }
}

/// The most accounts of one list.
const MOST_ITEMS: usize = 64;

/// `<<EOF`: the lines that follow, up to one with that word alone, are `user:password`.
fn examine_here_document(scan: &mut Scan<'_>, from: usize) {
    let view = scan.view;
    let end = command_end(view, from);
    let Some(mark) = view.find(from..end, b"<<") else { return };
    let word = from + mark + b"<<".len();
    let word = word + usize::from(view.at(word) == b'-');
    let word = word + usize::from(value::is_quote(view.at(word)));
    let length = view.count_while(word..end, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let mut line = view.next_break(end);
    for _ in 0..MOST_ITEMS {
        let next = view.next_break(line + 1);
        if length == 0
            || !view.is_break(line)
            || view.slice(line..next) == view.slice(word..word + length)
        {
            return;
        }
        if view.find(line..next, b":").is_some() {
            scan.strike(line..next, RULE);
        }
        line = next;
    }
}

/// The argument of the last `echo` or `printf` before `anchor`, on its line or, as a trace prints a
/// pipe, on the line before.
fn echoed(scan: &Scan<'_>, anchor: &Range<usize>) -> Option<usize> {
    let view = scan.view;
    let line = view.line_start(anchor.start + 1);
    let previous = if view.at(line) == b'+' && line > 0 { view.line_start(line) } else { line };
    let places = [line, previous].into_iter().find_map(|line| echo_after(view, line, anchor));
    places
        .or_else(|| echo_after(view, 0, anchor).filter(|echo| is_open_at(view, *echo, line)))
        .and_then(|echo| after_flags(view, echo))
}

/// Where the arguments of the last `echo` or `printf` before `anchor` begin, not before `floor`.
fn echo_after(view: &View, floor: usize, anchor: &Range<usize>) -> Option<usize> {
    let floor = floor.max(anchor.start.saturating_sub(LINE));
    let before = view.slice(floor.min(anchor.start)..anchor.start);
    let after = |word: &[u8]| memchr::memmem::rfind(before, word).map(|at| floor + at + word.len());
    after(b"echo ").max(after(b"printf ")).max(after(b"yes "))
}

/// Whether a quotation that begins after `start` is still open at `line`: its line breaks are part of it.
fn is_open_at(view: &View, start: usize, line: usize) -> bool {
    let text = view.slice(start.min(line)..line);
    let mark = text.iter().find(|byte| matches!(byte, b'"' | b'\''));
    mark.is_some_and(|mark| memchr::memchr_iter(*mark, text).count() % 2 == 1)
}

/// The argument of an `echo` on the line after `position`: a trace may print the parts of a pipe in
/// either order.
fn traced_after(view: &View, position: usize) -> Option<usize> {
    let line = view.next_break(position);
    let is_trace = view.is_break(line) && view.at(line) == b'+';
    let start = value::after_blanks(view, line + 1);
    (is_trace && view.reads(start, b"echo ")).then(|| after_flags(view, start + b"echo ".len()))?
}

/// The first argument that is no flag and no format.
fn after_flags(view: &View, start: usize) -> Option<usize> {
    let mut start = value::after_blanks(view, start);
    for _ in 0..3 {
        let value = value::at(view, start);
        let text = view.slice(value.range.clone());
        let is_format = memchr::memmem::find(text, b"%s").is_some() || text.starts_with(b"-");
        if !is_format {
            return Some(start);
        }
        let close = usize::from(value.quoted && value::is_quote(view.at(value.range.end)));
        start = value::after_blanks(view, value.range.end + close);
    }
    None
}
