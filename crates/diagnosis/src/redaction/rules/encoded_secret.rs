//! Rules `encoded-secret`, `storage-key` and `key-material`.
//!
//! Remove: base64 in which another rule finds a secret, the whole of it; and base64 of at least 32
//! letters that decodes to nothing readable, since that is what keys, signatures and compressed
//! custom data look like. What is encoded more than twice is not looked into, and goes.
//!
//! Leave alone: base64 of readable text without secrets (containerd's configuration), certificates,
//! public keys, fingerprints, digests, and names that only have letters of base64.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::json_web_token;
use crate::redaction::scan::{self, Scan};
use crate::redaction::shape::{self, Mix};
use crate::redaction::view::View;

/// Shorter base64 holds no secret with its name.
const SHORTEST: usize = 24;

/// From this length on, letters of base64 that mean nothing are a key.
const SHORTEST_KEY: usize = 32;

/// From this length on, a key need not have digits to be one.
const CERTAIN_KEY: usize = 40;

/// 64 bytes, the keys of Azure's storage accounts, without the padding.
const STORAGE_KEY: usize = 86;

/// What public keys of SSH begin with.
const SSH_PUBLIC_KEYS: [&[u8]; 3] = [b"AAAAB3NzaC1", b"AAAAC3NzaC1", b"AAAAE2VjZHNh"];

/// What stands before the fingerprint of something.
const FINGERPRINTS: [&[u8]; 4] = [b"sha256:", b"sha256-", b"sha384-", b"sha512-"];

/// Forgiving, since what is decoded may have been cut anywhere.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

/// Decodes base64 of either alphabet without padding; empty if it is none.
pub(super) fn decoded(text: &[u8]) -> Vec<u8> {
    let whole = if text.len() % 4 == 1 { text.len() - 1 } else { text.len() };
    let standard: Vec<u8> = text[..whole]
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    BASE64.decode(standard).unwrap_or_default()
}

/// Looks at a run of capital letters and digits up to seven, which may be base32.
pub(in crate::redaction) fn examine_base32(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let is_letter = |byte: u8| matches!(byte, b'A'..=b'Z' | b'2'..=b'7');
    let length = view.count_while(run.clone(), is_letter);
    let letters = view.slice(run.start..run.start + length);
    let padding = view.slice(run.start + length..run.end);
    if length < SHORTEST || !padding.iter().all(|byte| *byte == b'=') {
        return;
    }
    let (mut bits, mut value, mut bytes) = (0_u32, 0_u32, Vec::new());
    for letter in letters {
        let digit = if letter.is_ascii_digit() { letter - b'2' + 26 } else { letter - b'A' };
        value = (value << 5 | u32::from(digit)) & 0xFFF;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(value >> bits & 0xFF).unwrap_or(0));
        }
    }
    let Some(deeper) = scan.depth.deeper() else { return };
    if is_readable(&bytes) && !scan::examine(&View::of(&bytes), deeper).is_empty() {
        scan.strike(run, "encoded-secret");
    }
}

/// Looks at a run of letters, which may hold several encoded values.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let mut start = run.start;
    while start < run.end {
        let length = view.count_while(start..run.end, |byte| !matches!(byte, b'=' | b'.'));
        if length >= SHORTEST {
            examine_either_alphabet(scan, start..start + length);
        }
        start += length + 1;
    }
}

fn examine_either_alphabet(scan: &mut Scan<'_>, range: Range<usize>) {
    let bytes = scan.view.slice(range.clone());
    let standard = |byte: &u8| matches!(byte, b'+' | b'/');
    let address = |byte: &u8| matches!(byte, b'-' | b'_');
    let has_both = memchr::memchr2(b'+', b'/', bytes).is_some()
        && memchr::memchr2(b'-', b'_', bytes).is_some();
    if has_both {
        examine_parts(scan, &range, address);
        examine_parts(scan, &range, standard);
    } else {
        examine_one(scan, range);
    }
}

