//! Wraps text to 80 columns.

use unicode_width::UnicodeWidthStr as _;

/// The width of the output.
pub const COLUMNS: usize = 80;

/// Breaks a text into lines of at most [`COLUMNS`], each with the indent. A word that is wider than a line
/// gets a line of its own, unbroken, so that paths and names can be copied.
pub fn wrap(text: &str, indent: &str) -> String {
    hang(text, indent, indent)
}

/// Like [`wrap`], with another indent for the first line.
pub fn hang(text: &str, first: &str, rest: &str) -> String {
    let mut wrapped = first.to_owned();
    let (mut column, mut at_start) = (first.width(), true);
    for word in text.split_whitespace() {
        if !at_start && column + 1 + word.width() > COLUMNS {
            wrapped.push('\n');
            wrapped.push_str(rest);
            (column, at_start) = (rest.width(), true);
        }
        if !at_start {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += word.width();
        at_start = false;
    }
    wrapped.push('\n');
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_lost() {
        let text = "word ".repeat(100);
        let wrapped = wrap(&text, "    ");
        assert!(wrapped.lines().all(|line| line.width() <= COLUMNS && line.starts_with("    w")));
        assert_eq!(wrapped.matches("word").count(), 100);
    }

    #[test]
    fn the_first_line_may_begin_otherwise() {
        assert_eq!(hang("a b", "- ", "  "), "- a b\n");
        assert!(hang(&"abc ".repeat(30), "- ", "  ").lines().nth(1).unwrap().starts_with("  abc"));
    }
}
