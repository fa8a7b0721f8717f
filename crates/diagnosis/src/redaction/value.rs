//! Where a value ends: quoted, bare, or wrapped over lines.

use std::ops::Range;

use super::shape;
use super::view::View;
use super::wrap::continues;

/// How far the end of a reference such as `$(command)` is searched.
const LONGEST_REFERENCE: usize = 64;

/// How far a closing quotation mark is searched: longer than the longest custom data.
const LONGEST_QUOTATION: usize = 256 * 1024;

/// How far three closing quotation marks are searched.
const LONGEST_TRIPLE: usize = 1024;

/// A value without its quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) quoted: bool,
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// The position after blanks, at most 64 of them.
pub(super) fn after_blanks(view: &View, position: usize) -> usize {
    let end = view.len().min(position + 64);
    (position..end).find(|&at| !is_blank(view.at(at))).unwrap_or(end)
}

/// The value that begins at `start`; empty if the line ends there and the next one is another.
pub(super) fn at(view: &View, start: usize) -> Value {
    let opening =
        if view.at(start) == b'$' && is_quote(view.at(start + 1)) { start + 1 } else { start };
    if matches!(view.at(opening), b'"' | b'\'') {
        return triple_quoted(view, opening).unwrap_or_else(|| quoted(view, opening));
    }
    if view.is_break(start) && !continues(view, start, false) {
        return Value { range: start..start, quoted: false };
    }
    Value { range: start..bare_end(view, start), quoted: false }
}

/// From three quotation marks to the next three, as TOML and Python quote lines.
fn triple_quoted(view: &View, opening: usize) -> Option<Value> {
    let mark = view.at(opening);
    let is_triple = view.at(opening + 1) == mark && view.at(opening + 2) == mark;
    let start = opening + 3;
    (is_triple && start < view.len()).then_some(())?;
    let end = view.len().min(start + LONGEST_TRIPLE);
    let length = view.find(start..end, &[mark; 3])?;
    (length > 0).then_some(Value { range: start..start + length, quoted: true })
}

/// From an opening quotation mark to the closing one of the same escape depth.
///
/// One of a lesser depth ends the quotation around this one, and so this one too. If neither comes
/// soon, the value was cut, and goes to the end of its line.
fn quoted(view: &View, opening: usize) -> Value {
    let mark = view.at(opening);
    let depth = view.escape_depth(opening);
    let start = opening + 1;
    let mut next_break = view.next_break(start);
    let (mut lines, mut has_blank) = (0, false);
    let mut position = start;
    while position < view.len().min(start + LONGEST_QUOTATION) {
        if position == next_break {
            lines += 1;
            if has_blank && lines > 3 {
                break;
            }
            next_break = view.next_break(position + 1);
        }
        let byte = view.at(position);
        has_blank |= is_blank(byte);
        if is_quote(byte) {
            let here = view.escape_depth(position);
            if here < depth && byte != b'\'' {
                return Value { range: start..position, quoted: true };
            }
            if byte == mark && here == depth {
                if !is_joined(view, position, depth) {
                    return Value { range: start..after_adjoining(view, position), quoted: true };
                }
                position += 2;
            }
        }
        position += 1;
    }
    let line_end = view.next_break(start);
    let end = if view.is_break(line_end) && continues(view, line_end, false) {
        bare_end(view, line_end)
    } else {
        line_end
    };
    Value { range: start..end, quoted: true }
}

/// How a shell puts an apostrophe into a quotation: `'ab'\''cd'` is one value.
fn is_joined(view: &View, closing: usize, depth: usize) -> bool {
    let (escaped, opening) = (closing + 1, closing + 2);
    view.at(closing) == b'\''
        && view.at(escaped) == b'\''
        && view.escape_depth(escaped) > depth
        && view.at(opening) == b'\''
        && view.escape_depth(opening) == depth
}

