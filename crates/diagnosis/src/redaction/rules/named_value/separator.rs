//! How a value is attached to its name.

use std::ops::Range;

use super::{arguments, markup, predicate, prose};
use crate::redaction::name::{Name, is_name_letter};
use crate::redaction::shape;
use crate::redaction::value::{after_blanks, is_blank, is_quote};
use crate::redaction::view::View;
use crate::redaction::words::Kind;

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
    /// `| name | value |`.
    Cell,
}

impl Separator {
    /// Whether a sentence could have it.
    pub(super) fn is_loose(self) -> bool {
        match self {
            Self::Loose | Self::Flag => true,
            Self::Tight | Self::Beside | Self::Markup { .. } | Self::Entry | Self::Cell => false,
        }
    }
}

/// The separator after `name`, and where the value begins.
pub(super) fn after(view: &View, name: &Name<'_>, kind: Kind) -> Option<(Separator, usize)> {
    let end = name.range.end;
    let assigned =
        assignment(view, end).or_else(|| indexed(view, end)).or_else(|| remark(view, end));
    if let Some((separator, start)) = assigned {
        let is_tail = is_quote(view.at(end))
            && (!is_key(view, name.range.start)
                || kind != Kind::Password && begins_sentence(view, start));
        return Some((if is_tail { Separator::Loose } else { separator }, start));
    }
    if let Some(text) = markup::text_of(view, &name.range) {
        return Some((Separator::Markup { end: text.end }, text.start));
    }
    if let Some(line) = here_document(view, end) {
        return Some((Separator::Markup { end: line.end }, line.start));
    }
    if let Some(field) = markup::form_field(view, &name.range) {
        return Some((Separator::Markup { end: field.end }, field.start));
    }
    if let Some(start) = entry(view, name).or_else(|| arguments::entry_before(view, name)) {
        return Some((Separator::Entry, start));
    }
    if let Some(start) = arguments::second(view, name) {
        return Some((Separator::Beside, start));
    }
    let start = after_blanks(view, end);
    let is_apart = start > end || view.is_break(end);
    let is_flag = name.is_flag() || kind == Kind::Password && is_switch(view, name.range.start);
    // A command of PowerShell goes on after a backtick, one of Windows after a caret.
    let is_continued = matches!(view.at(start), b'`' | b'^') && view.is_break(start + 1);
    let start = start + usize::from(is_flag && is_continued);
    let is_item = view.is_break(end) && view.at(start) == b'-' && is_blank(view.at(start + 1));
    if is_flag && is_item {
        return Some((Separator::Flag, after_blanks(view, start + 1)));
    }
    if is_apart && is_flag && !matches!(view.at(start), b'-' | b'/' | 0) {
        return Some((Separator::Flag, start));
    }
    if view.at(end) == b'(' && is_quote(view.at(end + 1)) {
        let user = if kind == Kind::Credential { arguments::next(view, end + 1) } else { None };
        return Some((Separator::Beside, user.unwrap_or(end + 1)));
    }
    if let Some(start) = predicate::of_foreign(view, name, kind) {
        return Some((Separator::Tight, start));
    }
    if !is_apart {
        return None;
    }
    if let Some(start) = arguments::of_setting(view, name, start) {
        return Some((Separator::Beside, start));
    }
    if view.at(start) == b'|' && is_cell(view, name) {
        return Some((Separator::Cell, after_blanks(view, start + 1)));
    }
    if kind != Kind::Password {
        let start =
            if beside_key(view, start) { Some(start) } else { predicate::of_key(view, end) };
        return start.map(|start| (Separator::Beside, start));
    }
    if matches!(view.at(start), b'"' | b'\'') || beside(view, name, start) {
        return Some((Separator::Beside, start));
    }
    predicate::of_password(view, end).map(|start| (Separator::Loose, start))
}

/// Whether a name that begins at `start` is a switch of Windows: ` /password`.
fn is_switch(view: &View, start: usize) -> bool {
    view.before(start) == b'/' && (start == 1 || is_blank(view.before(start - 1)))
}

/// Whether the name is in a table: `| password | value |`.
fn is_cell(view: &View, name: &Name<'_>) -> bool {
    let before = view.slice(name.range.start.saturating_sub(32)..name.range.start);
    before.trim_ascii_end().ends_with(b"|")
}

/// The longest value that is looked for beside its name.
const LONGEST_BESIDE: usize = 128;

