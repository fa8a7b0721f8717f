//! Rule `private-key`.
//!
//! Removes: PEM blocks of private keys, from `-----BEGIN` to `-----END`, on many lines, on one line
//! with escaped breaks or with blanks, and cut at either end. A block whose kind cannot be read is
//! taken for a key.
//!
//! Leaves alone: certificates, requests and public keys, which are needed to explain a failure of
//! trust and open nothing.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::shape::{self, Mix};
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "private-key";

/// No key is longer.
const LONGEST: usize = 64 * 1024;

/// The longest kind between the dashes.
const LONGEST_KIND: usize = 48;

/// What stands around the kind, at least.
const DASHES: &[u8] = b"----";

/// Kinds without secrets, in lower case, letters and digits only.
const PUBLIC: &str = "certificate trustedcertificate x509certificate certificaterequest x509crl \
    publickey ecparameters dhparameters pkcs7 cms pgppublickey pgpsig pgpmessage";

enum Kind {
    Public,
    Private,
    /// Not a key by its name, though it may be one: decided by what follows.
    Other,
}

/// The line `-----BEGIN kind-----` or `-----END kind-----`.
struct Boundary {
    range: Range<usize>,
    kind: Kind,
}

/// The boundary whose word, `BEGIN` or `END`, is `word`. Some programs put a blank before it.
fn boundary(view: &View, word: &Range<usize>) -> Option<Boundary> {
    let dashes_end = word.start - usize::from(view.before(word.start) == b' ');
    let dashes =
        view.bytes()[..dashes_end].iter().rev().take(8).take_while(|byte| **byte == b'-').count();
    if dashes < 2 {
        return None;
    }
    let is_kind =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'+' | b'_' | b'%');
    let limit = view.len().min(word.end + LONGEST_KIND);
    let kind_end = (word.end..limit).find(|&at| !is_kind(view.at(at))).unwrap_or(limit);
    let kind: Vec<u8> =
        view.folded(word.end..kind_end).into_iter().filter(u8::is_ascii_alphanumeric).collect();
    if dashes < DASHES.len() && memchr::memmem::find(&kind, b"private").is_none() {
        return None;
    }
    // Dashes on the next line that do not close a kind open a boundary of their own.
    let opens_next = kind.is_empty() && view.is_break(kind_end);
    let most = if opens_next { 0 } else { 8 };
    let closing =
        view.bytes()[kind_end..].iter().take(most).take_while(|byte| **byte == b'-').count();
    let kind = Kind::of(&kind, closing > 0);
    Some(Boundary { range: dashes_end - dashes..kind_end + closing, kind })
}

impl Kind {
    /// The kind by its name. A name that was cut is believed only if it says that it is public.
    fn of(name: &[u8], is_whole: bool) -> Self {
        let mut public = PUBLIC.split_ascii_whitespace().map(str::as_bytes);
        if memchr::memmem::find(name, b"private").is_some() {
            Self::Private
        } else if public.any(|public| name.ends_with(public) || name.starts_with(public)) {
            Self::Public
        } else if is_whole {
            Self::Other
        } else {
            Self::Private
        }
    }
}

/// At `-----BEGIN`.
pub(in crate::redaction) fn examine_begin(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let Some(begin) = boundary(view, &anchor) else { return };
    let body = body_end(view, begin.range.end);
    match begin.kind {
        Kind::Public => scan.keep(begin.range.start..body),
        Kind::Other if body < begin.range.end + 64 => {}
        Kind::Private | Kind::Other => {
            let end = block_end(view, begin.range.end).unwrap_or(body);
            scan.strike(begin.range.start..end.max(body), RULE);
        }
    }
}

/// At a `-----END` whose beginning was cut off, and with it the line that says what it is.
pub(in crate::redaction) fn examine_end(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let word = anchor.start + 1..anchor.end;
    if let Some(Boundary { range, kind: Kind::Private }) = boundary(view, &word) {
        let start = body_start(view, range.start, scan.resume());
        scan.strike(start..range.end, RULE);
    }
}

