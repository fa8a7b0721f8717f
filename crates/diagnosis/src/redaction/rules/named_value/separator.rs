//! How a value is attached to its name.

use crate::redaction::name::Name;
use crate::redaction::value::{after_blanks, bare_end, is_blank, is_quote};
use crate::redaction::view::View;

/// What stands between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// `name=value`, `"name": "value"`, `name:value`.
    Tight,
    /// `name: value`, `name = value`: also how sentences are written.
    Loose,
    /// `--name value`.
    Flag,
    /// `password 'value'`.
    Beside,
    /// `<name>value</name>`; the value ends at `end`.
    Markup { end: usize },
    /// `{name: NAME, value: VALUE}`.
    Entry,
}

/// How far the end of an element is searched.
const LONGEST_ELEMENT: usize = 4096;

/// How far `is` is searched after `password`.
const LONGEST_PREDICATE: usize = 48;

impl Separator {
    /// Whether a sentence could have it.
    pub(super) fn is_loose(self) -> bool {
        match self {
            Self::Loose | Self::Flag => true,
            Self::Tight | Self::Beside | Self::Markup { .. } | Self::Entry => false,
        }
    }
}

/// The separator after `name`, and where the value begins.
pub(super) fn after(view: &View, name: &Name<'_>) -> Option<(Separator, usize)> {
    let end = name.range.end;
    if let Some(found) = assignment(view, end) {
        return Some(found);
    }
    if let Some(value_end) = element_end(view, name) {
        return Some((Separator::Markup { end: value_end }, end + 1));
    }
    if let Some(start) = entry(view, name) {
        return Some((Separator::Entry, start));
    }
    let start = after_blanks(view, end);
    let is_apart = start > end || view.is_break(end);
    if is_apart && name.is_flag() && !matches!(view.at(start), b'-' | 0) {
        return Some((Separator::Flag, start));
    }
    if !is_apart || !name.is_password() {
        return None;
    }
    if matches!(view.at(start), b'"' | b'\'') {
        return Some((Separator::Beside, start));
    }
    predicate(view, end).map(|start| (Separator::Loose, start))
}

/// Where the value of `<name>value</name>` ends. `<name>` alone is a placeholder.
fn element_end(view: &View, name: &Name<'_>) -> Option<usize> {
    let start = name.range.end + 1;
    let is_element = view.at(start - 1) == b'>'
        && view.before(name.range.start) == b'<'
        && !is_blank(view.at(start))
        && !is_quote(view.at(start));
    if !is_element {
        return None;
    }
    let text = &view.bytes()[start..view.len().min(start + LONGEST_ELEMENT)];
    let Some(closing) = memchr::memchr(b'<', text) else { return Some(bare_end(view, start)) };
    matches!(text.get(closing + 1), None | Some(b'/')).then_some(start + closing)
}

/// The value of `password for bob is value`.
fn predicate(view: &View, end: usize) -> Option<usize> {
    let limit = view.next_break(end + 1).min(end + LONGEST_PREDICATE);
    let verb = memchr::memmem::find(&view.bytes()[end..limit], b" is ")?;
    Some(end + verb + b" is ".len())
}

/// `=`, `:`, `:=` or `=>` after a name that ends at `end`, with quotation marks and blanks.
pub(super) fn assignment(view: &View, end: usize) -> Option<(Separator, usize)> {
    let closed = (end..end + 3)
        .find(|&at| !(is_quote(view.at(at)) || view.at(at) == b']'))
        .unwrap_or(end + 3);
    let mark = after_blanks(view, closed);
    let after = match (view.at(mark), view.at(mark + 1)) {
        (b':', b'=') | (b'=', b'>' | b'=') => mark + 2,
        (b':', b':') => return None,
        (b':', b'/') if view.at(mark + 2) == b'/' => return None,
        (b':' | b'=', _) => mark + 1,
        _ => return None,
    };
    let start = after_blanks(view, after);
    let is_quoted = closed > end && view.before(closed) != b'`';
    let is_tight = is_quoted || start == after || matches!(view.at(start), b'"' | b'\'');
    Some((if is_tight { Separator::Tight } else { Separator::Loose }, start))
}

/// The list of variables of a container: the name is itself a value, and the value comes next.
fn entry(view: &View, name: &Name<'_>) -> Option<usize> {
    let before = view.folded(name.range.start.saturating_sub(12)..name.range.start);
    if !before.windows(4).any(|word| word == b"name")
        && !before.windows(3).any(|word| word == b"key")
    {
        return None;
    }
    let is_between =
        |at: &usize| is_quote(view.at(*at)) || is_blank(view.at(*at)) || view.at(*at) == b',';
    let end = name.range.end;
    let word = (end..end + 32).find(|at| !is_between(at))?;
    view.reads(word, b"value").then_some(())?;
    assignment(view, word + b"value".len()).map(|(_, start)| start)
}
