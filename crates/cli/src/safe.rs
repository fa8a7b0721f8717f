//! Makes text of other programs safe for a terminal.

use serde_json::Value;

/// One line, without characters that move the cursor, change colours or reverse the text.
pub(crate) fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in bringup_diagnosis::lines::clean(text).chars() {
        if letter.is_control() {
            safe.push(' ');
        } else if !reorders(letter) {
            safe.push(letter);
        }
    }
    safe
}

/// Makes every text in an answer safe, before any other function uses it.
pub(crate) fn scrub(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(|one| one.is_control() || reorders(one)) => {
            *text = line(text);
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::Object(fields) => fields.values_mut().for_each(scrub),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Invisible characters that change the order or the look of others.
fn reorders(letter: char) -> bool {
    matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_is_left() {
        assert_eq!(line("a\u{1b}[2Jb\u{9b}31mc\r\nd\u{7}\u{202e}e\tf"), "abc de f");
        assert_eq!(line("plain ‘quotes’ 失敗"), "plain ‘quotes’ 失敗");
    }

    #[test]
    fn every_text_of_an_answer_is_made_safe() {
        let mut answer = serde_json::json!({ "a": ["x\u{1b}[1my", 3], "b": { "c": "\u{202e}z" } });
        scrub(&mut answer);
        assert_eq!(answer, serde_json::json!({ "a": ["xy", 3], "b": { "c": "z" } }));
    }
}
