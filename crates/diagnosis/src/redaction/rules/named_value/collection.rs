//! Values that are lists, objects or lines of their own.

use super::{Separator, Subject, examine_value, judge, prose, separator};
use crate::redaction::name::is_name_letter;
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
    if let Some(start) = member_of(view, brace) {
        examine_value(scan, subject, start);
    }
}

/// Names of members that hold the secret itself.
const MEMBERS: [&[u8]; 9] =
    [b"value", b"val", b"data", b"primary", b"current", b"default", b"plaintext", b"raw", b"p"];

/// How far into an object its members are searched.
const LONGEST_SEARCH: usize = 256;

/// The value of the member with the secret, of the object that begins with `brace`.
fn member_of(view: &View, brace: usize) -> Option<usize> {
    let limit = view.len().min(brace + LONGEST_SEARCH);
    let object = view.slice(brace + 1..limit.max(brace + 1));
    // Objects inside this one have names of their own.
    let length = object.iter().position(|byte| matches!(byte, b'{' | b'}')).unwrap_or(object.len());
    let mut start = brace + 1;
    while start < brace + 1 + length {
        let name = value::after_blanks(view, start);
        let name = name + usize::from(value::is_quote(view.at(name)));
        if let Some(value) = member(view, name) {
            return Some(value);
        }
        let next = view.next_break(start + 1);
        start = view.find(start..limit, b",").map_or(next, |comma| next.min(start + comma + 1));
    }
    None
}

/// The value of the member at `start`, if it is the one with the secret.
fn member(view: &View, start: usize) -> Option<usize> {
    let name = MEMBERS.iter().find(|name| view.reads(start, name))?;
    separator::assignment(view, start + name.len()).map(|(_, start)| start)
}

/// A list of YAML, one value a line; or the member `value` on the line after the name. Whether there
/// was one.
pub(super) fn examine_lines(scan: &mut Scan<'_>, subject: &Subject<'_>, start: usize) -> bool {
    let view = scan.view;
    if subject.separator == Separator::Flag {
        return false;
    }
    if subject.kind == Kind::ProtectedSettings {
        return strike_lines(scan, start, subject.rule);
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
    line > start || examine_next_line(scan, subject, start)
}

/// A value alone on the line after its name, indented further: `Password:` and below it the password.
/// Whether there was one.
fn examine_next_line(scan: &mut Scan<'_>, subject: &Subject<'_>, start: usize) -> bool {
    let view = scan.view;
    let end = view.next_break(start + 1).min(start + LONGEST_SEARCH);
    let text = view.slice(start..end).trim_ascii_end();
    let is_alone = !text.iter().any(|byte| value::is_blank(*byte))
        && !matches!(text.last(), Some(b':' | b'{' | b'[' | b',') | None)
        && !matches!(text.first(), Some(b'-' | b'+' | b'{' | b'[' | b'<' | b'"' | b'\'' | b'|'))
        && view.indentation(start) > view.indentation(view.line_start(start));
    let is_secret = match subject.kind {
        Kind::Password => !prose::is_word_of_prose(text),
        _ => text.iter().any(u8::is_ascii_digit),
    };
    if !is_alone || !is_secret || is_entry(text) {
        return false;
    }
    judge(scan, subject, &value::Value { range: start..start + text.len(), quoted: true });
    true
}

/// `name=value`: a line of its own.
fn is_entry(text: &[u8]) -> bool {
    let name = text.iter().take_while(|byte| is_name_letter(**byte)).count();
    matches!(text.get(name), Some(b'=' | b':')) && name > 0
}

/// Removes the values of the lines that are indented further than the one before `start`, and leaves
/// their names. Whether there were any.
pub(in crate::redaction::rules) fn strike_lines(
    scan: &mut Scan<'_>,
    start: usize,
    rule: &'static str,
) -> bool {
    let view = scan.view;
    let end = value::indented_end(view, start);
    let mut line = start;
    while line < end {
        let next = view.next_break(line + 1).min(end);
        // A line without a name goes on with the value of the one before.
        let colon = view.find(line..next, b":");
        let from =
            colon.map_or(line, |colon| value::after_blanks(view, line + colon + 1)).min(next);
        let quote = usize::from(value::is_quote(view.at(from)) && from < next);
        let value =
            from + quote..next - usize::from(next > from + 1 && value::is_quote(view.before(next)));
        if value.start < value.end && !shape::is_no_password(view.slice(value.clone())) {
            scan.strike(value, rule);
        }
        line = next;
    }
    end > start
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
            b':' if value::is_blank(view.at(position + 1)) => {
                let start = value::after_blanks(view, position + 1);
                let length = view.count_while(start..limit, |byte| !b",}]".contains(&byte));
                let value = view.slice(start..start + length);
                let is_bare = value.first().is_some_and(u8::is_ascii_alphanumeric)
                    && !value.iter().all(u8::is_ascii_digit)
                    && !shape::is_no_password(value);
                if is_bare {
                    scan.strike(start..start + length, rule);
                    position = start + length;
                    continue;
                }
            }
            _ => {}
        }
        position += 1;
    }
    // The names inside were passed, and are not looked at again.
    scan.skip_to(position);
}
