//! The text as a person would read it, with a map back to the source.
//!
//! In the view, escapes of JSON (any number of levels), percent signs, entities of HTML and CLIXML are
//! undone, typographic quotation marks and wide letters are plain, ANSI sequences and NUL bytes are gone, and line breaks
//! (real ones and escaped ones) are removed together with the indentation that follows them. What
//! was one word before a console wrapped it is one word again.
//!
//! Where a line break was is remembered: it can be inside a word or between two, and rules decide
//! which ([`View::next_break`], [`super::wrap::continues`]).

use std::ops::Range;
use std::slice::SliceIndex;

mod decode;
mod entity;

use decode::Symbol;

use super::work;

/// Stands in the view for a character that is not ASCII and was written as an escape.
const FOREIGN: u8 = 0xFF;

/// Stands in the view for a marker that an earlier redaction left. No text can hold it, since
/// control bytes are dropped.
pub(super) const REDACTED: u8 = 0x01;

/// From here on, view and source run in step; or, if `width` is not 0, one byte of the view stands
/// for `width` bytes of the source.
#[derive(Clone, Copy)]
struct Segment {
    view: u32,
    source: u32,
    width: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct View {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    breaks: Vec<u32>,
}

impl View {
    /// A view of `source`; see [`View::read`].
    pub(super) fn of(source: &[u8]) -> Self {
        let mut view = Self::default();
        view.read(source);
        view
    }

    /// Reads another source, which must be shorter than 4 GiB; later bytes are not read.
    pub(super) fn read(&mut self, source: &[u8]) {
        let source = &source[..source.len().min(u32::MAX as usize)];
        self.bytes.clear();
        self.bytes.reserve(source.len());
        self.breaks.clear();
        self.segments.clear();
        self.segments.push(Segment { view: 0, source: 0, width: 0 });
        work::add(source.len());
        let mut reader = decode::Reader::new(source);
        let mut position = 0;
        while position < source.len() {
            let plain = reader.plain_length(position);
            self.bytes.extend_from_slice(&source[position..position + plain]);
            position += plain;
            if position < source.len() {
                position = self.take(&reader, position);
            }
        }
    }

    /// Takes the one special symbol at `position` and returns the position after it.
    fn take(&mut self, reader: &decode::Reader<'_>, position: usize) -> usize {
        let (symbol, mut after) = reader.symbol(position);
        match symbol {
            Symbol::Plain => {
                self.bytes.extend_from_slice(reader.slice(position..after));
                return after;
            }
            Symbol::Byte(byte) => {
                self.begin_segment(position, after - position);
                self.bytes.push(byte);
            }
            Symbol::Foreign => {
                self.begin_segment(position, after - position);
                self.bytes.push(FOREIGN);
            }
            Symbol::Nothing => {}
            Symbol::Erase => {
                if self.breaks.last() != Some(&small(self.bytes.len())) {
                    self.bytes.pop();
                }
            }
            Symbol::Break => {
                let here = small(self.bytes.len());
                if self.breaks.last() != Some(&here) {
                    self.breaks.push(here);
                }
                after = reader.after_indentation(after);
            }
        }
        self.begin_segment(after, 0);
        after
    }

    fn begin_segment(&mut self, source: usize, width: usize) {
        let segment =
            Segment { view: small(self.bytes.len()), source: small(source), width: small(width) };
        // What was erased has no source any more.
        while self.segments.last().is_some_and(|last| last.view > segment.view) {
            self.segments.pop();
        }
        match self.segments.last_mut() {
            Some(last) if last.view == segment.view => *last = segment,
            _ => self.segments.push(segment),
        }
    }

    /// The text.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A part of the text, all of which is looked at.
    pub(super) fn slice<I: SliceIndex<[u8], Output = [u8]>>(&self, range: I) -> &[u8] {
        let slice = &self.bytes[range];
        work::add(slice.len());
        slice
    }

    /// How many bytes from `start` on, before `end`, are such that `is_one` holds.
    pub(super) fn count_while(&self, range: Range<usize>, is_one: impl Fn(u8) -> bool) -> usize {
        let count = self.bytes[range].iter().take_while(|byte| is_one(**byte)).count();
        work::add(count + 1);
        count
    }

    /// How far after the beginning of `range` the first `text` in it is.
    pub(super) fn find(&self, range: Range<usize>, text: &[u8]) -> Option<usize> {
        let length = range.len();
        let found = match text {
            [byte] => memchr::memchr(*byte, &self.bytes[range]),
            _ => memchr::memmem::find(&self.bytes[range], text),
        };
        work::add(found.map_or(length, |at| at + text.len()));
        found
    }

    /// A part of the text with ASCII letters in lower case.
    pub(super) fn folded(&self, range: Range<usize>) -> Vec<u8> {
        self.slice(range).to_ascii_lowercase()
    }