fn examine_parts(scan: &mut Scan<'_>, range: &Range<usize>, is_gap: impl Fn(&u8) -> bool) {
    let view = scan.view;
    let mut start = range.start;
    for part in view.slice(range.clone()).split(is_gap) {
        if part.len() >= SHORTEST {
            examine_one(scan, start..start + part.len());
        }
        start += part.len() + 1;
    }
}

fn examine_one(scan: &mut Scan<'_>, range: Range<usize>) {
    let view = scan.view;
    if Mix::of(view.slice(range.clone())).could_be_encoded()
        && !is_public(view, &range)
        && let Some(rule) = verdict(scan, &range)
    {
        scan.strike(range.start..range.end + padding(view, range.end), rule);
    }
}

/// How many signs of padding stand at `position`.
fn padding(view: &View, position: usize) -> usize {
    view.bytes()[position..].iter().take(2).take_while(|byte| **byte == b'=').count()
}

/// The rule that removes what is encoded in `range`, if any. The letters before it may belong to
/// something else, so the first letter of a group of four is searched.
fn verdict(scan: &Scan<'_>, range: &Range<usize>) -> Option<&'static str> {
    let encoded = scan.view.slice(range.clone());
    let is_key = encoded.len() >= SHORTEST_KEY
        && (is_padded(scan.view, range.end) || is_key(scan.view, range));
    for cut in 0..4 {
        let decoded = decoded(&encoded[cut..]);
        if cut == 0 && is_certificate(&decoded) {
            return None;
        }
        if !is_readable(&decoded) {
            continue;
        }
        if json_web_token::has_claims(&decoded) {
            return Some("json-web-token");
        }
        let Some(deeper) = scan.depth.deeper() else { return is_key.then_some("encoded-secret") };
        let has_secret = !scan::examine(&View::of(&decoded), deeper).is_empty();
        return has_secret.then_some("encoded-secret");
    }
    match encoded.len() {
        _ if !is_key => None,
        STORAGE_KEY => Some("storage-key"),
        _ => Some("key-material"),
    }
}

/// Whether the letters are a key. What they hold of words, hashes and ids does not count: addresses
/// and resource names have all of them.
fn is_key(view: &View, range: &Range<usize>) -> bool {
    let mut letters = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = view.next_break(start + 1).min(range.end);
        let line = view.slice(start..end);
        let parts = line.split(|byte| b"/+-_".contains(byte)).filter(|part| !is_plain(part));
        parts.for_each(|part| letters.extend_from_slice(part));
        start = end;
    }
    let mix = Mix::of(&letters);
    let is_long = range.len() >= CERTAIN_KEY;
    letters.len() >= SHORTEST_KEY * 3 / 4
        && (mix.is_random() || is_long && mix.is_random_without_digits())
}

/// Whether padding stands at `position`, and not the sign of an assignment.
fn is_padded(view: &View, position: usize) -> bool {
    let after = view.at(position + 1);
    match padding(view, position) {
        0 => false,
        1 => {
            view.is_break(position + 1)
                || matches!(after, 0 | b' ' | b',' | b';' | b')' | b'}' | b'&')
        }
        _ => true,
    }
}

/// A word, a number, or a hash.
fn is_plain(part: &[u8]) -> bool {
    let is_hash = part.len() >= 4
        && part.iter().all(u8::is_ascii_hexdigit)
        && !(part.iter().any(u8::is_ascii_uppercase) && part.iter().any(u8::is_ascii_lowercase));
    is_hash || part.len() >= 4 && (shape::is_word(part) || shape::is_camel_case(part))
}

fn is_public(view: &View, range: &Range<usize>) -> bool {
    let is_at = |position: usize, kind: &[u8]| view.reads(position, kind);
    let is_before =
        |kind: &[u8]| range.start.checked_sub(kind.len()).is_some_and(|at| is_at(at, kind));
    SSH_PUBLIC_KEYS.iter().any(|key| view.bytes()[range.clone()].starts_with(key))
        || FINGERPRINTS.iter().any(|kind| is_before(kind) || is_at(range.start, kind))
}