/// A shell joins what stands side by side: `'ab'cd` is one value. The closing mark itself is not
/// part of the value unless more follows it.
fn after_adjoining(view: &View, closing: usize) -> usize {
    let first = view.line_start(closing);
    let mut closing = closing;
    while let Some(end) = adjoining_quotation(view, first, closing) {
        closing = end;
    }
    let next = closing + 1;
    let has_more = view.at(next).is_ascii_alphanumeric() && !view.is_break(next);
    if has_more { bare_end(view, next) } else { closing }
}

/// The longest quotation that belongs to the one beside it.
const LONGEST_ADJOINING: usize = 96;

/// The closing mark of a quotation that goes on with the one that ends at `closing`, side by side
/// (`'ab'"cd"`), on the next line, or with a sign that joins texts (`"ab" + "cd"`). It has no blanks; a
/// mark that closes the quotation around this one is followed by something else. The value began on the
/// line at `first`.
fn adjoining_quotation(view: &View, first: usize, closing: usize) -> Option<usize> {
    let opening = joined_opening(view, first, closing);
    let mark = view.at(opening);
    let is_opening = matches!(mark, b'"' | b'\'')
        && view.escape_depth(opening) == view.escape_depth(closing)
        && !(is_blank(view.at(opening + 1)) || b",:;)]}".contains(&view.at(opening + 1)));
    is_opening.then_some(())?;
    let end = view.len().min(opening + LONGEST_ADJOINING);
    let near = view.slice((opening + 1).min(end)..end);
    let length = near.iter().position(|byte| *byte == mark || is_blank(*byte))?;
    let end = opening + 1 + length;
    // A line that begins with a quotation can be an entry of its own.
    let is_entry = opening == closing + 1
        && view.is_break(opening)
        && b":=,".contains(&view.at(after_blanks(view, end + 1)));
    (length > 0 && near[length] == mark && !is_entry).then_some(end)
}

/// Where the quotation would open that goes on with the one that ends at `closing`.
fn joined_opening(view: &View, first: usize, closing: usize) -> usize {
    let near = closing + 1;
    let sign = after_continuation(view, after_blanks(view, near));
    let opening = after_sign(view, first, near, sign).map(|after| {
        let after = after_continuation(view, after_blanks(view, after));
        after_variable(view, first, after).unwrap_or(after)
    });
    // What stands side by side, or on the next line after a backslash.
    opening.unwrap_or(if view.is_break(near) { sign } else { near })
}

/// The position after the sign at `sign` that joins two texts, the first of which ends at `near`.
fn after_sign(view: &View, first: usize, near: usize, sign: usize) -> Option<usize> {
    let length = match (view.at(sign), view.at(sign + 1)) {
        // The last one is what it is changed to.
        (b'.', b'.') | (b'|', b'|') | (b'-', b'>') => 2,
        (b'+' | b'.' | b'&', _) => 1,
        _ => return None,
    };
    let after = sign + length;
    // A line of a trace begins with a plus too, but is not indented further.
    let is_apart = if sign == near && view.is_break(near) {
        view.indentation(near) > view.indentation(first)
    } else {
        sign > near
    };
    let is_tight = sign == near && !view.is_break(near) && is_quote(view.at(after));
    (is_apart || is_tight || view.at(sign) == b'-').then_some(after)
}

/// The position after the sign at `position` with which a line goes on: a backtick in `PowerShell`, a
/// caret in a batch file, an underscore in Visual Basic.
fn after_continuation(view: &View, position: usize) -> usize {
    let next = position + 1;
    let is_sign = matches!(view.at(position), b'`' | b'^' | b'_' | b'\\');
    let is_last = is_sign && !view.is_break(position) && view.is_break(next);
    if is_last { after_blanks(view, next) } else { position }
}

/// The longest variable between two parts of a text.
const LONGEST_VARIABLE: usize = 48;

