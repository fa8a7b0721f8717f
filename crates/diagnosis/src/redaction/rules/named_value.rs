//! Rules `token`, `password`, `secret`, `client-secret`, `credential`, `key`, `sas-token`,
//! `connection-string`, `registry-auth`, `user-data` and `protected-settings`.
//!
//! Remove: the value of anything whose name says that it is a secret, in any form in which names
//! and values are written: `NAME=VALUE`, `name: value`, `"name": "value"`, `--name value`,
//! `<name>value</name>`, `{name: NAME, value: VALUE}`, at any level of escaping. What the value
//! looks like does not matter: an unknown shape goes.
//!
//! Leave alone: values that are no secret under any name (flags, small numbers, times, paths,
//! addresses, references such as `$TOKEN`), names about a secret (`secretName`, `TOKEN_TTL`), and
//! sentences (`failed to get token: connection refused`).

use std::ops::Range;

use super::{bootstrap_token, client_secret, json_web_token};
use crate::redaction::name::Name;
use crate::redaction::scan::{Look, Scan};
use crate::redaction::shape;
use crate::redaction::value::{self, Value};
use crate::redaction::view::View;

mod prose;
mod separator;

use separator::Separator;

/// The most values of one list that are looked at; more are taken together.
const LONGEST_LIST: usize = 256;

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let word = view.folded(anchor.clone());
    let name = Name::around(view, anchor, scan.resume());
    let Some((separator, start)) = separator::after(view, &name) else {
        return examine_spoken(scan, &name);
    };
    if word == b"key" {
        if !scan.is_new(Look::Key, name.range.start) {
            return;
        }
        scan.note(Look::Key, name.range.end);
    }
    let Some(rule) = rule_for(&word, &name) else { return };
    scan.skip_to(name.range.end);
    let subject = Subject { name, rule, separator };
    if view.at(start) == b'[' {
        examine_list(scan, &subject, start + 1);
    } else if !is_object(view, start) {
        examine_value(scan, &subject, start);
    }
}

/// The longest password that is looked for in a sentence.
const LONGEST_SPOKEN: usize = 128;

/// `Setting password VALUE for user NAME`, as cloudbase-init says it.
fn examine_spoken(scan: &mut Scan<'_>, name: &Name<'_>) {
    let view = scan.view;
    let start = name.range.end + 1;
    if view.at(name.range.end) != b' ' || !name.has("pass") {
        return;
    }
    let near = &view.bytes()[start.min(view.len())..view.len().min(start + LONGEST_SPOKEN)];
    let Some(length) = near.iter().position(|byte| *byte == b' ') else { return };
    let range = start..start + length;
    if view.reads(range.end, b" for user") && !shape::is_harmless(&near[..length]) {
        scan.strike(range, "password");
    }
}

/// Where the value of a name that ends at `name_end` begins, for rules with names of their own.
pub(super) fn value_start(view: &View, name_end: usize) -> Option<usize> {
    separator::assignment(view, name_end).map(|(_, start)| start)
}

/// A name, what its value is called, and how the value was attached to it.
struct Subject<'a> {
    name: Name<'a>,
    rule: &'static str,
    separator: Separator,
}

