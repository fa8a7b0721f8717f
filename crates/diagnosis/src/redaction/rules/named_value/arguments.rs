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
const LONGEST_ENTRY: usize = 160;

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

/// The value of an entry that comes before its name: `{"value": "secret", "name": "password"}`.
pub(super) fn entry_before(view: &View, name: &Name<'_>) -> Option<usize> {
    let start = name.range.start;
    let floor = start.saturating_sub(LONGEST_ENTRY);
    let before = view.folded(floor..start);
    let quoted = before.strip_suffix(b"\"").unwrap_or(&before).trim_ascii_end();
    let named = quoted.strip_suffix(b":")?.trim_ascii_end();
    let named = named.strip_suffix(b"\"").unwrap_or(named);
    let named = named.strip_suffix(b"name").or_else(|| named.strip_suffix(b"key"))?;
    let value = memchr::memmem::rfind(named, b"value")?;
    let (_, value_start) = assignment(view, floor + value + b"value".len())?;
    let value = value::at(view, value_start);
    // Nothing but a comma, a quotation mark or a line break stands between the two.
    let between = view.bytes().get(value.range.end..floor + named.len())?;
    let is_near = between.iter().all(|byte| b"\", '".contains(byte)) && between.len() <= 8;
    is_near.then_some(value_start)
}