    /// Whether `word` stands at `position`, in any case.
    pub(super) fn reads(&self, position: usize, word: &[u8]) -> bool {
        work::add(word.len());
        let text = self.bytes.get(position..position + word.len());
        text.is_some_and(|text| text.eq_ignore_ascii_case(word))
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at `position`, 0 at the end.
    pub(super) fn at(&self, position: usize) -> u8 {
        work::add(1);
        self.bytes.get(position).copied().unwrap_or(0)
    }

    /// The byte before `position`, 0 at the beginning.
    pub(super) fn before(&self, position: usize) -> u8 {
        position.checked_sub(1).map_or(0, |previous| self.at(previous))
    }

    /// The first line break at or after `position`; the length of the view if there is none.
    pub(super) fn next_break(&self, position: usize) -> usize {
        work::add(1);
        let index = self.breaks.partition_point(|&at| (at as usize) < position);
        self.breaks.get(index).map_or(self.bytes.len(), |&at| at as usize)
    }

    /// Where the line that holds the byte before `position` begins.
    pub(super) fn line_start(&self, position: usize) -> usize {
        let index = self.breaks.partition_point(|&at| (at as usize) < position);
        index.checked_sub(1).map_or(0, |index| self.breaks[index] as usize)
    }

    /// Whether a line ended between `position` and the byte before it.
    pub(super) fn is_break(&self, position: usize) -> bool {
        self.next_break(position) == position && position < self.bytes.len()
    }

    /// How far the line that begins at `position` is indented, with its line break: only differences
    /// between lines mean something.
    pub(super) fn indentation(&self, position: usize) -> usize {
        let Some(before) = position.checked_sub(1) else {
            return 1 + self.bytes.iter().take(256).take_while(|byte| **byte == b' ').count();
        };
        if position >= self.bytes.len() {
            return 0;
        }
        let previous = self.source_range(&(before..position));
        self.source_start(position).saturating_sub(previous.end)
    }

    /// By how many bytes the one at `position` is escaped: 0 for `"`, 1 for `\"`, 3 for `\\\"`.
    pub(super) fn escape_depth(&self, position: usize) -> usize {
        let segment = self.segment(position);
        (segment.width as usize).saturating_sub(1)
    }

    /// Where the source of the byte at `position` begins.
    pub(super) fn source_start(&self, position: usize) -> usize {
        let segment = self.segment(position);
        let offset = if segment.width > 0 { 0 } else { position - segment.view as usize };
        segment.source as usize + offset
    }

    /// The source of a part of the view, with escapes and line breaks inside it whole.
    pub(super) fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let last = self.segment(range.end - 1);
        let length =
            if last.width > 0 { last.width as usize } else { range.end - last.view as usize };
        self.source_start(range.start)..last.source as usize + length
    }

    fn segment(&self, position: usize) -> Segment {
        work::add(1);
        let index = self.segments.partition_point(|segment| segment.view as usize <= position);
        index.checked_sub(1).map_or(Segment { view: 0, source: 0, width: 0 }, |i| self.segments[i])
    }
}

/// Positions fit, since [`View::of`] reads no more than 4 GiB.
fn small(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::View;

    fn read(source: &str) -> (String, Vec<u32>) {
        let view = View::of(source.as_bytes());
        (String::from_utf8_lossy(view.bytes()).into_owned(), view.breaks)
    }

    #[test]
    fn wrapped_lines_are_joined_and_remembered() {
        assert_eq!(read("ab\r\n  cd\nef"), ("abcdef".to_owned(), vec![2, 4]));
        assert_eq!(read("ab\\r\\n\\tcd\\\\nef"), ("abcdef".to_owned(), vec![2, 4]));
        assert_eq!(read("ab \\\n cd"), ("ab cd".to_owned(), vec![3]));
    }

    #[test]
    fn escapes_of_every_level_are_undone() {
        assert_eq!(read(r#"\"a\" \\\"b\\\" \u003d \\u003D \/"#).0, r#""a" "b" = = /"#);
        assert_eq!(read("%2B%252F%3d %20 %zz %").0, "+/= %20 %zz %");
        assert_eq!(read("\u{1b}[31mred\u{1b}[0m n\0u\0l ‘x’").0, "red nul 'x'");
        assert_eq!(read("a_x000D__x000A_b"), ("ab".to_owned(), vec![1]));
        assert_eq!(read(r"C:\\AzureData\\Q").0, r"C:\AzureData\Q");
        assert_eq!(read("&quot;a&quot; ｐw\u{ad}d\u{a0}x\u{9b}31my").0, "\"a\" pwd xy");
        assert_eq!(read("pasx\u{8}s\rword\u{1b}(B=").0, "password=");
    }

    #[test]
    fn a_part_of_the_view_maps_to_whole_escapes() {
        let source = r"x\u0041b\\nc%2Bd";
        let view = View::of(source.as_bytes());
        assert_eq!(view.bytes(), b"xAbc+d");
        assert_eq!(&source[view.source_range(&(1..2))], r"\u0041");
        assert_eq!(&source[view.source_range(&(1..4))], r"\u0041b\\nc");
        assert_eq!(&source[view.source_range(&(2..3))], "b");
        assert_eq!(&source[view.source_range(&(4..6))], "%2Bd");
    }

    #[test]
    fn the_depth_of_a_quotation_mark_is_its_number_of_backslashes() {
        let view = View::of(br#"a"b\"c\\\"d"#);
        assert_eq!((view.escape_depth(1), view.escape_depth(3), view.escape_depth(5)), (0, 1, 3));
    }
}
