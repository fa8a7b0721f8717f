//! What the rules found, and the text written without it.

use std::cmp::Reverse;
use std::ops::Range;

/// The beginning of every marker that stands for a secret.
pub(super) const MARKER: &[u8] = b"[redacted ";

/// A part of the text that has to go, and the rule that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strike {
    pub(super) range: Range<usize>,
    pub(super) rule: &'static str,
    /// A quotation mark of the text to put around the marker.
    pub(super) quote: Option<Range<usize>>,
}

/// A text without what was struck.
pub(super) struct Rendered {
    pub(super) text: String,
    /// Where the markers are.
    pub(super) markers: Vec<Range<usize>>,
    /// The rule of each marker.
    pub(super) rules: Vec<&'static str>,
}

/// Writes `text` without what is struck. Overlapping strikes become one, named after the first.
pub(super) fn render(text: &str, mut strikes: Vec<Strike>) -> Rendered {
    strikes.sort_by_key(|strike| (strike.range.start, Reverse(strike.range.end)));
    let mut output = String::with_capacity(text.len() + strikes.len() * 16);
    let (mut markers, mut rules) = (Vec::new(), Vec::new());
    let mut written = 0;
    let mut remaining = strikes.into_iter().peekable();
    while let Some(mut strike) = remaining.next() {
        while let Some(next) = remaining.next_if(|next| next.range.start <= strike.range.end) {
            strike.range.end = strike.range.end.max(next.range.end);
        }
        let start = text.floor_char_boundary(strike.range.start).max(written);
        let end = text.ceil_char_boundary(strike.range.end).max(start);
        output.push_str(&text[written..start]);
        let quote = strike.quote.and_then(|quote| text.get(quote)).unwrap_or_default();
        let marker = output.len();
        output.push_str(quote);
        write_marker(&mut output, strike.rule, &text[start..end], quote);
        markers.push(marker..output.len());
        rules.push(strike.rule);
        written = end;
    }
    output.push_str(&text[written..]);
    Rendered { text: output, markers, rules }
}

/// The marker, its closing quotation mark, then the line breaks of what it replaces.
fn write_marker(output: &mut String, rule: &str, secret: &str, quote: &str) {
    output.push_str("[redacted ");
    output.push_str(rule);
    output.push(']');
    output.push_str(quote);
    let mut previous = ' ';
    for character in secret.chars() {
        match (previous, character) {
            ('\r', '\n') => output.push_str("\r\n"),
            (_, '\n') => output.push('\n'),
            _ => {}
        }
        previous = character;
    }
}

#[cfg(test)]
mod tests {
    use super::{Strike, render};

    fn rendered(text: &str, ranges: &[(usize, usize)]) -> String {
        let strike = |&(start, end)| Strike { range: start..end, rule: "token", quote: None };
        render(text, ranges.iter().map(strike).collect()).text
    }

    #[test]
    fn line_breaks_inside_a_secret_stay() {
        assert_eq!(rendered("a b\r\n c\nd e", &[(2, 9)]), "a [redacted token]\r\n\n e");
    }

    #[test]
    fn overlapping_strikes_become_one() {
        assert_eq!(rendered("abcdef", &[(3, 5), (1, 4), (1, 2)]), "a[redacted token]f");
    }

    #[test]
    fn a_character_is_never_split() {
        assert_eq!(rendered("aéb", &[(2, 4)]), "a[redacted token]");
    }
}