/// The end of the `-----END …-----` that comes before any other boundary.
fn block_end(view: &View, from: usize) -> Option<usize> {
    let limit = view.len().min(from + LONGEST);
    let dashes = from + view.find(from..limit, DASHES)?;
    let word = (dashes..limit).find(|&at| !matches!(view.at(at), b'-' | b' '))?;
    view.reads(word, b"end").then_some(())?;
    boundary(view, &(word..word + 3)).map(|end| end.range.end)
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Where the lines of base64 that follow a boundary end.
fn body_end(view: &View, from: usize) -> usize {
    let mut end = from;
    loop {
        let start = value::after_blanks(view, end);
        let line_end = view.next_break(start + 1);
        let letters = view.count_while(start..line_end, is_letter);
        let header = &view.bytes()[start..line_end];
        if header.starts_with(b"Proc-Type:") || header.starts_with(b"DEK-Info:") {
            end = line_end;
        } else if is_body(view.slice(start..start + letters)) {
            end = start + letters;
        } else {
            return end;
        }
    }
}

/// Where the lines of base64 that precede a boundary begin.
fn body_start(view: &View, end: usize, floor: usize) -> usize {
    let floor = floor.max(end.saturating_sub(LONGEST)).min(end);
    let mut start = end;
    loop {
        let blanks = view
            .slice(floor..start)
            .iter()
            .rev()
            .take_while(|byte| value::is_blank(**byte))
            .count();
        let piece_end = start - blanks;
        let line = view.line_start(piece_end).max(floor);
        let letters =
            view.slice(line..piece_end).iter().rev().take_while(|byte| is_letter(**byte)).count();
        let piece = view.slice(piece_end - letters..piece_end);
        let is_last_line = start == end && !piece.is_empty() && !shape::is_word(piece);
        if !(is_body(piece) || is_last_line) {
            return start;
        }
        start = piece_end - letters;
    }
}

/// One line of base64. The last one may be short; then it ends with padding or mixes its letters.
fn is_body(line: &[u8]) -> bool {
    let mix = Mix::of(line);
    line.len() >= 12 && mix.changes * 6 >= line.len()
        || line.len() > 2 && line.ends_with(b"=")
        || line.len() < 12 && mix.changes >= 3
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    const LINE: &str = "MIIEpAIBAAKCAQEA7bq1xZ9Jk2LmN4oP6qR8sT0uV2wX4yZ6aB8cD0eF2gH4iJ6k";
    const LAST: &str = "aB3dE5gH7jK9mN1=";

    #[test]
    fn a_key_goes_with_its_boundaries_and_keeps_its_line_breaks() {
        let key = format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{LINE}\n{LAST}\n-----END RSA PRIVATE KEY-----"
        );
        assert_eq!(redacted(&format!("a\n{key}\nb")), "a\n[redacted private-key]\n\n\n\nb");
        assert_eq!(
            redacted(&format!("a {} b", key.replace('\n', " "))),
            "a [redacted private-key] b"
        );
        assert_eq!(
            redacted(&format!("a {} b", key.replace('\n', "\\n"))),
            "a [redacted private-key] b"
        );
        assert_eq!(
            redacted(&format!("a {} b", key.replace('\n', "\\\\r\\\\n"))),
            "a [redacted private-key] b"
        );
    }

    #[test]
    fn a_key_that_was_cut_goes_as_far_as_it_goes() {
        let tail_cut =
            format!("x\n-----BEGIN PRIVATE KEY-----\n{LINE}\n{}\n+ exit 50", &LINE[..40]);
        assert_eq!(redacted(&tail_cut), "x\n[redacted private-key]\n\n\n+ exit 50");
        let head_cut =
            format!("{}\n{LINE}\n{LAST}\n-----END PRIVATE KEY-----\n+ exit 50", &LINE[40..]);
        assert_eq!(redacted(&head_cut), "[redacted private-key]\n\n\n\n+ exit 50");
        assert_eq!(redacted("x -----BEGIN OPENSSH PRIV"), "x [redacted private-key]");
        assert_eq!(redacted("x -----BEGIN "), "x [redacted private-key]");
    }

    #[test]
    fn certificates_and_public_keys_stay() {
        let certificate =
            format!("-----BEGIN CERTIFICATE-----\n{LINE}\n{LAST}\n-----END CERTIFICATE-----\n");
        let public = certificate.replace("CERTIFICATE", "PUBLIC KEY");
        assert_kept(&[&certificate, &public, "the --begin flag", "back-end started"]);
    }
}