/// Text, also of two bytes a letter as PowerShell encodes it; up to a seventh may be cut or foreign.
fn is_readable(decoded: &[u8]) -> bool {
    let readable = decoded
        .iter()
        .filter(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0))
        .count();
    let zeros = memchr::memchr_iter(0, decoded).count();
    !decoded.is_empty() && readable * 7 >= decoded.len() * 6 && zeros * 2 <= decoded.len() + 1
}

/// The first bytes of every X.509 certificate of version 3.
fn is_certificate(decoded: &[u8]) -> bool {
    matches!(decoded, [0x30, 0x82, _, _, 0x30, 0x82, _, _, 0xA0, 0x03, 0x02, 0x01, 0x02, ..])
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::super::{assert_kept, redacted};

    #[test]
    fn base64_with_a_secret_inside_goes_whole_once_and_twice_encoded() {
        let inner = "users:\n- name: kubelet\n  user:\n    token: abcdef.0123456789abcdef\n";
        let once = STANDARD.encode(inner);
        let twice = STANDARD.encode(&once);
        assert_eq!(redacted(&format!("x {once} y")), "x [redacted encoded-secret] y");
        assert_eq!(redacted(&format!("x {twice} y")), "x [redacted encoded-secret] y");
        let powershell: Vec<u8> =
            "$password='hunter2 and more'".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(
            redacted(&format!("-enc {}", STANDARD.encode(powershell))),
            "-enc [redacted encoded-secret]"
        );
    }

    #[test]
    fn base64_of_an_encoded_key_goes_even_when_its_kind_was_cut_off() {
        let key = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpPcnQwWjhJMDVMZk1Kdk0xZUVnWGdGZFJpdU9PSEhtZkg0";
        assert_eq!(redacted(&format!("x {key}")), "x [redacted encoded-secret]");
        assert_eq!(redacted(&format!("x {}", &key[..28])), "x [redacted encoded-secret]");
        assert_eq!(redacted(&format!("x {}", &key[7..])), "x [redacted encoded-secret]");
    }

    #[test]
    fn letters_that_mean_nothing_are_a_key() {
        let storage =
            "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6QUJDREVGR0hJSktMTU5P"
                .to_owned();
        assert_eq!(storage.len(), 84);
        assert_eq!(
            redacted("x qZ8vYmF7mT9h+cXV4MTI4NzU2Nzg9MGFi7RlZmdoaW5rbG1ub3Bx y"),
            "x [redacted key-material] y"
        );
        assert_eq!(
            redacted(
                "x wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAMPLEKEY0aB3dE5gH7jK9mN1pQ3sT5vW7yZ9aB3dE5gH7jK9mN1+Z== y"
            ),
            "x [redacted storage-key] y"
        );
    }

    #[test]
    fn readable_text_fingerprints_and_names_stay() {
        let configuration = STANDARD.encode("version = 2\noom_score = -999\n[plugins]\n");
        assert_kept(&[
            &configuration,
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
            "key SHA256:Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1u (ED25519)",
            "(https://source.example/Team/web/commit/4cf8cff64466519bf2d4a4dc1dcbe8deb449e004)",
            "--gallery ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019 EnableCSIMigrationAzureDiskV2ForNodePool1",
            "sha256:72c7fd14fa50f1496bac9a1e3c5d7f9b0a2c4e6f8091b3d5f7a9c1e3d5f7b9a1",
            "/subscriptions/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/resourceGroups/MC_demo_Cluster1_eastus2/providers/Microsoft.Compute/virtualMachineScaleSets/aks-nodepool1-12345678-vmss",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx2Q3b4Zr5sT6uV7wX8yZ9aB0cD1eF2gH3iJ4kL5mN6",
        ]);
    }
}
