//! Entities of HTML and XML that can stand around or inside a secret.

/// Entities by name, with their semicolon.
const NAMED: [(&[u8], u8); 7] = [
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&nbsp;", b' '),
    (b"&equals;", b'='),
];

/// The most digits of an entity by number: `&#00034;`.
const MOST_DIGITS: usize = 6;

/// How often a text is encoded, at most.
const MOST_LEVELS: usize = 4;

/// The character that the entity at `position` stands for, and the position after it.
///
/// Text may be encoded more than once: `&amp;quot;` is a quotation mark as well.
pub(super) fn at(source: &[u8], position: usize) -> Option<(u8, usize)> {
    const AMPERSAND: &[u8] = b"amp;";
    let rest = &source[position..];
    let mut start = 1;
    while start <= MOST_LEVELS * AMPERSAND.len() && rest[start..].starts_with(AMPERSAND) {
        start += AMPERSAND.len();
    }
    match body(&rest[start..]) {
        Some((byte, length)) => Some((byte, position + start + length)),
        None if start > 1 => Some((b'&', position + start)),
        None => None,
    }
}

/// What an entity without its `&` stands for, and how long it is.
fn body(text: &[u8]) -> Option<(u8, usize)> {
    let named = NAMED.iter().find(|(name, _)| text.starts_with(&name[1..]));
    if let Some((name, byte)) = named {
        return Some((*byte, name.len() - 1));
    }
    let (radix, digits) = match text {
        [b'#', b'x' | b'X', ..] => (16, 2),
        [b'#', ..] => (10, 1),
        _ => return None,
    };
    let near = &text[digits..text.len().min(digits + MOST_DIGITS + 1)];
    let length = memchr::memchr(b';', near).filter(|length| *length > 0)?;
    let code = near[..length]
        .iter()
        .try_fold(0_u32, |code, digit| Some(code * radix + char::from(*digit).to_digit(radix)?))?;
    let byte = u8::try_from(code).ok().filter(|byte| matches!(byte, b' '..=b'~'))?;
    Some((byte, digits + length + 1))
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn entities_are_read_by_name_by_number_and_encoded_twice() {
        for (text, expected) in [
            ("&quot;x", Some((b'"', 6))),
            ("&amp;x", Some((b'&', 5))),
            ("&amp;quot;x", Some((b'"', 10))),
            ("&amp;amp;lt;", Some((b'<', 12))),
            ("&#34;", Some((b'"', 5))),
            ("&#x3D;", Some((b'=', 6))),
            ("&#10;", None),
            ("&sig=1", None),
            ("&", None),
        ] {
            assert_eq!(at(text.as_bytes(), 0), expected, "{text}");
        }
    }
}
