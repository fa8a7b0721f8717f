//! Control sequences of terminals: colours, cursor movements, character sets, titles, hyperlinks.

/// The longest title or address within a sequence. A longer one was cut or is none.
const LONGEST_STRING: usize = 1024;

const ESCAPE: u8 = 0x1B;
const BELL: u8 = 0x07;

/// The first byte in UTF-8 of the control characters beyond ASCII, U+0080 to U+009F.
pub(crate) const C1: u8 = 0xC2;

/// The position after the sequence that begins at `start` with ESC or with a control character
/// beyond ASCII. At least one character is passed.
pub(crate) fn after_sequence(text: &[u8], start: usize) -> usize {
    let at = |position: usize| text.get(position).copied().unwrap_or(0);
    let (kind, body) = match (at(start), at(start + 1)) {
        (ESCAPE, kind) => (kind, start + 2),
        // The same functions as one character: U+009B is `ESC [`.
        (_, kind) => (kind.wrapping_sub(0x40), start + 2),
    };
    match kind {
        b'[' => after_parameters(text, body),
        b']' | b'P' | b'X' | b'^' | b'_' => after_string(text, body).unwrap_or(body),
        b' '..=b'/' => {
            let more = text.get(body..).unwrap_or_default();
            let length = more.iter().take(4).take_while(|byte| matches!(byte, b' '..=b'/')).count();
            text.len().min(body + length + 1)
        }
        b'0'..=b'~' => body,
        _ if at(start) == ESCAPE => start + 1,
        _ => body,
    }
}

/// Parameters, then a letter.
fn after_parameters(text: &[u8], body: usize) -> usize {
    let parameters = text.get(body..).unwrap_or_default();
    let length = parameters.iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
    body + length + usize::from(length < parameters.len())
}

/// A text that ends with BEL or `ESC \`, on the same line.
fn after_string(text: &[u8], body: usize) -> Option<usize> {
    let string = text.get(body..)?;
    let string = &string[..string.len().min(LONGEST_STRING)];
    let end = string.iter().position(|byte| matches!(*byte, BELL | ESCAPE | b'\n'))?;
    match (string[end], string.get(end + 1)) {
        (BELL, _) => Some(body + end + 1),
        (ESCAPE, Some(b'\\')) => Some(body + end + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::after_sequence;

    #[test]
    fn sequences_end_where_a_terminal_ends_them() {
        for sequence in [
            "\u{1b}[31m",
            "\u{1b}[m",
            "\u{1b}(B",
            "\u{1b}]8;;http://x\u{7}",
            "\u{1b}]0;title\u{1b}\\",
            "\u{1b}7",
            "\u{9b}1;31m",
            "\u{9d}0;title\u{7}",
            "\u{85}",
        ] {
            let text = format!("{sequence}word");
            assert_eq!(after_sequence(text.as_bytes(), 0), sequence.len(), "{sequence:?}");
        }
        assert_eq!(after_sequence(b"\x1b", 0), 1);
        assert_eq!(after_sequence(b"\x1b]never ends", 0), 2);
    }
}
