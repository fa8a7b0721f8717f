//! Removes secrets from a stream that arrives in pieces. Bytes that may be the beginning of a secret are held
//! back until more bytes arrive.

use std::sync::Arc;

use crate::secrets::STRUCK;

/// Removes secrets from a stream.
#[derive(Debug, Clone)]
pub(super) struct Strainer {
    /// The secrets, the longest first.
    secrets: Arc<[Vec<u8>]>,
    /// Whether a secret begins with this byte.
    first: Arc<[bool; 256]>,
    held: Vec<u8>,
}

/// Whether the stream continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    /// More bytes may arrive.
    Comes,
    /// The stream has ended.
    Nothing,
}

/// The match at one position of a text.
enum There {
    /// No secret.
    Nothing,
    /// A secret of this many bytes.
    Secret(usize),
    /// The text ends here, perhaps within a secret.
    Beginning,
}

impl Strainer {
    /// `secrets` are sorted by length, the longest first.
    pub(super) fn of(secrets: &[String]) -> Self {
        let secrets: Vec<Vec<u8>> = secrets.iter().map(|one| one.as_bytes().to_vec()).collect();
        let mut first = [false; 256];
        for byte in secrets.iter().filter_map(|secret| secret.first()) {
            first[usize::from(*byte)] = true;
        }
        Self { secrets: secrets.into(), first: Arc::new(first), held: Vec::new() }
    }

    /// The bytes that can be passed on after these bytes have arrived.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.strain(More::Comes)
    }

    /// The remaining bytes after the stream has ended.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.strain(More::Nothing)
    }

    fn strain(&mut self, more: More) -> Vec<u8> {
        let text = std::mem::take(&mut self.held);
        let mut clean = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            match self.look(&text[at..], more) {
                There::Nothing => {
                    clean.push(text[at]);
                    at += 1;
                }
                There::Secret(length) => {
                    clean.extend_from_slice(STRUCK.as_bytes());
                    at += length;
                }
                There::Beginning => break,
            }
        }
        self.held = text[at..].to_vec();
        clean
    }

    fn look(&self, text: &[u8], more: More) -> There {
        if !text.first().is_some_and(|byte| self.first[usize::from(*byte)]) {
            return There::Nothing;
        }
        let begins = |secret: &&Vec<u8>| secret.len() > text.len() && secret.starts_with(text);
        if more == More::Comes && self.secrets.iter().any(|secret| begins(&secret)) {
            return There::Beginning;
        }
        let found = self.secrets.iter().find(|secret| text.starts_with(secret));
        found.map_or(There::Nothing, |secret| There::Secret(secret.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strained(secrets: &[&str], pieces: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|one| (*one).to_owned()).collect();
        let mut strainer = Strainer::of(&secrets);
        let mut all: Vec<u8> =
            pieces.iter().flat_map(|piece| strainer.pass(piece.as_bytes())).collect();
        all.extend(strainer.rest());
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn a_secret_is_struck_in_whatever_pieces_it_comes() {
        let text = "a hunter2 b hunthunter2";
        for cut in 0..text.len() {
            let (left, right) = text.split_at(cut);
            assert_eq!(strained(&["hunter2"], &[left, right]), "a *** b hunt***", "{cut}");
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(strained(&["hunter2"], &letters), "a *** b hunt***");
    }

    #[test]
    fn the_longer_of_two_is_struck_as_a_whole() {
        let secrets = ["hunter2-more", "hunter2"];
        assert_eq!(strained(&secrets, &["hunter2-", "more hunter2-mor"]), "*** ***-mor");
        assert_eq!(strained(&secrets, &["x hunter2"]), "x ***");
    }

    #[test]
    fn a_beginning_that_goes_on_otherwise_is_passed_on() {
        assert_eq!(strained(&["hunter2"], &["hunt", "ing hunter"]), "hunting hunter");
        assert_eq!(strained(&[], &["hunter2"]), "hunter2");
    }
}
