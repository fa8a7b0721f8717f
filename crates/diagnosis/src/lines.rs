//! Lines of evidence. Text comes escaped, once or several times, and then a line break is two or
//! more characters; here it is a line break again, and every line knows where it stood.

use std::borrow::Cow;

use crate::terminal;

const BACKSPACE: char = '\u{8}';

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line of the input it stands in, from 1.
    pub number: usize,
    /// The text, unescaped.
    pub text: Cow<'a, str>,
}

/// The longest line, in bytes: the most that bringup-node prints in one. A longer one is read as
/// several lines with one number, so that what is done for each line of a text is bounded.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Splits a text into lines, at line breaks and at escaped ones.
pub fn split(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (index, raw) in text.split('\n').enumerate() {
        if is_escaped(raw) {
            unescape(raw, index + 1, &mut lines);
        } else {
            let parts = bounded(raw).map(|part| Line { number: index + 1, text: part.into() });
            lines.extend(parts);
        }
    }
    join_windows_result(&mut lines);
    lines
}

/// Windows breaks its result at the width of a console, in the middle of words. The whole of it
/// is added as one more line behind it, so that what was torn apart can be found.
fn join_windows_result(lines: &mut Vec<Line<'_>>) {
    let Some(first) = lines.iter().position(|line| line.text.contains("ExitCode: |")) else {
        return;
    };
    let number = lines[first].number;
    let mut whole = String::new();
    let mut last = first;
    for (index, line) in lines.iter().enumerate().skip(first).take(12) {
        if line.text.starts_with("At C:") {
            break;
        }
        whole.push_str(&line.text);
        last = index;
        let error = whole.find("Error: |").map(|at| &whole[at + "Error: |".len()..]);
        if error.is_some_and(|error| error.contains('|')) {
            break;
        }
    }
    whole.truncate(whole.floor_char_boundary(LONGEST));
    lines.insert(last + 1, Line { number, text: Cow::Owned(whole) });
}

/// The parts of a line, none longer than [`LONGEST`]; of an empty one, none.
pub(crate) fn bounded(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(LONGEST));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Whether `\n` in a line is a line break: there is one, and the line looks like JSON or like a
/// message out of JSON.
fn is_escaped(line: &str) -> bool {
    line.contains("\\n")
        && ["\\\"", "\":", "\" :", "[std", "Message=", "=>\"", "message"]
            .iter()
            .any(|mark| line.contains(mark))
}

fn unescape(raw: &str, number: usize, lines: &mut Vec<Line<'_>>) {
    let mut push = |text: String| {
        if text.len() <= LONGEST && !text.is_empty() {
            lines.push(Line { number, text: Cow::Owned(text) });
        } else {
            let parts = bounded(&text).map(|part| Line { number, text: part.to_owned().into() });
            lines.extend(parts);
        }
    };
    let mut current = String::new();
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        current.push_str(&rest[..at]);
        let run = rest[at..].chars().take_while(|character| *character == '\\').count();
        let after = &rest[at + run..];
        let mut letters = after.chars();
        match letters.next() {
            Some('n') => {
                push(std::mem::take(&mut current));
                rest = letters.as_str();
            }
            Some('r') => rest = letters.as_str(),
            Some('t') => {
                current.push('\t');
                rest = letters.as_str();
            }
            Some(quote @ ('"' | '\'')) => {
                current.push(quote);
                rest = letters.as_str();
            }
            Some('u') if let Some(character) = unicode(letters.as_str()) => {
                current.push(character);
                rest = &letters.as_str()[4..];
            }
            _ => {
                current.push('\\');
                rest = after;
            }
        }
    }
    current.push_str(rest);
    push(current);
}

fn unicode(text: &str) -> Option<char> {
    let digits = text.get(..4)?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
        .filter(|character| !character.is_control())
}

/// A text without colours, carriage returns and other control characters. Its lines stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    let text = without_controls(text);
    if !text.contains('\r') {
        return text;
    }
    // A progress bar writes over itself; what it wrote are words of their own.
    Cow::Owned(text.trim_end_matches('\r').replace('\r', " "))
}

/// A text without colours and control characters, and without the carriage returns that end a line.
/// Other carriage returns stay.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    // Rare ones are looked for all at once, which a compiler makes fast; common ones by a search.
    let is_rare = |byte: u8| {
        (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x07 | 0)) || byte == 0x7f
    };
    let text = if text.bytes().fold(false, |found, byte| found | is_rare(byte)) {
        let mut kept = String::with_capacity(text.len());
        for letter in text.chars() {
            if letter == BACKSPACE {
                // The next letter is written over the last one.
                if !kept.ends_with('\n') {
                    kept.pop();
                }
            } else if !u8::try_from(letter).is_ok_and(is_rare) {
                kept.push(letter);
            }
        }
        Cow::Owned(kept)
    } else {
        Cow::Borrowed(text)
    };
    let bytes = text.as_bytes();
    let has_odd = memchr::memchr(0x07, bytes).is_some()
        || memchr::memchr_iter(terminal::C1, bytes).any(|at| is_c1(bytes, at));
    if !has_odd && memchr::memchr3(b'\r', 0x1b, 0, bytes).is_none() {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut start = 0;
    while let Some(at) = next_control(bytes, start, has_odd) {
        clean.push_str(&text[start..at]);
        start = match bytes[at] {
            0 | 0x07 => at + 1,
            b'\r' => {
                let returns = bytes[at..].iter().take_while(|byte| **byte == b'\r').count();
                let ends_line = bytes.get(at + returns) == Some(&b'\n');
                if !ends_line {
                    clean.push('\r');
                }
                at + returns
            }
            _ => text.ceil_char_boundary(terminal::after_sequence(bytes, at)),
        };
    }
    clean.push_str(&text[start..]);
    Cow::Owned(clean)
}