/// The position after the variable at `start` and the sign after it: `"ab" + $name + "cd"`.
fn after_variable(view: &View, first: usize, start: usize) -> Option<usize> {
    let end = view.len().min(start + LONGEST_VARIABLE);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"$_.:".contains(&byte);
    let length = view.count_while(start.min(end)..end, is_letter);
    (length > 0).then_some(())?;
    let near = start + length;
    let after = after_sign(view, first, near, after_blanks(view, near))?;
    Some(after_continuation(view, after_blanks(view, after)))
}

/// The end of a value without quotation marks.
pub(super) fn bare_end(view: &View, start: usize) -> usize {
    let mut position = after_reference(view, start);
    let mut next_break = view.next_break(position.max(start + 1));
    while position < view.len() {
        if position == next_break {
            if !continues(view, position, false) {
                break;
            }
            next_break = view.next_break(position + 1);
        }
        let byte = view.at(position);
        if is_blank(byte) || (is_delimiter(byte) && delimits(view, position + 1)) {
            break;
        }
        position += 1;
    }
    while position > start + 1 && matches!(view.before(position), b'.' | b':') {
        position -= 1;
    }
    position
}

/// The end of the cell of a table that begins at `start`.
pub(super) fn end_of_cell(view: &View, start: usize) -> usize {
    let line_end = view.next_break(start + 1);
    let cell = view.slice(start.min(line_end)..line_end.min(start + shape::LONGEST_HARMLESS));
    let length = memchr::memchr(b'|', cell).unwrap_or(cell.len());
    start + cell[..length].trim_ascii_end().len()
}

/// The position after `<name>`, `${NAME}`, `$(command)` or `{{ name }}`, if a value begins with one.
fn after_reference(view: &View, start: usize) -> usize {
    let closing = match (view.at(start), view.at(start + 1)) {
        (b'<', _) => b'>',
        (b'$', b'(') => b')',
        (b'$' | b'{', b'{') => b'}',
        _ => return start,
    };
    let end = view.next_break(start + 1).min(start + LONGEST_REFERENCE);
    let found = view.find(start..end, &[closing]);
    found.map_or(start, |at| start + at + 1)
}

/// YAML's `|` and `>` at the end of a line: the value is the lines that follow.
pub(super) fn block(view: &View, start: usize) -> Option<Range<usize>> {
    let indicators = (start + 1..start + 3)
        .take_while(|at| matches!(view.at(*at), b'-' | b'+' | b'1'..=b'9') && !view.is_break(*at));
    let mark_end = start + 1 + indicators.count();
    let is_block = matches!(view.at(start), b'|' | b'>') && view.is_break(mark_end);
    is_block.then(|| mark_end..block_end(view, mark_end))
}

/// The lines that are indented further than the line of their name. If the first one is not, then
/// that one, and each further one without blanks, colons or a trace's mark.
fn block_end(view: &View, start: usize) -> usize {
    let mut end = view.next_break(start + 1);
    let indented = indented_end(view, start);
    if indented > start {
        return indented;
    }
    while end < view.len() {
        let next = view.next_break(end + 1);
        let line = view.slice(end..next);
        if line.iter().any(|byte| b" \t:".contains(byte)) || !continues(view, end, true) {
            break;
        }
        end = next;
    }
    end
}

/// The longest block of lines that belongs to one name.
const LONGEST_BLOCK: usize = 64 * 1024;

/// Where the lines end that follow the line break at `start` and are indented further than the line
/// before it; `start` if there are none.
pub(super) fn indented_end(view: &View, start: usize) -> usize {
    let parent = view.indentation(view.line_start(start));
    let limit = view.len().min(start + LONGEST_BLOCK);
    let mut end = start;
    while end < limit && view.is_break(end) && view.indentation(end) > parent {
        end = view.next_break(end + 1);
    }
    end
}

fn is_delimiter(byte: u8) -> bool {
    is_quote(byte) || b",;&|)]}<>".contains(&byte)
}