/// What the value of such a name is, if it is a secret. `word` is its anchor.
fn rule_for(word: &[u8], name: &Name<'_>) -> Option<&'static str> {
    match word {
        b"token" => Some("token"),
        b"secret" if name.has("clientsecret") || name.has("principalsecret") => {
            Some("client-secret")
        }
        b"secret" => Some("secret"),
        b"passw" | b"passphrase" => (!name.is("nopasswd")).then_some("password"),
        b"pwd" => name.has_whole_anchor().then_some("password"),
        b"credential" => Some("credential"),
        b"sas" => name.has_whole_anchor().then_some("sas-token"),
        b"key" => name.is_secret_key().then_some("key"),
        b"auth" => name.is_authentication().then_some("registry-auth"),
        b"protectedsettings" => Some("protected-settings"),
        _ if word.ends_with(b"content") => name.is_secret_content().then_some("key"),
        _ if word.ends_with(b"data") => Some("user-data"),
        _ if word.starts_with(b"connection") => Some("connection-string"),
        _ => None,
    }
}

fn is_object(view: &View, start: usize) -> bool {
    view.at(start) == b'{' && {
        let next = view.at(start + 1);
        value::is_quote(next) || matches!(next, b' ' | b'}') || view.is_break(start + 1)
    }
}

/// `["one", "two"]`, `[one]`, and lists of objects, which are left to the names inside them.
fn examine_list(scan: &mut Scan<'_>, subject: &Subject<'_>, mut start: usize) {
    let view = scan.view;
    for _ in 0..LONGEST_LIST {
        start = value::after_blanks(view, start);
        if matches!(view.at(start), b']' | b'{' | b'[' | 0) {
            return;
        }
        let value = value::at(view, start);
        let end = value.range.end
            + usize::from(value.quoted && value::is_quote(view.at(value.range.end)));
        judge(scan, subject, &value);
        start = value::after_blanks(view, end);
        if view.at(start) != b',' {
            return;
        }
        start += 1;
    }
    scan.strike(start..view.next_break(start + 1), subject.rule);
}

fn examine_value(scan: &mut Scan<'_>, subject: &Subject<'_>, start: usize) {
    let view = scan.view;
    if examine_form(scan, start) {
        return;
    }
    if let Some(block) = value::block(view, start) {
        judge(scan, subject, &Value { range: block, quoted: true });
        return;
    }
    let value = match subject.separator {
        Separator::Markup { end } => Value { range: start..end, quoted: true },
        _ => value::at(view, start),
    };
    judge(scan, subject, &value);
}

/// Whether the value has a form of its own, by which its end is known better than by the text
/// around it.
fn examine_form(scan: &mut Scan<'_>, start: usize) -> bool {
    let view = scan.view;
    let is_quoted = matches!(view.at(start), b'"' | b'\'');
    let start = start + usize::from(is_quoted);
    if let Some(secret) = bootstrap_token::secret_half_at(view, start) {
        scan.strike(secret, bootstrap_token::RULE);
        return true;
    }
    if let Some(secret) = client_secret::secret_at(view, start) {
        scan.strike(secret, client_secret::RULE);
    } else if view.bytes()[start..].starts_with(b"eyJ") {
        json_web_token::examine(scan, start..start + 3);
    }
    scan.resume() > start && !is_quoted
}

/// Removes `value` unless it cannot be a secret.
fn judge(scan: &mut Scan<'_>, subject: &Subject<'_>, value: &Value) {
    let view = scan.view;
    let text = &view.bytes()[value.range.clone()];
    // Only what is short can be let go, or else looking at it again and again would take too long.
    let is_short = text.len() <= shape::LONGEST_HARMLESS;
    if is_short && (text.starts_with(b"-----BEGIN") || is_innocent(view, subject, value)) {
        return;
    }
    let end = if value.quoted { value.range.end } else { value::over_blanks(view, &value.range) };
    scan.strike(value.range.start..end, subject.rule);
}

fn is_innocent(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let text = &view.bytes()[value.range.clone()];
    let can_be_prose = !value.quoted && subject.separator.is_loose();
    shape::is_harmless(text)
        || subject.name.is_about()
            && !text.split(|byte| b":/.,".contains(byte)).any(shape::is_key_like)
        || can_be_prose && prose::reads_on(view, &subject.name, &subject.separator, value)
        || subject.rule == "secret" && is_object_name(text)
        || subject.rule == "key" && is_public_key(text)
        || subject.rule == "user-data" && !is_encoded(text)
        || matches!(subject.rule, "token" | "sas-token") && is_shared_access_signature(view, value)
        || is_number_of_json(view, subject, value)
        || subject.rule == "registry-auth" && (text.len() < 8 || shape::is_word(text))
}

/// A bare number of JSON. Passwords are strings there, and a marker in its place would not parse.
fn is_number_of_json(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let is_json = view.at(subject.name.range.end) == b'"' && !value.quoted;
    let mut text = view.bytes()[value.range.clone()].iter();
    is_json && text.all(|byte| byte.is_ascii_digit() || b".-+eE".contains(byte))
}

/// `kube-system/registry-pull`: the name of a Secret, as Kubernetes logs it.
fn is_object_name(text: &[u8]) -> bool {
    let Some(slash) = memchr::memchr(b'/', text) else { return false };
    let (namespace, name) = (&text[..slash], &text[slash + 1..]);
    let is_label = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'-';
    namespace.len() > 2
        && namespace.iter().all(is_label)
        && name.len() > 2
        && name.iter().all(|byte| is_label(byte) || byte.is_ascii_digit() || *byte == b'.')
        && name.iter().filter(|byte| byte.is_ascii_digit()).count() * 3 <= name.len()
}

/// A shared access signature, `sv=…&sig=…`: what is secret in it has a rule of its own, and the rest
/// says until when it was valid.
fn is_shared_access_signature(view: &View, value: &Value) -> bool {
    let start = value.range.start;
    let rest = &view.bytes()[start..view.len().min(start + shape::LONGEST_HARMLESS)];
    let length = rest.iter().position(|byte| value::is_blank(*byte) || value::is_quote(*byte));
    let text = &rest[..length.unwrap_or(rest.len())];
    let query = text.strip_prefix(b"?").unwrap_or(text);
    matches!(query, [b's', b'a'..=b'z', b'=', ..])
        && memchr::memmem::find(query, b"&sig=").is_some()
}

/// Custom data as Azure takes it. Excerpts in a log are left to the other rules.
fn is_encoded(text: &[u8]) -> bool {
    text.len() >= 16
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte))
}

fn is_public_key(text: &[u8]) -> bool {
    text.starts_with(b"ssh-") || text.starts_with(b"ecdsa-")
}

#[cfg(test)]
mod tests;
