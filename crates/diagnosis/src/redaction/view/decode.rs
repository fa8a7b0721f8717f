//! The symbols of a text: what one escape, control byte or line break stands for.

use std::ops::Range;

use crate::redaction::OVER_BUDGET;
use crate::redaction::rules::RULES;
use crate::redaction::strikes::MARKER;

/// What stands at one place of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// Itself.
    Plain,
    /// One ASCII byte, written in another way.
    Byte(u8),
    /// One character that is not ASCII, written in another way.
    Foreign,
    /// Nothing that can be seen.
    Nothing,
    /// The end of a line.
    Break,
}

/// Reads symbols out of a source.
pub(super) struct Reader<'a> {
    source: &'a [u8],
    has_clixml: bool,
    has_markers: bool,
    /// Whether bytes are special that [`Reader::next_frequent`] and [`Reader::next_rare`] miss.
    has_oddities: bool,
    /// Where the next backslash, line feed or percent is, or a position before the last one asked.
    frequent: usize,
    /// The same for carriage returns, escape sequences and typographic marks.
    rare: usize,
}

/// Bytes looked at together; the check of a block is compiled to vector instructions.
const BLOCK: usize = 32;

/// The longest name in a marker, with the length it may hold.
const LONGEST_MARKER: usize = 48;

