//! The symbols of a text: what one escape, control byte or line break stands for.

use std::ops::Range;

use super::entity;
use crate::redaction::OVER_BUDGET;
use crate::redaction::rules::RULES;
use crate::redaction::strikes::MARKER;
use crate::terminal;

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
    /// The end of the character before it: the next one is written in its place.
    Erase,
    /// The end of a line.
    Break,
}

/// Reads symbols out of a source.
#[expect(clippy::struct_excessive_bools, reason = "each says that a search can be left out")]
pub(super) struct Reader<'a> {
    source: &'a [u8],
    has_clixml: bool,
    has_markers: bool,
    has_entities: bool,
    /// Whether letters could be written as others that look alike.
    has_disguises: bool,
    /// Whether bytes are special that [`Reader::next_frequent`] and [`Reader::next_rare`] miss.
    has_oddities: bool,
    /// Where the next backslash, line feed or percent is, or a position before the last one asked.
    frequent: usize,
    /// The same for carriage returns, escape sequences and typographic marks.
    rare: usize,
}

const BACKSPACE: u8 = 0x08;

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
        let has_entities =
            memchr::memchr_iter(b'&', source).any(|at| entity::at(source, at).is_some());
        let has_disguises = !source.is_ascii() && source.iter().any(|byte| is_disguise(*byte));
        let has_oddities = has_clixml
            || has_markers
            || has_entities
            || has_disguises
            || source.chunks(BLOCK).any(has_oddity);
        let mut reader = Self {
            source,
            has_clixml,
            has_markers,
            has_entities,
            has_disguises,
            has_oddities,
            frequent: 0,
            rare: 0,
        };
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
            || byte == 0x7F
            || matches!(byte, terminal::C1 | 0xE2 | 0xEF)
            || self.has_disguises && is_disguise(byte)
            || (self.has_entities && byte == b'&')
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
            b'\n' => (Symbol::Break, position + 1),
            b'\r' => self.carriage_return(position),
            0x1B => (Symbol::Nothing, terminal::after_sequence(self.source, position)),
            0x7F => (Symbol::Nothing, position + 1),
            terminal::C1 => self.latin(position),
            0xCC | 0xCD => self.combining(position),
            0xD0 | 0xD1 => self.cyrillic(position),
            0xF0 => self.mathematical(position),
            0xEF => self.full_width(position),
            b'&' => match entity::at(self.source, position) {
                Some((byte, after)) => (Symbol::Byte(byte), after),
                None => (Symbol::Plain, position + 1),
            },
            b'\t' => (Symbol::Plain, position + 1),
            BACKSPACE => (Symbol::Erase, position + 1),
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

    /// Before a line feed it is part of the break. Alone it moves the cursor, and what stands on both
    /// sides may be one word.
    fn carriage_return(&self, position: usize) -> (Symbol, usize) {
        let returns = self.source[position..].iter().take(8).take_while(|byte| **byte == b'\r');
        let after = position + returns.count();
        if self.at(after) == b'\n' { (Symbol::Break, after + 1) } else { (Symbol::Nothing, after) }
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
        let is_control =
            |byte: &u8| *byte < b' ' && !matches!(*byte, b'\n' | b'\t' | b'\r' | BACKSPACE | 0x1B);
        position + self.source[position..].iter().take_while(|byte| is_control(byte)).count()
    }

    /// Control characters beyond ASCII, the soft hyphen and the space that does not break.
    fn latin(&self, position: usize) -> (Symbol, usize) {
        match self.at(position + 1) {
            0x80..=0x9F => (Symbol::Nothing, terminal::after_sequence(self.source, position)),
            0xA0 => (Symbol::Byte(b' '), position + 2),
            0xAD => (Symbol::Nothing, position + 2),
            _ => (Symbol::Plain, position + 1),
        }
    }

    /// Marks over the letter before them.
    fn combining(&self, position: usize) -> (Symbol, usize) {
        let is_mark = match self.at(position) {
            0xCC => self.at(position + 1) >= 0x80,
            _ => (0x80..=0xAF).contains(&self.at(position + 1)),
        };
        let is_over_letter =
            position.checked_sub(1).is_some_and(|before| self.at(before).is_ascii_alphabetic());
        if is_mark && is_over_letter {
            (Symbol::Nothing, position + 2)
        } else {
            (Symbol::Plain, position + 1)
        }
    }

    /// Cyrillic letters that look like Latin ones, beside a Latin one: no language mixes them.
    fn cyrillic(&self, position: usize) -> (Symbol, usize) {
        const ALIKE: [(u8, u8, u8); 12] = [
            (0xD0, 0xB0, b'a'),
            (0xD0, 0xB5, b'e'),
            (0xD0, 0xBE, b'o'),
            (0xD1, 0x80, b'p'),
            (0xD1, 0x81, b'c'),
            (0xD1, 0x83, b'y'),
            (0xD1, 0x85, b'x'),
            (0xD1, 0x95, b's'),
            (0xD1, 0x96, b'i'),
            (0xD1, 0x98, b'j'),
            (0xD0, 0x90, b'A'),
            (0xD0, 0x9E, b'O'),
        ];
        let (first, second) = (self.at(position), self.at(position + 1));
        let after = position + 2;
        let is_beside = self.at(after).is_ascii_alphabetic()
            || position.checked_sub(1).is_some_and(|before| self.at(before).is_ascii_alphabetic());
        let alike = ALIKE.iter().find(|(a, b, _)| (*a, *b) == (first, second));
        match alike.filter(|_| is_beside) {
            Some((.., letter)) => (Symbol::Byte(*letter), after),
            None => (Symbol::Plain, position + 1),
        }
    }

    /// Letters of mathematics, U+1D400 and following: alphabets of 52 letters, one after another.
    fn mathematical(&self, position: usize) -> (Symbol, usize) {
        let (third, fourth) = (self.at(position + 2), self.at(position + 3));
        if self.at(position + 1) != 0x9D || third < 0x90 {
            return (Symbol::Plain, position + 1);
        }
        let code = (u16::from(third & 0x3F) << 6 | u16::from(fourth & 0x3F)) - (0x10 << 6);
        let letter = match u8::try_from(code % 52).unwrap_or(0) {
            small @ 26.. => b'a' + (small - 26),
            capital => b'A' + capital,
        };
        if code < 52 * 13 {
            (Symbol::Byte(letter), position + 4)
        } else {
            (Symbol::Plain, position + 1)
        }
    }

    /// ASCII in letters as wide as Chinese ones, and the mark of byte order.
    fn full_width(&self, position: usize) -> (Symbol, usize) {
        let after = position + 3;
        match (self.at(position + 1), self.at(position + 2)) {
            (0xBC, last @ 0x81..=0xBF) => (Symbol::Byte(last - 0x60), after),
            (0xBD, last @ 0x80..=0x9E) => (Symbol::Byte(last - 0x20), after),
            (0xBB, 0xBF) => (Symbol::Nothing, after),
            _ => (Symbol::Plain, position + 1),
        }
    }

    /// Quotation marks of other locales, invisible spaces, and the line breaks of Unicode.
    fn typographic(&self, position: usize) -> (Symbol, usize) {
        let after = position + 3;
        if self.at(position + 1) == 0x81 && matches!(self.at(position + 2), 0xA0..=0xA4) {
            return (Symbol::Nothing, after);
        }
        if self.at(position + 1) != 0x80 {
            return (Symbol::Plain, position + 1);
        }
        match self.at(position + 2) {
            0x98 | 0x99 => (Symbol::Byte(b'\''), after),
            0x9C | 0x9D => (Symbol::Byte(b'"'), after),
            0x8B..=0x8F => (Symbol::Nothing, after),
            0xA8 | 0xA9 => (Symbol::Break, after),
            _ => (Symbol::Plain, position + 1),
        }
    }
}

/// Whether a byte begins a character that can be read as a Latin letter, or as a mark over one.
fn is_disguise(byte: u8) -> bool {
    matches!(byte, 0xCC | 0xCD | 0xD0 | 0xD1 | 0xF0)
}

/// Whether a byte of `block` is a control byte that logs do not have, or begins a character that is
/// read as another one.
fn has_oddity(block: &[u8]) -> bool {
    let is_odd = |byte: u8| {
        (byte < b' ' && !matches!(byte, b'\n' | b'\t' | b'\r' | 0x1B))
            || matches!(byte, 0x7F | terminal::C1 | 0xEF)
    };
    block.iter().fold(false, |any, &byte| any | is_odd(byte))
}
