//! Parses JSON strictly; an error names the line, the column and the field.
//!
//! Values are never quoted: a configuration contains secrets, and a secret in the wrong place must not appear
//! in a message.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::notice::{Notable, Notice, Refused, shown};

/// The deepest nesting that is accepted. The contract needs six levels.
const DEEPEST: usize = 64;

/// The name of a member, and its position.
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Key {
    pub(crate) fn shown(&self) -> String {
        shown(&self.text)
    }
}

/// A text, and the position up to which it is read.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    path: Vec<Cow<'static, str>>,
    notices: Vec<Notice>,
}

impl<'a> Reader<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Self, Refused> {
        let reader = |text| Self { text, at: 0, depth: 0, path: Vec::new(), notices: Vec::new() };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(reader(text)),
            Err(error) => {
                let (valid, _) = bytes.split_at(error.valid_up_to());
                let text = std::str::from_utf8(valid).unwrap_or_default();
                Err(reader(text).refuse(text.len(), "not UTF-8"))
            }
        }
    }

    /// Checks that only white space is left; returns the notices.
    pub(crate) fn end(mut self) -> Result<Vec<Notice>, Refused> {
        match self.next()? {
            None => Ok(self.notices),
            Some(_) => Err(self.refuse(self.at, "more text behind the end of the configuration")),
        }
    }

    pub(crate) fn descend(&mut self, name: impl Into<Cow<'static, str>>) {
        self.path.push(name.into());
    }

    pub(crate) fn ascend(&mut self) {
        self.path.pop();
    }

    pub(crate) fn note(&mut self, what: Notable) {
        self.notices.push(Notice { field: self.path.join("."), what });
    }

    pub(crate) fn refuse(&self, at: usize, what: impl Into<Cow<'static, str>>) -> Refused {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Refused {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: what.into(),
            field: self.path.join("."),
        }
    }

    /// The next byte after white space.
    fn next(&mut self) -> Result<Option<u8>, Refused> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest.iter().take_while(blank).count();
        let next = self.text.as_bytes().get(self.at).copied();
        match next {
            Some(0xef) if self.text[self.at..].starts_with('\u{feff}') => {
                Err(self.refuse(self.at, "a byte order mark; write UTF-8 without it"))
            }
            other => Ok(other),
        }
    }

    fn ended(&self) -> Refused {
        self.refuse(self.text.len(), "unexpected end of input")
    }

    /// An error that names the expected and the found value.
    fn unexpected(&mut self, wanted: &str) -> Refused {
        let found = match self.next() {
            Err(refused) => return refused,
            Ok(None) => return self.ended(),
            Ok(Some(b'"')) => "a string",
            Ok(Some(b'{')) => "an object",
            Ok(Some(b'[')) => "an array",
            Ok(Some(b'-' | b'0'..=b'9')) => "a number",
            Ok(Some(_)) => match &self.text[self.at..] {
                rest if rest.starts_with("true") || rest.starts_with("false") => "a bool",
                rest if rest.starts_with("null") => "null",
                _ => "something else",
            },
        };
        self.refuse(self.at, format!("expected {wanted}, found {found}"))
    }

    fn expect(&mut self, byte: u8, wanted: &str) -> Result<(), Refused> {
        if self.next()? == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(wanted))
    }

    fn word(&mut self, word: &str) -> Result<bool, Refused> {
        self.next()?;
        let rest = &self.text[self.at..];
        let whole = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
        let there = rest.strip_prefix(word).is_some_and(whole);
        if there {
            self.at += word.len();
        }
        Ok(there)
    }

    /// Consumes `null`, if it is next.
    pub(crate) fn null(&mut self) -> Result<bool, Refused> {
        self.word("null")
    }

    pub(crate) fn truth(&mut self) -> Result<bool, Refused> {
        if self.word("true")? {
            return Ok(true);
        }
        if self.word("false")? { Ok(false) } else { Err(self.unexpected("true or false")) }
    }

    /// Whether a text is next.
    pub(crate) fn at_text(&mut self) -> Result<bool, Refused> {
        Ok(self.next()? == Some(b'"'))
    }

    pub(crate) fn text(&mut self) -> Result<String, Refused> {
        self.expect(b'"', "a string")?;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|next: char| matches!(next, '"' | '\\') || next < ' ');
            let Some(plain) = plain else { return Err(self.ended()) };
            text.push_str(&rest[..plain]);
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => text.push(self.escape()?),
                _ => return Err(self.refuse(self.at, "a control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Refused> {
        let start = self.at;
        let Some(next) = self.text.as_bytes().get(start + 1) else { return Err(self.ended()) };
        self.at += 2;
        Ok(match next {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(*next),
            b'u' => {
                let first = self.unit(start)?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    units.push(self.unit(start)?);
                }
                match String::from_utf16(&units).ok().and_then(|text| text.chars().next()) {
                    // No variable and no file of the scripts can contain a NUL character.
                    Some('\0') => return Err(self.refuse(start, "a NUL character in a string")),
                    Some(character) => character,
                    None => return Err(self.refuse(start, "half a character in a string")),
                }
            }
            _ => return Err(self.refuse(start, "an unknown escape in a string")),
        })
    }

    fn unit(&mut self, start: usize) -> Result<u16, Refused> {
        let Some(digits) = self.text.as_bytes().get(self.at..self.at + 4) else {
            return Err(self.ended());
        };
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u16::from_str_radix(digits, 16) {
            Ok(unit) if hex => {
                self.at += 4;
                Ok(unit)
            }
            _ => Err(self.refuse(start, "an unknown escape in a string")),
        }
    }

    /// A number, or a text that contains a number: its position and its digits.
    fn numeral(&mut self, wanted: &str) -> Result<(usize, String), Refused> {
        let next = self.next()?;
        let start = self.at;
        if next == Some(b'"') {
            return Ok((start, self.text()?));
        }
        if !matches!(next, Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected(wanted));
        }
        let rest = &self.text[start..];
        let part = |next: char| next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.');
        let numeral = &rest[..rest.find(|next| !part(next)).unwrap_or(rest.len())];
        self.at += numeral.len();
        if !is_numeral(numeral) {
            return Err(self.refuse(start, "a number that JSON does not know"));
        }
        Ok((start, numeral.to_owned()))
    }

    pub(crate) fn whole_number(&mut self) -> Result<i32, Refused> {
        let (start, numeral) = self.numeral("a whole number")?;
        if !is_numeral(&numeral) {
            return Err(self.refuse(start, "expected a whole number, found another string"));
        }
        // 1e2 and 100.0 are whole numbers, too.
        let number: f64 = numeral.parse().unwrap_or(f64::NAN);
        if number.fract() != 0.0 && number.is_finite() {
            return Err(self.refuse(start, "expected a whole number, found a fraction"));
        }
        if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
            return Err(self.refuse(start, "the number is out of range for 32 bits"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
        Ok(number as i32)
    }

    pub(crate) fn real_number(&mut self) -> Result<f64, Refused> {
        let (start, numeral) = self.numeral("a number")?;
        let quoted = self.text.as_bytes().get(start) == Some(&b'"');
        match numeral.as_str() {
            "NaN" if quoted => return Ok(f64::NAN),
            "Infinity" if quoted => return Ok(f64::INFINITY),
            "-Infinity" if quoted => return Ok(f64::NEG_INFINITY),
            numeral if !is_numeral(numeral) => {
                return Err(self.refuse(start, "expected a number, found another string"));
            }
            _ => {}
        }
        match numeral.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.refuse(start, "the number is out of range")),
        }
    }

    fn deeper(&mut self) -> Result<(), Refused> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.refuse(self.at, format!("nested deeper than {DEEPEST}")));
        }
        Ok(())
    }

    /// Parses an object; `each` parses the value after a key.
    pub(crate) fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, Key) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.expect(b'{', "an object")?;
        self.list(b'}', |reader| {
            if !reader.at_text()? {
                return Err(reader.unexpected("a key"));
            }
            let at = reader.at;
            let text = reader.text()?;
            reader.expect(b':', "`:` behind the key")?;
            each(reader, Key { text, at })
        })
    }

    /// Parses an array; `each` parses an element.
    pub(crate) fn elements(
        &mut self,
        each: impl FnMut(&mut Self) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.expect(b'[', "an array")?;
        self.list(b']', each)
    }

    fn list(
        &mut self,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.deeper()?;
        if self.next()? == Some(close) {
            self.at += 1;
        } else {
            loop {
                each(self)?;
                match self.next()? {
                    Some(b',') => self.at += 1,
                    Some(next) if next == close => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(self.unexpected("`,` or the end of the list")),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Parses a value and discards it. The value must still be valid JSON.
    pub(crate) fn skip(&mut self) -> Result<(), Refused> {
        match self.next()? {
            Some(b'{') => {
                let mut keys = BTreeSet::new();
                self.members(|reader, key| {
                    if !keys.insert(key.text) {
                        return Err(reader.refuse(key.at, "duplicate key"));
                    }
                    reader.skip()
                })
            }
            Some(b'[') => self.elements(Self::skip),
            Some(b'"') => self.text().map(drop),
            Some(b'-' | b'0'..=b'9') => self.numeral("a number").map(drop),
            _ if self.null()? => Ok(()),
            _ => self.truth().map(drop).map_err(|refused| match refused.what.as_ref() {
                "unexpected end of input" => refused,
                _ => self.refuse(self.at, "expected a value"),
            }),
        }
    }
}

/// Whether a text is a number in JSON: no leading zero or plus, digits on both sides of the point.
fn is_numeral(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|power| digits(power.strip_prefix(['+', '-']).unwrap_or(power)))
}
