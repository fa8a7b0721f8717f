//! Stores the beginning and the end of a stream.

use std::collections::VecDeque;

/// The number of bytes to store of the beginning and of the end of a stream.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 48 * 1024;

/// The beginning and the end of a stream.
#[derive(Debug, Default)]
pub(super) struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Ends {
    /// Adds the next bytes of the stream.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += over;
    }

    /// The beginning, the number of missing bytes, and the end.
    pub(super) fn text(self) -> String {
        let tail = Vec::from(self.tail);
        let head = String::from_utf8_lossy(&self.head).into_owned();
        match self.left_out {
            0 => String::from_utf8_lossy(&[self.head, tail].concat()).into_owned(),
            count => {
                format!("{head}\n[{count} bytes left out]\n{}", String::from_utf8_lossy(&tail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_stream_the_ends_are_kept() {
        let mut ends = Ends::default();
        ends.add(b"first ");
        for _ in 0..100 {
            ends.add(&[b'x'; 10_000]);
        }
        ends.add(b" last");
        let text = ends.text();
        assert!(text.starts_with("first xxx") && text.ends_with("xxx last"));
        assert!(text.contains("bytes left out") && text.len() < 66 * 1024);
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut ends = Ends::default();
        ends.add("déjà".as_bytes());
        assert_eq!(ends.text(), "déjà");
    }
}
