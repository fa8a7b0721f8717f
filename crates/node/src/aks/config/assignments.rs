//! The variables that a ready-made command sets, read without running it.

use std::collections::BTreeMap;

/// The variables that a shell text sets: name and value. The value is `None` if only a shell could evaluate
/// it.
pub(crate) fn read(text: &str) -> BTreeMap<String, Option<String>> {
    words(text).into_iter().filter_map(Word::assignment).collect()
}

/// A word of a shell text.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// The number of leading bytes that were not quoted.
    plain: usize,
    quoted: bool,
    /// The word contains something that a shell would expand.
    expanded: bool,
}

impl Word {
    fn push(&mut self, character: char) {
        self.text.push(character);
        if !self.quoted {
            self.plain = self.text.len();
        }
    }

    fn assignment(self) -> Option<(String, Option<String>)> {
        let (name, value) = self.text.split_once('=')?;
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let named = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(word)
            && self.plain > name.len();
        named.then(|| (name.to_owned(), (!self.expanded).then(|| value.to_owned())))
    }
}

/// Splits a text into words like a shell, as far as assignments need it.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut characters = text.chars().peekable();
    let mut inside: Option<char> = None;
    while let Some(character) = characters.next() {
        match (inside, character) {
            (None, '\'' | '"') => {
                inside = Some(character);
                word.quoted = true;
            }
            (Some(quote), _) if character == quote => inside = None,
            (Some('\''), _) => word.push(character),
            (Some(_), '\\') => match characters.peek() {
                Some('"' | '\\' | '$' | '`') => word.push(characters.next().unwrap_or_default()),
                _ => word.push('\\'),
            },
            (None, '\\') => {
                word.quoted = true;
                // A backslash at the end of a line joins the line to the next one.
                match characters.next() {
                    Some('\n') | None => {}
                    Some(next) => word.push(next),
                }
            }
            (_, '$' | '`') => {
                word.expanded = true;
                word.push(character);
            }
            (None, ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') => {
                words.push(std::mem::take(&mut word));
            }
            (_, _) => word.push(character),
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_a_shell_reads_them() {
        let text = "O=\"/a b\"; export A=plain B='it''s $x' C=\"a\\\"b\\\\c\" D= E=a\\ b\nF=\"x\"y'z' bash -c \"G=1 run\"";
        for (name, wanted) in [
            ("O", "/a b"),
            ("A", "plain"),
            ("B", "its $x"),
            ("C", "a\"b\\c"),
            ("D", ""),
            ("E", "a b"),
            ("F", "xyz"),
        ] {
            assert_eq!(read(text)[name].as_deref(), Some(wanted), "{name}");
        }
        assert!(!read(text).contains_key("G"));
    }

    #[test]
    fn what_only_a_shell_can_tell_is_not_told() {
        assert_eq!(read("A=$(date) B=x")["A"], None);
        assert_eq!(read("A=\"${B}\"")["A"], None);
        assert!(read("'A=1' --flag=2 1A=3").is_empty());
    }
}
