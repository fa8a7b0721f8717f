//! Rule `vendor-token`.
//!
//! Removes: access tokens that begin with their vendor's mark (GitHub, GitLab, Slack, Docker Hub,
//! NVIDIA), since images and charts are fetched with them during a bootstrap.
//!
//! Leaves alone: the mark without a token after it.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::value;

const RULE: &str = "vendor-token";

const MARKS: [&[u8]; 8] =
    [b"ghp_", b"gho_", b"ghs_", b"github_pat_", b"glpat-", b"xoxb-", b"dckr_pat_", b"nvapi-"];

/// The shortest of them have 20 letters; half is enough to be one that was cut.
const SHORTEST: usize = 10;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Looks at every `_` and `-` within a run of letters: each mark ends with one.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let mut from = run.start;
    while let Some(found) = memchr::memchr2(b'_', b'-', &view.bytes()[from..run.end]) {
        let body = from + found + 1;
        from = body;
        let before = &view.bytes()[run.start..body];
        if !before.iter().nth_back(1).is_some_and(|letter| b"posbti".contains(letter)) {
            continue;
        }
        let Some(mark) = MARKS.iter().find(|mark| before.ends_with(mark)) else { continue };
        let start = body - mark.len();
        if view.before(start).is_ascii_alphanumeric() && !view.is_break(start) {
            continue;
        }
        let end = value::end_of_letters(view, body, 20, is_letter);
        if end >= body + SHORTEST {
            scan.strike(start..end, RULE);
            from = end.min(run.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_marked_token_goes() {
        assert_eq!(
            redacted("with ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9a."),
            "with [redacted vendor-token]."
        );
    }

    #[test]
    fn the_mark_alone_stays() {
        assert_kept(&["tokens begin with ghp_ or gho_", "nvapi-server"]);
    }
}