/// Where the next character is that does not stay. Bells and what is beyond ASCII are odd.
fn next_control(text: &[u8], from: usize, has_odd: bool) -> Option<usize> {
    if !has_odd {
        return memchr::memchr3(b'\r', 0x1b, 0, &text[from..]).map(|at| from + at);
    }
    let is_control = |at: &usize| matches!(text[*at], b'\r' | 0x1b | 0 | 0x07) || is_c1(text, *at);
    (from..text.len()).find(is_control)
}

/// Whether a control character beyond ASCII is at `position`.
fn is_c1(text: &[u8], position: usize) -> bool {
    text[position] == terminal::C1 && matches!(text.get(position + 1), Some(0x80..=0x9f))
}

/// The form in which texts are compared: lower case, one kind of quote.
pub fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    push_normal(text, &mut normal);
    normal
}

/// Adds the form in which a text is compared.
pub(crate) fn push_normal(text: &str, normal: &mut String) {
    if text.is_ascii() {
        let start = normal.len();
        normal.push_str(text);
        let added = &mut normal[start..];
        added.make_ascii_lowercase();
        if !added.contains(['"', '`']) {
            return;
        }
        normal.truncate(start);
    }
    normal.extend(text.chars().map(|character| match character {
        '‘' | '’' | '"' | '`' | '“' | '”' => '\'',
        character => character.to_ascii_lowercase(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        split(&clean(text)).into_iter().map(|line| (line.number, line.text.into_owned())).collect()
    }

    #[test]
    fn escaped_line_breaks_are_line_breaks_and_keep_the_number_of_their_line() {
        let text = "first\r\n{ \"Output\": \"one\\ntwo \\\"quoted\\\"\\nthree\" }";
        let lines = texts(text);
        assert_eq!(lines[0], (1, "first".to_owned()));
        assert_eq!(lines[2], (2, "two \"quoted\"".to_owned()));
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn deeper_escapes_are_undone_as_well() {
        let lines = texts(r#""message": "\\\"Enable failed\\n[stdout]\\\\nline""#);
        assert_eq!(lines.last().unwrap().1, "line\"");
    }

    #[test]
    fn a_path_with_a_backslash_is_left_alone() {
        assert_eq!(texts(r"C:\new\tools"), [(1, r"C:\new\tools".to_owned())]);
    }

    #[test]
    fn colours_and_nul_tails_are_no_text() {
        assert_eq!(texts("\u{1b}[0;31merror\u{1b}[0m: x\0\0\0"), [(1, "error: x".to_owned())]);
        assert_eq!(texts("10 %\r20 %\r\nb"), [(1, "10 % 20 %".to_owned()), (2, "b".to_owned())]);
        assert_eq!(texts("a\n\nb").last().unwrap().0, 3);
        assert_eq!(
            texts("a\u{1b}(Bb\u{9b}1mc\u{1b}]8;;http://x\u{7}d\r\r\n"),
            [(1, "abcd".to_owned())]
        );
    }

    #[test]
    fn a_windows_result_is_also_read_as_one() {
        let lines = texts(
            "ExitCode: |34|, Output: |X|, Error: |not enough sp\r\nace on the disk|\r\nAt C:\\Azur...",
        );
        assert_eq!(
            lines[2].1,
            "ExitCode: |34|, Output: |X|, Error: |not enough space on the disk|"
        );
    }

    #[test]
    fn a_line_longer_than_any_is_read_as_several_with_one_number() {
        let text = format!("a\n{}\nz", "é".repeat(LONGEST));
        let lines = texts(&text);
        let long: Vec<&(usize, String)> = lines.iter().filter(|(number, _)| *number == 2).collect();
        assert_eq!(long.len(), 2);
        assert!(long.iter().all(|(_, text)| text.len() == LONGEST));
        assert_eq!(lines.last(), Some(&(3, "z".to_owned())));
        let escaped = format!("\"message\": \"{}\\nend\"", "x".repeat(3 * LONGEST));
        assert!(texts(&escaped).iter().all(|(number, text)| *number == 1 && text.len() <= LONGEST));
    }

    #[test]
    fn quotes_are_one_and_letters_small() {
        assert_eq!(normal("Failed to run command ‘Oras’"), "failed to run command 'oras'");
    }
}
