//! Rule `key-material`, for keys whose kind is said in words: `openssl … -text`, keys of `PuTTY`, tables of
//! dm-crypt, states of `IPsec`, keytabs, blobs of Windows' data protection, vaults of Ansible, values of
//! sops.
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

/// At the first line of a vault of Ansible: the numbers on the lines that follow, also behind the prefix
/// of a log or joined with blanks.
pub(in crate::redaction) fn examine_vault(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let line_end = view.next_break(anchor.end).min(anchor.end + LINE);
    let header = view.count_while(anchor.end..line_end, |byte| !value::is_blank(byte));
    let mut end = strike_numbers(scan, anchor.end + header..line_end, SHORTEST);
    let mut line = view.next_break(anchor.end);
    // The last line is as long as what is left, and has none behind it.
    for _ in 0..MOST_LINES {
        let next = view.next_break(line + 1);
        let shortest = if end > anchor.end { 2 } else { SHORTEST };
        let last = strike_last_number(scan, line..next, shortest);
        let Some(last) = last.filter(|_| view.is_break(line)) else { break };
        end = last;
        line = next;
    }
}

/// Removes the numbers of `shortest` digits or more that stand between blanks. Where the last one ends.
fn strike_numbers(scan: &mut Scan<'_>, range: Range<usize>, shortest: usize) -> usize {
    let view = scan.view;
    let (mut start, mut end, mut shortest) = (range.start, 0, shortest);
    loop {
        start = value::after_blanks(view, start);
        let length = view.count_while(start.min(range.end)..range.end, |b| b.is_ascii_hexdigit());
        if length < shortest {
            return end;
        }
        scan.strike(start..start + length, RULE);
        start += length;
        (end, shortest) = (start, 2);
    }
}

/// Removes the number that a line ends with, alone there or behind a blank. Where it ends.
fn strike_last_number(scan: &mut Scan<'_>, line: Range<usize>, shortest: usize) -> Option<usize> {
    let view = scan.view;
    let near = line.start..line.end.min(line.start + LINE);
    let text = view.slice(near).trim_ascii_end();
    let text = text.strip_suffix(b"\"").or_else(|| text.strip_suffix(b"'")).unwrap_or(text);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let before = text.len() - digits;
    // Behind a prefix, only what cannot be a word of a sentence.
    let is_number = digits >= if before == 0 { shortest } else { SHORTEST };
    let is_apart = before == 0 || value::is_blank(text[before - 1]);
    let end = line.start + text.len();
    (is_number && is_apart).then(|| {
        scan.strike(line.start + before..end, RULE);
        end
    })
}

/// At a value of sops: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`.
pub(in crate::redaction) fn examine_sealed(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let limit = view.next_break(anchor.end).min(anchor.end + LINE);
    let length = view.count_while(anchor.end..limit, |byte| !b"]\"' ".contains(&byte));
    scan.strike(anchor.end..anchor.end + length, RULE);
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
    fn the_lines_of_a_vault_go_up_to_what_is_no_number() {
        let line = "fccc072f87ed8dd62fba50518797a433fa01fd725b09887fd3d62a2499c7dcab";
        let header = "$ANSIBLE_VAULT;1.2;AES256;prod";
        let mark = "[redacted key-material]";
        for (text, expected) in [
            (
                format!("{header}\n{line}\n{line}\n6162\nok: [n1]\n"),
                format!("{header}\n{mark}\n{mark}\n{mark}\nok: [n1]\n"),
            ),
            (
                format!("{header} {line} {line} 6162 ok"),
                format!("{header} {mark} {mark} {mark} ok"),
            ),
            (
                format!("n1 a[1]: {header}\nn1 a[1]: {line}\nn1 a[1]: added\n"),
                format!("n1 a[1]: {header}\nn1 a[1]: {mark}\nn1 a[1]: added\n"),
            ),
        ] {
            assert_eq!(redacted(&text), expected);
        }
    }

    #[test]
    fn ciphers_without_a_key_stay() {
        assert_kept(&[
            "kernel: alg: self-tests for aes-xts passed",
            "cipher: aes-xts-plain64, hash: sha256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 hmac(sha256)",
            "Private-Lines: many",
            "coefficient: 3",
            "$ANSIBLE_VAULT;1.1;AES256\nadded 3 feed",
            "input is not vault encrypted data: no $ANSIBLE_VAULT header",
            "{cipher}aes",
        ]);
    }
}
