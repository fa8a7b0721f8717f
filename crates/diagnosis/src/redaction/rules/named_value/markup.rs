//! Values of XML: the text of an element whose name, or whose attribute, names a secret.

use std::ops::Range;

use crate::redaction::value::{is_blank, is_quote};
use crate::redaction::view::View;

/// How far the beginning and the end of a tag are searched.
const LONGEST_TAG: usize = 256;

/// How far the end of an element is searched.
const LONGEST_ELEMENT: usize = 4096;

/// The most tags between a name and its value: `<Password><Value>`, `</key><string>`.
const MOST_TAGS: usize = 3;

const CHARACTER_DATA: &[u8] = b"<![CDATA[";

/// Where the text begins and ends that belongs to the element with `name` in its tag.
/// `<name>` alone is a placeholder.
pub(super) fn text_of(view: &View, name: &Range<usize>) -> Option<Range<usize>> {
    let tag_end = tag_end(view, name)?;
    let mut start = tag_end + 1;
    for _ in 0..MOST_TAGS {
        if view.at(start) != b'<' || view.bytes()[start..].starts_with(CHARACTER_DATA) {
            break;
        }
        let near = view.slice(start..view.len().min(start + LONGEST_TAG));
        start += memchr::memchr(b'>', near)? + 1;
    }
    if view.bytes()[start.min(view.len())..].starts_with(CHARACTER_DATA) {
        start += CHARACTER_DATA.len();
    }
    let is_text = start < view.len() && !is_blank(view.at(start)) && !is_quote(view.at(start));
    if !is_text {
        return None;
    }
    let near = view.slice(start..view.len().min(start + LONGEST_ELEMENT));
    if view.bytes()[..start].ends_with(CHARACTER_DATA)
        && let Some(length) = memchr::memmem::find(near, b"]]>")
    {
        return (length > 0).then_some(start..start + length);
    }
    // A text that goes on to the end of what is known was cut.
    let end = memchr::memchr(b'<', near).map_or(view.next_break(start + 1), |at| start + at);
    let is_closed = view.at(end) != b'<' || matches!(view.at(end + 1), 0 | b'/' | b'!');
    let end = if view.bytes()[..end].ends_with(b"]]>") { end - b"]]>".len() } else { end };
    (is_closed && end > start).then_some(start..end)
}

/// How far before a name the kind of its part of a form is searched.
const LONGEST_DISPOSITION: usize = 64;

/// The value of a field of a form that was sent in parts: the line after the headers of its part,
/// `Content-Disposition: form-data; name="password"`.
pub(super) fn form_field(view: &View, name: &Range<usize>) -> Option<Range<usize>> {
    let before = view.folded(name.start.saturating_sub(LONGEST_DISPOSITION)..name.start);
    let is_field =
        before.ends_with(b"name=\"") && memchr::memmem::find(&before, b"form-data").is_some();
    let mut start = name.end + 1;
    (is_field && view.at(name.end) == b'"' && view.is_break(start)).then_some(())?;
    if view.reads(start, b"content-") {
        start = view.next_break(start + 1);
    }
    let end = view.next_break(start + 1).min(start + LONGEST_ELEMENT);
    (start < end && view.at(start) != b'-').then_some(start..end)
}

/// The `>` of the tag that `name` is in. The name is the tag's, after a prefix at most, or the whole
/// value of an attribute, or the whole text of an element.
fn tag_end(view: &View, name: &Range<usize>) -> Option<usize> {
    let before = view.before(name.start);
    let is_tag = before == b'<' || before == b':' && is_prefixed(view, name.start);
    let is_attribute = is_quote(before) && is_quote(view.at(name.end));
    let is_text = before == b'>' && view.at(name.end) == b'<' && view.at(name.end + 1) == b'/';
    if is_text {
        let near = view.slice(name.end..view.len().min(name.end + LONGEST_TAG));
        let end = name.end + memchr::memchr(b'>', near)?;
        // Another element has to follow.
        return (view.at(end + 1) == b'<' && view.at(end + 2) != b'/').then_some(end);
    }
    if is_attribute {
        let near = view.slice(name.end..view.len().min(name.end + LONGEST_TAG));
        let end = near.iter().position(|byte| matches!(byte, b'>' | b'<'))?;
        let before = view.slice(name.start.saturating_sub(LONGEST_TAG / 4)..name.start);
        // Other attributes may follow, if this is a tag.
        let is_tag = end == 1 || before.contains(&b'<') && near[end - 1] != b'/';
        return (near[end] == b'>' && is_tag).then_some(name.end + end);
    }
    if !is_tag {
        return None;
    }
    match view.at(name.end) {
        b'>' => Some(name.end),
        byte if is_blank(byte) => {
            let near = view.slice(name.end..view.len().min(name.end + LONGEST_TAG));
            let end = near.iter().position(|byte| matches!(byte, b'>' | b'<'))?;
            (near[end] == b'>' && near[end - 1] != b'/').then_some(name.end + end)
        }
        _ => None,
    }
}

/// Whether a prefix of a namespace and a `<` stand before `position`.
fn is_prefixed(view: &View, position: usize) -> bool {
    let before = view.slice(position.saturating_sub(32)..position - 1);
    let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    letters > 0 && before.iter().rev().nth(letters) == Some(&b'<')
}