/// The text up to the next blank on the same line.
pub(super) fn next_text(view: &View, start: usize) -> &[u8] {
    let limit = view.next_break(start + 1).min(start + LONGEST_BESIDE).max(start);
    let near = view.slice(start.min(limit)..limit);
    let length = near.iter().position(|byte| is_blank(*byte)).unwrap_or(near.len());
    let text = &near[..length];
    let end = text.iter().rposition(|byte| !b".,;:)\"'".contains(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

/// Whether a key stands beside its name: `seed 0f1e…`.
fn beside_key(view: &View, start: usize) -> bool {
    let text = next_text(view, start);
    text.len() >= 32
        && (shape::is_hexadecimal(text) || shape::is_key_like(text) || shape::is_guid(text))
}

/// Whether a password stands beside its name without a mark: `login bob password value`. A word does
/// so only after a user's name, or else it is one of a sentence.
fn beside(view: &View, name: &Name<'_>, start: usize) -> bool {
    let text = next_text(view, start);
    let begins = text.first().is_some_and(|first| !b"-([{<|&>$=+/\\".contains(first));
    if !begins || shape::is_harmless(text) || shape::is_placeholder(text) {
        return false;
    }
    if is_after_user(view, name.range.start) {
        return !prose::is_word_of_prose(text);
    }
    let is_marked = text.iter().any(|byte| b"!#%*?^$@~+".contains(byte));
    let is_last = ends_line(view, start, text.len());
    let is_first = view.line_start(name.range.start + 1) == name.range.start;
    let is_named = view.slice(name.range.clone()).contains(&b'_') && (is_last || is_first);
    let has_capitals = text.iter().any(u8::is_ascii_uppercase);
    is_named && is_last && is_first || is_mixed(text) && (is_marked || is_named || has_capitals)
}

/// Whether letters and digits are mixed as they are in no word.
pub(super) fn is_mixed(text: &[u8]) -> bool {
    text.len() >= 6
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().any(u8::is_ascii_alphabetic)
        && !shape::is_harmless(text)
}

/// Whether nothing follows the text of `length` at `start` on its line.
pub(super) fn ends_line(view: &View, start: usize, length: usize) -> bool {
    let end = start + length;
    end >= view.len() || view.is_break(end)
}

/// Whether `login NAME` or the like stands before `position`, on the same line or the one before.
fn is_after_user(view: &View, position: usize) -> bool {
    const WORDS: [&[u8]; 6] = [b"login", b"user", b"username", b"account", b"connect", b"machine"];
    let before = view.slice(position.saturating_sub(96)..position);
    let floor = position - before.len();
    let line = view.line_start(position + 1).max(floor);
    // The line break before the name is no blank in the view.
    let (user_end, is_first) =
        if line == position { (position, true) } else { (position.saturating_sub(1), false) };
    let user_line = if is_first { view.line_start(position).max(floor) } else { line };
    let user = view.slice(user_line.min(user_end)..user_end);
    let Some(blank) = user.iter().rposition(|byte| is_blank(*byte)) else { return false };
    let word = user[..blank].trim_ascii_end();
    let word = word.rsplit(|byte| is_blank(*byte)).next().unwrap_or_default();
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Whether words follow, as they do after no key of JSON: `"secrets-store": rpc error: …`.
fn begins_sentence(view: &View, start: usize) -> bool {
    let word = next_text(view, start);
    let next = start + word.len();
    shape::is_word(word)
        && view.at(next) == b' '
        && !view.is_break(next)
        && view.at(next + 1).is_ascii_alphabetic()
}

/// Whether the name at `start` begins a quoted key. The last word of a quotation is none:
/// `Get "https://host/token": dial tcp`.
fn is_key(view: &View, start: usize) -> bool {
    let line = view.line_start(start + 1).max(start.saturating_sub(LONGEST_BESIDE));
    let before = view.slice(line..start);
    let words = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b" _-.[$@".contains(byte));
    let quote = before.len() - words.count();
    quote == 0 || is_quote(before[quote - 1]) || b"<:({,".contains(&before[quote - 1])
}

/// `passwords[0].value: secret`, as queries of tables name it.
fn indexed(view: &View, end: usize) -> Option<(Separator, usize)> {
    (view.at(end) == b'[').then_some(())?;
    let digits = (end + 1..end + 5).take_while(|at| view.at(*at).is_ascii_digit()).count();
    let close = end + 1 + digits;
    (digits > 0 && view.at(close) == b']').then_some(())?;
    let member =
        view.bytes()[close + 1..].iter().take(32).take_while(|byte| is_name_letter(**byte));
    assignment(view, close + 1 + member.count())
}

/// `=`, `:`, `:=`, `=>` or `->` after a name that ends at `end`, with quotation marks and blanks.
pub(super) fn assignment(view: &View, end: usize) -> Option<(Separator, usize)> {
    let closed = (end..end + 3)
        .find(|&at| !(is_quote(view.at(at)) || view.at(at) == b']'))
        .unwrap_or(end + 3);
    let mark = after_blanks(view, after_colour(view, closed));
    let after = match (view.at(mark), view.at(mark + 1)) {
        (b':' | b'=', b'=') | (b'=' | b'-', b'>') => mark + 2,
        // LDIF marks base64 so; modules are written without a blank.
        (b':', b':') if is_blank(view.at(mark + 2)) => mark + 2,
        (b':', b':') => return None,
        (b':', b'/') if view.at(mark + 2) == b'/' => return None,
        (b':' | b'=', _) => mark + 1,
        _ => return None,
    };
    let start = after_blanks(view, after_colour(view, after_blanks(view, after)));
    let is_quoted = closed > end && view.before(closed) != b'`';
    let is_tight = is_quoted || start == after || matches!(view.at(start), b'"' | b'\'');
    Some((if is_tight { Separator::Tight } else { Separator::Loose }, start))
}

/// The first line of a here document that is read into the name: `read password <<EOF`.
fn here_document(view: &View, end: usize) -> Option<Range<usize>> {
    let mark = after_blanks(view, end);
    (view.reads(mark, b"<<") && view.at(mark + 2) != b'<').then_some(())?;
    let line = view.next_break(mark).min(mark + LONGEST_BESIDE);
    view.is_break(line).then(|| line..view.next_break(line + 1))
}

/// The longest remark between a name and its mark.
const LONGEST_REMARK: usize = 40;

/// A remark in brackets between a name and its mark: `Password (8-20 letters): value`.
fn remark(view: &View, end: usize) -> Option<(Separator, usize)> {
    let open = after_blanks(view, end);
    if view.reads(open, b"string ") && open > end {
        // Its type: `param secret string = 'value'`.
        let mark = after_blanks(view, open + b"string ".len());
        return (view.at(mark) == b'=').then(|| (Separator::Tight, after_blanks(view, mark + 1)));
    }
    let closing = match view.at(open) {
        b'(' => b')',
        b'[' if open > end => b']',
        _ => return None,
    };
    let limit = view.next_break(open + 1).min(open + LONGEST_REMARK);
    let close = open + view.find(open..limit.max(open), &[closing])?;
    let mark = after_blanks(view, close + 1);
    let is_mark = matches!(view.at(mark), b':' | b'=') && is_blank(view.at(mark + 1));
    (is_mark && !is_quote(view.at(open + 1)))
        .then(|| (Separator::Loose, after_blanks(view, mark + 1)))
}

/// How an escape sequence begins after its ESC was lost or written in letters.
const ESCAPES: [&[u8]; 6] = [b"^[[", b"\\033[", b"\\e[", b"#033[", b"?[", b"["];

/// The position after what is left of a colour's escape sequence: `[0m`, `#033[1;31m`.
fn after_colour(view: &View, position: usize) -> usize {
    let rest = &view.bytes()[position.min(view.len())..];
    let Some(escape) = ESCAPES.iter().find(|escape| rest.starts_with(escape)) else {
        return position;
    };
    let start = position + escape.len();
    let is_parameter = |at: &usize| view.at(*at).is_ascii_digit() || view.at(*at) == b';';
    let end = start + (start..start + 8).take_while(is_parameter).count();
    if view.at(end) == b'm' { end + 1 } else { position }
}

/// The list of variables of a container, or a value of Windows' registry: the name is itself a value,
/// and the value comes next.
pub(super) fn entry(view: &View, name: &Name<'_>) -> Option<usize> {
    let before = view.folded(name.range.start.saturating_sub(12)..name.range.start);
    if memchr::memmem::find(&before, b"/v ").is_some() {
        return registry_value(view, name.range.end);
    }
    if !before.windows(4).any(|word| word == b"name" || word == b"type")
        && !before.windows(3).any(|word| word == b"key")
    {
        return None;
    }
    let is_between = |at: &usize| {
        is_quote(view.at(*at))
            || is_blank(view.at(*at))
            || matches!(view.at(*at), b',' | b';' | b'-')
    };
    let end = name.range.end;
    let word = (end..end + 32).find(|at| !is_between(at))?;
    let names = [&b"value"[..], b"val"];
    let value_end =
        names.iter().find(|name| view.reads(word, name)).map(|name| word + name.len())?;
    if view.before(word) == b'-' && is_blank(view.at(value_end)) {
        return Some(after_blanks(view, value_end));
    }
    assignment(view, value_end).map(|(_, start)| start)
}

/// `reg add KEY /v NAME /t REG_SZ /d VALUE`.
fn registry_value(view: &View, end: usize) -> Option<usize> {
    let limit = view.next_break(end + 1).min(end + LONGEST_BESIDE);
    let found = view.find(end..limit, b" /d ")?;
    Some(after_blanks(view, end + found + b" /d ".len()))
}
