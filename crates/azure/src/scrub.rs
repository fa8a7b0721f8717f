//! Removes secrets that Azure's responses may contain, and that errors and log lines must not: signatures in
//! URLs, and tokens.

/// Removes signatures and tokens from a text. Unknown secrets stay: this is the last safeguard for error
/// messages, not the redaction of evidence.
pub(crate) fn scrub(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, secret)) = next_secret(rest) {
        clean.push_str(&rest[..at]);
        clean.push_str("[hidden]");
        rest = &rest[at + secret..];
    }
    clean.push_str(rest);
    clean
}

/// The position and the length of the first secret.
fn next_secret(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    (0..bytes.len()).filter(|at| text.is_char_boundary(*at)).find_map(|at| {
        let rest = &text[at..];
        if let Some(prefix) = ["sig=", "Bearer "].into_iter().find(|prefix| {
            rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        }) {
            let value = &rest[prefix.len()..];
            let length = value.find(ends_secret).unwrap_or(value.len());
            return (length > 0).then_some((at + prefix.len(), length));
        }
        // A JSON web token starts with the encoding of a JSON object, which is always this.
        let token = rest.starts_with("eyJ").then(|| rest.find(ends_token).unwrap_or(rest.len()))?;
        (token > 16).then_some((at, token))
    })
}

fn ends_secret(character: char) -> bool {
    character.is_whitespace() || matches!(character, '&' | '"' | '\'' | '<' | '>' | ',' | ';' | ')')
}

fn ends_token(character: char) -> bool {
    !(character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_and_tokens_are_hidden_and_the_rest_stays() {
        for (text, clean) in [
            ("nothing here", "nothing here"),
            (
                "GET https://h/b?sv=1&sig=aB%2F3%3D&se=2 failed",
                "GET https://h/b?sv=1&sig=[hidden]&se=2 failed",
            ),
            ("'SIG=abc' and sig=def", "'SIG=[hidden]' and sig=[hidden]"),
            ("authorization: bearer abc.def", "authorization: bearer [hidden]"),
            ("token eyJhbGciOiJSUzI1NiJ9.e30.abc!", "token [hidden]!"),
            ("über sig=", "über sig="),
        ] {
            assert_eq!(scrub(text), clean);
        }
    }
}
