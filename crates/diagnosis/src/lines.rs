//! Lines of evidence. Text comes escaped, once or several times, and then a line break is two or
//! more characters; here it is a line break again, and every line knows where it stood.

use std::borrow::Cow;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line of the input it stands in, from 1.
    pub number: usize,
    /// The text, unescaped.
    pub text: Cow<'a, str>,
}

/// Splits a text into lines, at line breaks and at escaped ones.
pub fn split(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (index, raw) in text.split('\n').enumerate() {
        if is_escaped(raw) {
            unescape(raw, index + 1, &mut lines);
        } else if !raw.is_empty() {
            lines.push(Line { number: index + 1, text: Cow::Borrowed(raw) });
        }
    }
    join_windows_result(&mut lines);
    lines
}

/// Windows breaks its result at the width of a console, in the middle of words. The whole of it
/// is added as one more line, so that what was torn apart can be found.
fn join_windows_result(lines: &mut Vec<Line<'_>>) {
    let Some(first) = lines.iter().position(|line| line.text.contains("ExitCode: |")) else {
        return;
    };
    let number = lines[first].number;
    let wrapped = lines[first..].iter().take(12);
    let whole: String = wrapped
        .take_while(|line| !line.text.starts_with("At C:"))
        .map(|line| line.text.as_ref())
        .collect();
    lines.push(Line { number, text: Cow::Owned(whole) });
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
        if !text.is_empty() {
            lines.push(Line { number, text: Cow::Owned(text) });
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
    // Rare ones are looked for all at once, which a compiler makes fast; common ones by a search.
    let is_rare = |byte: u8| {
        (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0)) || byte == 0x7f
    };
    let text = if text.bytes().fold(false, |found, byte| found | is_rare(byte)) {
        let kept = |letter: &char| !letter.is_ascii() || !u8::try_from(*letter).is_ok_and(is_rare);
        Cow::Owned(text.chars().filter(kept).collect::<String>())
    } else {
        Cow::Borrowed(text)
    };
    if memchr::memchr3(b'\r', 0x1b, 0, text.as_bytes()).is_none() {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = memchr::memchr3(b'\r', 0x1b, 0, rest.as_bytes()) {
        clean.push_str(&rest[..at]);
        let mut after = rest[at..].chars();
        match after.next() {
            Some('\u{1b}') => skip_escape(&mut after),
            // A progress bar writes over itself; what it wrote are words of their own.
            Some('\r') if !after.as_str().is_empty() && !after.as_str().starts_with('\n') => {
                clean.push(' ');
            }
            _ => {}
        }
        rest = after.as_str();
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// `ESC [ … letter`, or one character.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    if rest.next() == Some('[') {
        rest.by_ref().find(|character| ('@'..='~').contains(character));
    }
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
    }

    #[test]
    fn a_windows_result_is_also_read_as_one() {
        let lines = texts(
            "ExitCode: |34|, Output: |X|, Error: |not enough sp\r\nace on the disk|\r\nAt C:\\Azur...",
        );
        assert_eq!(
            lines.last().unwrap().1,
            "ExitCode: |34|, Output: |X|, Error: |not enough space on the disk|"
        );
    }

    #[test]
    fn quotes_are_one_and_letters_small() {
        assert_eq!(normal("Failed to run command ‘Oras’"), "failed to run command 'oras'");
    }
}
