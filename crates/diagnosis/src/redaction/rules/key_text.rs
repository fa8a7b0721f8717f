//! Rule `key-material`, for keys whose kind is said in words: `openssl … -text`, keys of `PuTTY`, tables of
//! dm-crypt, states of `IPsec`, keytabs, blobs of Windows' data protection.
//!
//! Removes: the numbers in hexadecimal digits after the name of a cipher, the numbers of a private key,
//! the lines of a private key of `PuTTY`.
//!
//! Leaves alone: the moduli, exponents and lines of public keys; names of ciphers without a key.

use std::ops::Range;

use super::named_value;
use crate::redaction::scan::Scan;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "key-material";

/// How far after a cipher its key is searched.
const LINE: usize = 512;

/// The shortest key: 128 bits.
const SHORTEST: usize = 32;

/// The most lines of one number or key.
const MOST_LINES: usize = 512;

/// At the name of a cipher: every long number on the rest of its line is a key.
pub(in crate::redaction) fn examine_cipher(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = view.next_break(anchor.end).min(anchor.end + LINE);
    let mut start = anchor.end;
    while start < end {
        let length = view.count_while(start..end, |byte| byte.is_ascii_hexdigit());
        if length >= SHORTEST {
            scan.strike(start..start + length, RULE);
        }
        start += length + 1;
    }
}

/// At `hmac`, which names an algorithm or a value.
pub(in crate::redaction) fn examine_hmac(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let before = scan.count();
    examine_cipher(scan, anchor.clone());
    if scan.count() == before {
        named_value::examine(scan, anchor);
    }
}

/// At the name of a part of a private key, as `openssl … -text` prints it: `privateExponent:`, and
/// below it pairs of digits with colons.
pub(in crate::redaction) fn examine_number(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let colon = value::after_blanks(view, anchor.end);
    let start = value::after_blanks(view, colon + 1);
    if !matches!(view.at(colon), b':' | b'=') {
        return;
    }
    let is_letter = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b' ' | b'x');
    let mut end = start;
    for _ in 0..MOST_LINES {
        let line_end = view.next_break(end + 1);
        let letters = view.count_while(end..line_end, is_letter);
        if letters < 2 {
            break;
        }
        if end + letters < line_end {
            // Something else follows on the line.
            let is_part = letters >= SHORTEST / 2;
            end += if is_part { letters } else { 0 };
            break;
        }
        end = line_end;
    }
    let digits = view.slice(start..end.max(start)).iter().filter(|byte| byte.is_ascii_hexdigit());
    if digits.count() >= SHORTEST / 2 {
        scan.strike(start..end, RULE);
    }
}

/// At `Private-Lines: 8` of a key of `PuTTY`: the lines that follow, up to the next name.
pub(in crate::redaction) fn examine_putty(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let mut line = view.next_break(anchor.end);
    for _ in 0..MOST_LINES {
        let next = view.next_break(line + 1);
        if !view.is_break(line) || view.find(line..next.min(line + 64), b":").is_some() {
            break;
        }
        scan.strike(line..next, RULE);
        line = next;
    }
}

/// At `Private-MAC:` of a key of `PuTTY`.
pub(in crate::redaction) fn examine_putty_code(scan: &mut Scan<'_>, anchor: Range<usize>) {
    examine_cipher(scan, anchor);
}

/// At what every blob of Windows' data protection holds: the number around it.
pub(in crate::redaction) fn examine_protected(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = anchor.start - digits_before(view, anchor.start);
    let digits = view.count_while(anchor.end..view.len(), |byte| byte.is_ascii_hexdigit());
    scan.strike(start..anchor.end + digits, RULE);
}

fn digits_before(view: &View, end: usize) -> usize {
    let before = view.slice(end.saturating_sub(16)..end);
    before.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count()
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn keys_after_the_name_of_a_cipher_go() {
        let key = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        for (before, after) in [
            ("0 4096 crypt aes-xts-plain64 ", " 0 8:32 0"),
            ("auth-trunc hmac(sha256) 0x", " 128"),
            ("1 host/n@X (aes256-cts-hmac-sha1-96) (0x", ")"),
        ] {
            let output = redacted(&format!("{before}{key}{after}"));
            assert_eq!(output, format!("{before}[redacted key-material]{after}"));
        }
    }

    #[test]
    fn numbers_of_a_private_key_go_and_those_of_a_public_one_stay() {
        let number = "    00:ab:4c:91:7e:20:5d:f3:88:19:c6:3a:72:0b:e4:\n    55:d1:9f\n";
        let public = format!("modulus:\n{number}");
        assert_eq!(
            redacted(&format!("{public}privateExponent:\n{number}prime1: x\n")),
            format!("{public}privateExponent:\n    [redacted key-material]\n\nprime1: x\n")
        );
    }

    #[test]
    fn ciphers_without_a_key_stay() {
        assert_kept(&[
            "kernel: alg: self-tests for aes-xts passed",
            "cipher: aes-xts-plain64, hash: sha256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 hmac(sha256)",
            "Private-Lines: many",
            "coefficient: 3",
        ]);
    }
}