/// How CLIXML, the form of PowerShell's error stream, writes CR and LF.
const CLIXML_BREAKS: [&[u8]; 2] = [b"_x000D_", b"_x000A_"];

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a [u8]) -> Self {
        let has_clixml = memchr::memmem::find(source, CLIXML_BREAKS[1]).is_some();
        let has_markers = memchr::memmem::find(source, MARKER).is_some();
        let has_oddities = has_clixml || has_markers || source.chunks(BLOCK).any(has_oddity);
        let mut reader =
            Self { source, has_clixml, has_markers, has_oddities, frequent: 0, rare: 0 };
        if !has_oddities {
            reader.frequent = reader.next_frequent(0);
            reader.rare = reader.next_rare(0);
        }
        reader
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        &self.source[range]
    }

    /// How many bytes from `position` on certainly stand for themselves. Positions ascend.
    pub(super) fn plain_length(&mut self, position: usize) -> usize {
        if self.has_oddities {
            return self.plain_length_among_oddities(position);
        }
        if self.frequent < position {
            self.frequent = self.next_frequent(position);
        }
        if self.rare < position {
            self.rare = self.next_rare(position);
        }
        self.frequent.min(self.rare) - position
    }

    fn next_frequent(&self, position: usize) -> usize {
        let found = memchr::memchr3(b'\\', b'\n', b'%', &self.source[position..]);
        found.map_or(self.source.len(), |at| position + at)
    }

    fn next_rare(&self, position: usize) -> usize {
        let found = memchr::memchr3(b'\r', 0x1B, 0xE2, &self.source[position..]);
        found.map_or(self.source.len(), |at| position + at)
    }

    fn plain_length_among_oddities(&self, position: usize) -> usize {
        let mut length = 0;
        for block in self.source[position..].chunks(BLOCK) {
            if block.iter().fold(false, |any, &byte| any | self.is_special(byte)) {
                let plain = block.iter().position(|&byte| self.is_special(byte));
                return length + plain.unwrap_or(block.len());
            }
            length += block.len();
        }
        length
    }

    fn is_special(&self, byte: u8) -> bool {
        byte < b' '
            || byte == b'\\'
            || byte == b'%'
            || byte == 0xE2
            || (self.has_clixml && byte == b'_')
            || (self.has_markers && byte == b'[')
    }

    fn at(&self, position: usize) -> u8 {
        self.source.get(position).copied().unwrap_or(0)
    }

    /// The symbol at `position`, which is in the source, and the position after it.
    pub(super) fn symbol(&self, position: usize) -> (Symbol, usize) {
        match self.at(position) {
            b'\\' => self.backslashes(position),
            b'%' => self.percent(position),
            b'\r' if self.at(position + 1) == b'\n' => (Symbol::Break, position + 2),
            b'\n' | b'\r' => (Symbol::Break, position + 1),
            0x1B => (Symbol::Nothing, self.after_terminal_sequence(position)),
            b'\t' => (Symbol::Plain, position + 1),
            0..b' ' => (Symbol::Nothing, self.after_controls(position)),
            0xE2 => self.typographic(position),
            b'_' if CLIXML_BREAKS.iter().any(|mark| self.source[position..].starts_with(mark)) => {
                (Symbol::Break, position + CLIXML_BREAKS[0].len())
            }
            b'[' => match self.after_marker(position) {
                Some(after) => (Symbol::Byte(super::REDACTED), after),
                None => (Symbol::Plain, position + 1),
            },
            _ => (Symbol::Plain, position + 1),
        }
    }

    /// The position after the marker that begins at `position`, if it is one of ours.
    fn after_marker(&self, position: usize) -> Option<usize> {
        let name = self.source[position..].strip_prefix(MARKER)?;
        let length = memchr::memchr(b']', &name[..name.len().min(LONGEST_MARKER)])?;
        let is_ours = RULES.iter().any(|rule| rule.as_bytes() == &name[..length])
            || name.starts_with(OVER_BUDGET.as_bytes()) && name[..length].ends_with(b" bytes");
        is_ours.then_some(position + MARKER.len() + length + 1)
    }

    /// The position after blanks, which are indentation if a line has just ended.
    pub(super) fn after_indentation(&self, mut position: usize) -> usize {
        loop {
            match self.at(position) {
                b' ' | b'\t' => position += 1,
                b'\\' => match self.backslashes(position) {
                    (Symbol::Byte(b' '), after) => position = after,
                    _ => return position,
                },
                _ => return position,
            }
        }
    }

    /// A run of backslashes and what it escapes. How many there are says the level only.
    fn backslashes(&self, position: usize) -> (Symbol, usize) {
        let run = self.source[position..].iter().take_while(|&&byte| byte == b'\\').count();
        let escaped = position + run;
        match self.at(escaped) {
            b'n' | b'r' => (Symbol::Break, escaped + 1),
            b't' => (Symbol::Byte(b' '), escaped + 1),
            quote @ (b'"' | b'\'' | b'/' | b'`') => (Symbol::Byte(quote), escaped + 1),
            b'u' => self.code_point(escaped + 1, 4).unwrap_or((Symbol::Byte(b'\\'), escaped)),
            b'x' => self.code_point(escaped + 1, 2).unwrap_or((Symbol::Byte(b'\\'), escaped)),
            b'\n' | b'\r' => (Symbol::Nothing, escaped),
            _ => (Symbol::Byte(b'\\'), escaped),
        }
    }

    fn code_point(&self, position: usize, digits: usize) -> Option<(Symbol, usize)> {
        let after = position + digits;
        let code = self.hexadecimal(position..after)?;
        let symbol = match u8::try_from(code) {
            Ok(b'\n' | b'\r') => Symbol::Break,
            Ok(b'\t') => Symbol::Byte(b' '),
            Ok(0..b' ') => Symbol::Nothing,
            Ok(byte) if byte.is_ascii() => Symbol::Byte(byte),
            _ => Symbol::Foreign,
        };
        Some((symbol, after))
    }

    fn hexadecimal(&self, range: Range<usize>) -> Option<u32> {
        let digits = self.source.get(range)?;
        digits.iter().try_fold(0, |code, &digit| Some(code * 16 + char::from(digit).to_digit(16)?))
    }

    /// `%2B`, `%252B`, …; only what can be part of a key, a name or a quotation. Blanks, `&` and
    /// the like stay as they are, since in the value they are part of they do not end it.
    fn percent(&self, position: usize) -> (Symbol, usize) {
        let mut digits = position + 1;
        while self.slice_at(digits, 2) == Some(b"25")
            && self.hexadecimal(digits + 2..digits + 4).is_some()
        {
            digits += 2;
        }
        match self.hexadecimal(digits..digits + 2).and_then(|code| u8::try_from(code).ok()) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"+/=_.~:@-\"'".contains(&byte) => {
                (Symbol::Byte(byte), digits + 2)
            }
            _ => (Symbol::Plain, position + 1),
        }
    }

    fn slice_at(&self, position: usize, length: usize) -> Option<&[u8]> {
        self.source.get(position..position + length)
    }

    /// The position after control bytes; a log that was cut ends with thousands of them.
    fn after_controls(&self, position: usize) -> usize {
        let is_control = |byte: &u8| *byte < b' ' && !matches!(*byte, b'\n' | b'\t' | b'\r' | 0x1B);
        position + self.source[position..].iter().take_while(|byte| is_control(byte)).count()
    }

    /// Colours and cursor movements: ESC, `[`, parameters, a letter.
    fn after_terminal_sequence(&self, position: usize) -> usize {
        if self.at(position + 1) != b'[' {
            return position + 1;
        }
        let parameters = &self.source[position + 2..];
        let length = parameters.iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
        position + 2 + length + usize::from(length < parameters.len())
    }

    /// Quotation marks of other locales, invisible spaces, and the line breaks of Unicode.
    fn typographic(&self, position: usize) -> (Symbol, usize) {
        let after = position + 3;
        if self.at(position + 1) != 0x80 {
            return (Symbol::Plain, position + 1);
        }
        match self.at(position + 2) {
            0x98 | 0x99 => (Symbol::Byte(b'\''), after),
            0x9C | 0x9D => (Symbol::Byte(b'"'), after),
            0x8B..=0x8D => (Symbol::Nothing, after),
            0xA8 | 0xA9 => (Symbol::Break, after),
            _ => (Symbol::Plain, position + 1),
        }
    }
}

/// Whether a byte of `block` is a control byte that logs do not have.
fn has_oddity(block: &[u8]) -> bool {
    let is_odd = |byte: u8| byte < b' ' && !matches!(byte, b'\n' | b'\t' | b'\r' | 0x1B);
    block.iter().fold(false, |any, &byte| any | is_odd(byte))
}