/// Whether what follows a delimiter shows that it is one, and not a letter of a password.
fn delimits(view: &View, after: usize) -> bool {
    let next = view.at(after);
    if after >= view.len() || view.is_break(after) || is_blank(next) || is_delimiter(next) {
        return true;
    }
    if matches!(next, b'.' | b':' | b'=' | b'\\' | b'{' | b'[' | b'(' | b'/') {
        return true;
    }
    let end = view.len().min(after + 48);
    let name = (after..end)
        .find(|&at| !(view.at(at).is_ascii_alphanumeric() || b"_-. ".contains(&view.at(at))));
    name.is_some_and(|at| at > after && matches!(view.at(at), b'=' | b':'))
}

/// The end of letters of one kind from `start`, over line breaks where the value goes on.
///
/// Below `complete` letters the value cannot be complete.
pub(super) fn end_of_letters(
    view: &View,
    start: usize,
    complete: usize,
    is_letter: impl Fn(u8) -> bool,
) -> usize {
    let mut next_break = view.next_break(start + 1);
    let mut position = start;
    while position < view.len() && is_letter(view.at(position)) {
        if position == next_break {
            if !continues(view, position, position - start < complete) {
                break;
            }
            next_break = view.next_break(position + 1);
        }
        position += 1;
    }
    position
}

/// The end of a key whose lines were joined with blanks, as an unquoted `echo` does.
pub(super) fn over_blanks(view: &View, key: &Range<usize>) -> usize {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    let mut end = key.end;
    if key.len() < 40 || !shape::Mix::of(view.slice(key.clone())).is_random() {
        return end;
    }
    while view.at(end) == b' ' {
        let start = end + 1;
        let length = view.count_while(start..view.len(), is_letter);
        let piece = view.slice(start..start + length);
        if !(shape::is_key_like(piece) || length > 2 && piece.ends_with(b"=")) {
            break;
        }
        end = start + length;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::{View, at};

    fn value(text: &str) -> String {
        let view = View::of(text.as_bytes());
        String::from_utf8_lossy(view.slice(at(&view, 0).range)).into_owned()
    }

    #[test]
    fn a_quotation_ends_at_the_mark_of_its_own_depth() {
        assert_eq!(value(r#""a b", "c": 1"#), "a b");
        assert_eq!(value(r#"\"a\\\"b\" x"#), r#"a"b"#);
        assert_eq!(value(r#"\"ab", "c": 1"#), "ab");
        assert_eq!(value("'ab' x"), "ab");
        assert_eq!(value(r"'ab'\''cd' x"), "ab'''cd");
        assert_eq!(value("\"ab\ncd\" x"), "abcd");
    }

    #[test]
    fn an_unclosed_quotation_goes_to_the_end_of_its_line() {
        assert_eq!(value("\"ab cd\n+ exit 211\nand\nso\non it goes"), "ab cd");
    }

    #[test]
    fn a_bare_value_ends_at_a_delimiter_but_not_at_a_letter_of_a_password() {
        assert_eq!(value("a,b;c&d next"), "a,b;c&d");
        assert_eq!(value("abc;Name=x"), "abc");
        assert_eq!(value("abc&sp=r"), "abc");
        assert_eq!(value("abc}} x"), "abc");
        assert_eq!(value("abc. Next"), "abc");
        assert_eq!(value("don't"), "don't");
    }

    #[test]
    fn a_bare_value_goes_on_over_a_break_only_into_more_of_itself() {
        assert_eq!(value("aB3\r\n  d5F7 next"), "aB3d5F7");
        assert_eq!(value("aB3\n+ exit 1"), "aB3");
        assert_eq!(value("aB3\nFailed to start"), "aB3");
        assert_eq!(value("aB3\nNAME=x9"), "aB3");
        assert_eq!(value("aB3\nI0909 11:58:41 x"), "aB3");
        assert_eq!(value("\n+ exit 1"), "");
    }
}
