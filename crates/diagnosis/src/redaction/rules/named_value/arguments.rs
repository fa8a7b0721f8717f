//! Values that are the argument after their name: of a function, of a command that sets a name, in a list.

use super::prose;
use super::separator::{assignment, next_text};
use crate::redaction::name::Name;
use crate::redaction::value::{self, after_blanks, is_blank, is_quote};
use crate::redaction::view::View;

/// Commands that take a name and its value as two arguments, by their last word.
const SETTERS: [&[u8]; 5] = [b"setx", b"setenv", b"set", b"--secret", b"--secure"];

/// Types that `reg query` prints between a name and its value.
const REGISTRY_TYPES: [&[u8]; 3] = [b"REG_SZ", b"REG_EXPAND_SZ", b"REG_MULTI_SZ"];

/// How far before a name its value is searched.
const LONGEST_ENTRY: usize = 256;

/// The next quoted argument after the quoted one at `start`: `'bob', 'value'`.
pub(super) fn next(view: &View, start: usize) -> Option<usize> {
    let value = value::at(view, start);
    let comma = after_blanks(view, value.range.end + 1);
    (value.quoted && view.at(comma) == b',').then(|| after_blanks(view, comma + 1))
}

/// The quoted text after a quoted name and a comma: `('password', 'value')`, `"--password", "value"`. The
/// name is a flag or the first of its list, or else both are words of a list of names.
pub(super) fn second(view: &View, name: &Name<'_>) -> Option<usize> {
    let (start, end) = (name.range.start, name.range.end);
    let is_quoted = is_quote(view.before(start)) && is_quote(view.at(end));
    let comma = after_blanks(view, end + 1);
    (is_quoted && view.at(comma) == b',').then_some(())?;
    let value = after_blanks(view, comma + 1);
    (is_quote(view.at(value))).then_some(())?;
    if name.is_flag() {
        return (view.at(value + 1) != b'-').then_some(value);
    }
    match start.checked_sub(2).map(|bracket| view.at(bracket))? {
        b'(' => Some(value),
        b'[' => {
            let text = value::at(view, value);
            let close = after_blanks(view, text.range.end + 1);
            (view.at(close) == b']').then_some(value)
        }
        _ => None,
    }
}

/// The value at `start` if a command sets the name to it (`setx NAME value`), or if the type of a value
/// of Windows' registry stands between them.
pub(super) fn of_setting(view: &View, name: &Name<'_>, start: usize) -> Option<usize> {
    let text = next_text(view, start);
    if REGISTRY_TYPES.contains(&text) {
        return Some(after_blanks(view, start + text.len()));
    }
    let is_value = !text.is_empty() && !text.starts_with(b"-") && !prose::is_word_of_prose(text);
    (is_value && name.is_identifier() && is_after_setter(view, name.range.start)).then_some(start)
}

/// Whether the word before the one that `position` is in is a setter.
fn is_after_setter(view: &View, position: usize) -> bool {
    let line = view.line_start(position + 1).max(position.saturating_sub(LONGEST_ENTRY));
    let before = view.slice(line.min(position)..position);
    let word = before.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    let command = before[..word].trim_ascii_end();
    let last = command.rsplit(|byte| is_blank(*byte)).next().unwrap_or_default();
    SETTERS.iter().any(|setter| last.eq_ignore_ascii_case(setter))
}

/// The most members with a value's name that are looked at before a name.
const MOST_VALUES: usize = 4;

/// The value of an entry that comes before its name: `{"value": "secret", "name": "password"}`. Other
/// members of the same entry can stand between the two.
pub(super) fn entry_before(view: &View, name: &Name<'_>) -> Option<usize> {
    let start = name.range.start;
    let floor = start.saturating_sub(LONGEST_ENTRY);
    let before = view.folded(floor..start);
    let quoted = without_quote(&before).trim_ascii_end();
    let named = quoted.strip_suffix(b":").or_else(|| quoted.strip_suffix(b"="))?;
    let named = without_quote(named.trim_ascii_end());
    let named = named.strip_suffix(b"name").or_else(|| named.strip_suffix(b"key"))?;
    let values = memchr::memmem::rfind_iter(named, b"val").take(MOST_VALUES);
    let starts = values.filter_map(|found| value_before(view, floor + found, floor + named.len()));
    // The first of them is the member, the others are words of its value.
    starts.min()
}

fn without_quote(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\"").or_else(|| text.strip_suffix(b"'")).unwrap_or(text)
}

/// Whether what stands before a name ends with a word of a sentence: `invalid value "a" for name`.
fn is_after_word(between: &[u8]) -> bool {
    let text = between.trim_ascii_end();
    let word = text.rsplit(|byte| is_blank(*byte)).next().unwrap_or_default();
    text.len() < between.len() && !word.is_empty() && word.iter().all(u8::is_ascii_alphabetic)
}

/// Where the value of the member at `member` begins, if it is in the same entry as the name at `name`.
fn value_before(view: &View, member: usize, name: usize) -> Option<usize> {
    let before = view.before(member);
    let is_member = is_quote(before)
        || is_blank(before)
        || matches!(before, 0 | b'{' | b',' | b';' | b'(')
        || view.is_break(member);
    is_member.then_some(())?;
    let length = if view.reads(member, b"value") { b"value".len() } else { b"val".len() };
    let (_, start) = assignment(view, member + length)?;
    let value = value::at(view, start).range;
    let between = view.bytes().get(value.end..name)?;
    if is_after_word(between) {
        return None;
    }
    let mut depth = 0_usize;
    for (at, byte) in (value.end..).zip(between) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'<' | b'>' => return None,
            // The next entry of a list.
            b'-' if view.is_break(at) => return None,
            _ => {}
        }
    }
    // What begins with a bracket has members with names of their own.
    (depth == 0 && !matches!(view.at(start), b'{' | b'[')).then_some(start)
}
