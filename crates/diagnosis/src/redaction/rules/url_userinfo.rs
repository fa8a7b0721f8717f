//! Rule `url-userinfo`.
//!
//! Removes: user and password in an address, `https://user:password@host`, and in the value of a
//! proxy variable without a scheme. The host stays; it explains a proxy that does not answer.
//!
//! Leaves alone: addresses without a user, digests after `@`, the user `git` of source addresses.

use std::ops::Range;

use super::named_value;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "url-userinfo";

/// How far an `@` is searched.
const LONGEST: usize = 512;

/// At `://`.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    if scan.view.before(anchor.start).is_ascii_alphanumeric()
        && let Some(end) = userinfo_end(scan, anchor.end)
    {
        scan.strike(anchor.end..end, RULE);
    }
}

/// At `jdbc:oracle:thin:`, after which `user/password@host` stands.
pub(in crate::redaction) fn examine_oracle(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = view.next_break(anchor.end).min(anchor.end + LONGEST).max(anchor.end);
    let Some(at) = view.find(anchor.end..end, b"@") else { return };
    if view.slice(anchor.end..anchor.end + at).contains(&b'/') {
        scan.strike(anchor.end..anchor.end + at, RULE);
    }
}

/// The longest `user:password` before an address as Go's drivers write it.
const LONGEST_BEFORE: usize = 128;

/// At the `@tcp(` of `user:password@tcp(host:port)/database`.
pub(in crate::redaction) fn examine_go(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let floor = view.line_start(anchor.start).max(anchor.start.saturating_sub(LONGEST_BEFORE));
    let before = view.slice(floor..anchor.start);
    let start = before.iter().rposition(|byte| b" \t\"'`=/".contains(byte)).map_or(0, |at| at + 1);
    if before[start..].contains(&b':') {
        scan.strike(floor + start..anchor.start, RULE);
    }
}

/// At `proxy`, the last word of a variable or flag.
pub(in crate::redaction) fn examine_proxy(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let Some(start) = named_value::value_start(view, anchor.end) else { return };
    let start = start + usize::from(value::is_quote(view.at(start)));
    let Some(end) = userinfo_end(scan, start) else { return };
    let userinfo = view.slice(start..end);
    if userinfo.contains(&b':') && !shape::is_address(userinfo) {
        scan.strike(start..end, RULE);
    }
}

/// Where the user information that begins at `start` ends: at the last `@` before the host.
fn userinfo_end(scan: &mut Scan<'_>, start: usize) -> Option<usize> {
    let view = scan.view;
    if view.at(start) == b'[' {
        return None;
    }
    let is_near_end = view.len() < start + LONGEST;
    if !is_near_end && scan.next_at_sign(start) >= start + LONGEST {
        return None;
    }
    let (mut colon, mut at, mut slash) = (None, None, None);
    let mut next_break = view.next_break(start);
    for position in start..view.len().min(start + LONGEST) {
        let byte = view.at(position);
        if position == next_break {
            if !has_at(view, position, colon.is_some()) {
                break;
            }
            next_break = view.next_break(position + 1);
        }
        match byte {
            b'"' | b'\'' if is_percent_encoded(view, position) => {}
            b' ' | b'\t' | b'"' | b'\'' | b'`' | b'<' | b'>' => break,
            b':' if slash.is_none() => colon = colon.or(Some(position)),
            b'@' => {
                // A password may hold a slash, if the user's name comes before it.
                let is_path =
                    slash.is_some() && !colon.is_some_and(|colon| is_user(view, colon, slash));
                if is_path || view.reads(position + 1, b"sha") {
                    break;
                }
                at = Some(position);
            }
            b'/' | b'?' | b'#' if at.is_some() => break,
            b'/' | b'?' | b'#' => slash = slash.or(Some(position)),
            _ => {}
        }
    }
    let end = at.or_else(|| cut_userinfo_end(view, start, colon?, slash))?;
    is_secret(view.slice(start..end)).then_some(end)
}

/// The end of the text, if it cuts a password off before its `@`: what follows the colon is no port.
fn cut_userinfo_end(
    view: &View,
    start: usize,
    colon: usize,
    slash: Option<usize>,
) -> Option<usize> {
    let rest = &view.bytes()[colon + 1..];
    let port = view.slice(colon + 1..slash.unwrap_or(view.len()));
    // Not a slice of the view: all before the address would count as looked at.
    let before = &view.bytes()[..start];
    let is_web = before.ends_with(b"http://") || before.ends_with(b"https://");
    // Another address shows that this one was not cut. Without it, of many addresses in a row each round
    // would remove some more at the end, until the whole text is given up.
    let is_cut = rest.len() < LONGEST
        && !rest.iter().any(|byte| b" \t\"'`<>".contains(byte))
        && memchr::memmem::find(rest, b"://").is_none();
    let is_port = shape::is_number(port) || shape::is_harmless(port) || shape::is_word(port);
    (is_web && is_cut && !is_port).then_some(view.len())
}

/// Whether the letter was written as `%27`; only then it takes three bytes.
fn is_percent_encoded(view: &View, position: usize) -> bool {
    view.escape_depth(position) == 2
}

/// Whether what follows the colon is not a port, so that a user's name was before it.
fn is_user(view: &View, colon: usize, slash: Option<usize>) -> bool {
    slash.is_some_and(|slash| slash > colon + 1 && !shape::is_number(view.slice(colon + 1..slash)))
}

/// Whether an address that is broken at `position` goes on to an `@`.
fn has_at(view: &View, position: usize, has_colon: bool) -> bool {
    let limit = view.len().min(position + 128);
    let is_end =
        |at: &usize| b" \t\"'`<>/".contains(&view.at(*at)) && !is_percent_encoded(view, *at);
    let end = (position..limit).find(is_end).unwrap_or(limit);
    let rest = view.slice(position..end);
    memchr::memrchr(b'@', rest).is_some_and(|at| has_colon || rest[..at].contains(&b':'))
}

fn is_secret(userinfo: &[u8]) -> bool {
    !(userinfo == b"git"
        || userinfo.is_empty()
        || userinfo.split(|byte| *byte == b':').all(shape::is_harmless))
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn user_and_password_go_and_the_host_stays() {
        for (text, expected) in [
            ("http://px:vQ-d!x@px.example:80/", "http://[redacted url-userinfo]@px.example:80/"),
            ("http://px:a/b@c@px.example", "http://[redacted url-userinfo]@px.example"),
            (r"https:\/\/px:abc@px.example", r"https:\/\/[redacted url-userinfo]@px.example"),
            ("http://px:vQBd-H\r\nDBI@px.example", "http://[redacted url-userinfo]\r\n@px.example"),
            ("http_proxy=px:abc@px.example:80", "http_proxy=[redacted url-userinfo]@px.example:80"),
            ("clone https://px:abc3", "clone https://[redacted url-userinfo]"),
            ("https://ghx@host/", "https://[redacted url-userinfo]@host/"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn addresses_without_a_user_stay() {
        assert_kept(&[
            "https://mcr.example/v2/x@sha256:0f1e2d3c",
            "oci://registry.example:5000/x@sha256:0f1e",
            "ssh://git@source.example/x.git",
            "https://10.0.0.4:6443/healthz?timeout=32s (mail admin@corp.example)",
            "https://${USER}:${PASSWORD}@host",
            "https://mcr.example\nuser@host:~$",
            "dial https://10.0.0.4:6443",
            "docker://nginx:1.25-alpine",
        ]);
    }
}
