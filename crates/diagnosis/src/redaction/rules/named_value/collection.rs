//! Values that are lists, objects or lines of their own.

use super::{Separator, Subject, examine_value, judge, separator};
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;
use crate::redaction::words::Kind;

/// The most values of one list that are looked at; more are taken together.
const LONGEST_LIST: usize = 256;

/// The longest object whose members are looked at.
const LONGEST_OBJECT: usize = 64 * 1024;

/// `["one", "two"]`, `[one]`, and lists of objects, which are left to the names inside them.
pub(super) fn examine_list(scan: &mut Scan<'_>, subject: &Subject<'_>, mut start: usize) {
    let view = scan.view;
    for _ in 0..LONGEST_LIST {
        start = value::after_blanks(view, start);
        if matches!(view.at(start), b']' | b'{' | b'[' | 0) {
            return;
        }
        let value = value::at(view, start);
        let end = value.range.end
            + usize::from(value.quoted && value::is_quote(view.at(value.range.end)));
        judge(scan, subject, &value);
        start = value::after_blanks(view, end);
        if view.at(start) != b',' {
            return;
        }
        start += 1;
    }
    scan.strike(start..view.next_break(start + 1), subject.rule);
}

/// `{"value": "secret"}`, as templates of ARM write parameters. Protected settings are secret with
/// all their members; other objects are left to the names inside them.
pub(super) fn examine_object(scan: &mut Scan<'_>, subject: &Subject<'_>, brace: usize) {
    let view = scan.view;
    if subject.kind == Kind::ProtectedSettings {
        strike_members(scan, brace, subject.rule);
        return;
    }
    let start = value::after_blanks(view, brace + 1);
    let start = start + usize::from(value::is_quote(view.at(start)));
    if let Some(start) = member(view, start) {
        examine_value(scan, subject, start);
    }
}

/// The value of the member `value` at `start`.
fn member(view: &View, start: usize) -> Option<usize> {
    view.reads(start, b"value").then_some(())?;
    separator::assignment(view, start + b"value".len()).map(|(_, start)| start)
}

/// A list of YAML, one value a line; or the member `value` on the line after the name. Whether there
/// was one.
pub(super) fn examine_lines(scan: &mut Scan<'_>, subject: &Subject<'_>, start: usize) -> bool {
    let view = scan.view;
    if subject.separator == Separator::Flag {
        return false;
    }
    if let Some(start) = member(view, start) {
        examine_value(scan, subject, start);
        return true;
    }
    let parent = view.indentation(view.line_start(start));
    let mut line = start;
    for _ in 0..LONGEST_LIST {
        let item = value::after_blanks(view, line + 1);
        let is_item = view.is_break(line)
            && view.at(line) == b'-'
            && item > line + 1
            && view.indentation(line) >= parent;
        if !is_item {
            break;
        }
        let next = view.next_break(line + 1);
        let value = value::at(view, item);
        if value.quoted || view.find(item..next, b": ").is_none() {
            judge(scan, subject, &value);
        }
        line = next;
    }
    line > start
}

/// Removes every text in the object or list that begins with the bracket at `start`, at any depth,
/// and leaves its names.
pub(in crate::redaction::rules) fn strike_members(
    scan: &mut Scan<'_>,
    start: usize,
    rule: &'static str,
) {
    let view = scan.view;
    let limit = view.len().min(start + LONGEST_OBJECT);
    let (mut position, mut depth) = (start, 0_usize);
    while position < limit {
        match view.at(position) {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => depth -= 1,
            b'"' | b'\'' => {
                let value = value::at(view, position).range;
                let end = value.end + usize::from(value::is_quote(view.at(value.end)));
                let is_name = view.at(value::after_blanks(view, end)) == b':';
                if !is_name && !shape::is_no_password(view.slice(value.clone())) {
                    scan.strike(value, rule);
                }
                position = end.max(position + 1);
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    // The names inside were passed, and are not looked at again.
    scan.skip_to(position);
}
