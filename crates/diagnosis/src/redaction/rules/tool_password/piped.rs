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
    }
}

/// At `chpasswd`, which reads `user:password` from an `echo` before it, a string after it, or the
/// list of cloud-init's setting of that name.
pub(super) fn examine_account_list(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let near = view.slice(anchor.end..view.len().min(anchor.end + LINE));
    let list = memchr::memmem::find(near, b"list:").map(|at| anchor.end + at + b"list:".len());
    let end = command_end(view, anchor.end);
    let string = view.find(anchor.end..end, b"<<<");
    let string = string.map(|at| anchor.end + at + b"<<<".len());
    for start in [echoed(scan, &anchor), string, list].into_iter().flatten() {
        let start = value::after_blanks(view, start);
        let range = value::block(view, start).unwrap_or_else(|| value::at(view, start).range);
        if view.slice(range.clone()).contains(&b':') {
            scan.strike(range, RULE);
        }
    }
}

/// The argument of the last `echo` or `printf` before `anchor`, on its line or, as a trace prints a
/// pipe, on the line before.
fn echoed(scan: &Scan<'_>, anchor: &Range<usize>) -> Option<usize> {
    let view = scan.view;
    let line = view.line_start(anchor.start + 1);
    let previous = if view.at(line) == b'+' && line > 0 { view.line_start(line) } else { line };
    [line, previous].into_iter().find_map(|line| {
        let floor = line.max(anchor.start.saturating_sub(LINE));
        let before = view.bytes().get(floor..anchor.start)?;
        let start = anchor.start - before.len();
        let echo = memchr::memmem::rfind(before, b"echo ").map(|at| start + at + b"echo ".len());
        let print =
            memchr::memmem::rfind(before, b"printf ").map(|at| start + at + b"printf ".len());
        after_flags(view, echo.max(print)?)
    })
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
        let is_format = text.starts_with(b"%s") || text.starts_with(b"-");
        if !is_format {
            return Some(start);
        }
        let close = usize::from(value.quoted && value::is_quote(view.at(value.range.end)));
        start = value::after_blanks(view, value.range.end + close);
    }
    None
}
