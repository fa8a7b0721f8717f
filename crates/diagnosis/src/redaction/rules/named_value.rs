//! Rules `token`, `password`, `secret`, `client-secret`, `credential`, `key`, `sas-token`,
//! `connection-string`, `registry-auth`, `user-data`, `cookie` and `protected-settings`.
//!
//! Remove: the value of anything whose name says that it is a secret, in any form in which names
//! and values are written: `NAME=VALUE`, `name: value`, `"name": "value"`, `--name value`,
//! `<name>value</name>`, `{name: NAME, value: VALUE}`, at any level of escaping. What the value
//! looks like does not matter: an unknown shape goes.
//!
//! Leave alone: literals and references (`true`, `$TOKEN`), names about a secret (`secretName`,
//! `TOKEN_TTL`), and sentences (`failed to get token: connection refused`). Flags, small numbers, times,
//! paths and addresses stay only under names that are perhaps a secret's.

use std::ops::Range;

use super::{bootstrap_token, client_secret, json_web_token, kubernetes_secret};
use crate::redaction::name::Name;
use crate::redaction::scan::{Look, Scan};
use crate::redaction::shape;
use crate::redaction::value::{self, Value};
use crate::redaction::view::View;
use crate::redaction::words::{self, Kind};
use crate::redaction::wrap;

mod arguments;
pub(super) mod collection;
mod innocent;
mod markup;
mod predicate;
mod prose;
mod separator;

use separator::Separator;

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let Some((kind, word)) = words::kind(view, &anchor) else { return };
    let word_end = word.end;
    let name = Name::around(view, word, scan.resume());
    if kind == Kind::Secret && kubernetes_secret::is_kind(view, &name.range) {
        kubernetes_secret::examine(scan, name.range);
        return;
    }
    let Some((separator, start)) =
        separator::after(view, &name, kind).or_else(|| block(view, &name))
    else {
        return examine_spoken(scan, &name, kind);
    };
    if kind == Kind::Key {
        if !scan.is_new(Look::Key, name.range.start) {
            return;
        }
        scan.note(Look::Key, name.range.end);
    }
    let Some((kind, rule)) = rule_for(kind, &name) else { return };
    if kind == Kind::Weak
        && view.reads(word_end.saturating_sub(4), b"code")
        && view.at(word_end) == b':'
    {
        // The code of an error: only those that are as good as a password go.
        return;
    }
    if name.has("stdin") {
        // The value is piped, and another rule looks for it at the end of this name.
        return;
    }
    if kind != Kind::Weak {
        // A weak word may be a part of a name with a better one in it.
        scan.skip_to(name.range.end);
    }
    let subject = Subject { name, kind, rule, separator };
    let start = after_foreign_marker(view, start);
    if view.at(start) == b'[' && after_type(view, start) == start {
        collection::examine_list(scan, &subject, start + 1);
    } else if is_object(view, start) {
        collection::examine_object(scan, &subject, start);
    } else if view.is_break(start) && collection::examine_lines(scan, &subject, start) {
        // Its lines were looked at.
    } else {
        examine_value(scan, &subject, start);
    }
}

/// At the type of a parameter: `{"type": "securestring", "value": "secret"}`.
pub(in crate::redaction) fn examine_typed(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let name = Name::around(view, anchor, scan.resume());
    if !(value::is_quote(view.before(name.range.start)) && value::is_quote(view.at(name.range.end)))
    {
        return;
    }
    let Some(start) = separator::entry(view, &name) else { return };
    let subject =
        Subject { name, kind: Kind::Password, rule: "password", separator: Separator::Entry };
    examine_value(scan, &subject, start);
}

/// The longest password that is looked for in a sentence.
const LONGEST_SPOKEN: usize = 128;

/// `Setting password VALUE for user NAME`, as cloudbase-init says it.
fn examine_spoken(scan: &mut Scan<'_>, name: &Name<'_>, kind: Kind) {
    let view = scan.view;
    let start = name.range.end + 1;
    if view.at(name.range.end) != b' ' || kind != Kind::Password {
        return;
    }
    let near = view.slice(start.min(view.len())..view.len().min(start + LONGEST_SPOKEN));
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
    kind: Kind,
    rule: &'static str,
    separator: Separator,
}

/// What the value of such a name is, if it can be a secret.
fn rule_for(kind: Kind, name: &Name<'_>) -> Option<(Kind, &'static str)> {
    let rule = match kind {
        // A program: `docker-credential-pass`.
        _ if name.has("dockercredential") => return None,
        Kind::Password if name.is("nopasswd") => return None,
        Kind::Password => "password",
        Kind::Token => "token",
        Kind::Secret if name.has("clientsecret") || name.has("principalsecret") => "client-secret",
        Kind::Weak if CODES.split_ascii_whitespace().any(|code| name.is(code)) => {
            return Some((Kind::Password, "password"));
        }
        Kind::Secret | Kind::Weak => "secret",
        Kind::Credential => "credential",
        Kind::SharedAccess => "sas-token",
        Kind::Key if name.is_secret_key() => "key",
        Kind::Key if name.is_some_key() || name.is_parameter() => return Some((Kind::Weak, "key")),
        Kind::Key => return None,
        Kind::RegistryAuth => name.is_authentication().then_some("registry-auth")?,
        Kind::ProtectedSettings => "protected-settings",
        Kind::KeyContent => name.is_secret_content().then_some("key")?,
        Kind::UserData => "user-data",
        Kind::ConnectionString => "connection-string",
        Kind::Cookie => "cookie",
    };
    Some((kind, rule))
}

/// What a `code` is for if it is as good as a password: `mfa_code`.
const CODES: &str = "mfacode 2facode otpcode totpcode smscode authcode unlockcode verificationcode pincode pukcode \
    accesscode usercode devicecode recoverycode backupcode securitycode activationcode invitecode";

/// The braces after a quoted name: `variable "password" {`.
fn block(view: &View, name: &Name<'_>) -> Option<(Separator, usize)> {
    let end = name.range.end;
    let is_quoted = view.before(name.range.start) == b'"' && view.at(end) == b'"';
    let brace = value::after_blanks(view, end + 1);
    (is_quoted && view.at(brace) == b'{').then_some((Separator::Tight, brace))
}

/// Where a value begins after the type that languages print before it: `string(6) "value"`,
/// `[]string{"value"}`.
fn after_type(view: &View, start: usize) -> usize {
    const LIST: &[u8] = b"[]string{";
    const TEXT: &[u8] = b"string(";
    if view.reads(start, LIST) {
        return start + LIST.len();
    }
    if view.reads(start, TEXT) {
        let digits = start + TEXT.len();
        let close = (digits..digits + 8).find(|at| !view.at(*at).is_ascii_digit());
        let close = close.filter(|at| *at > digits && view.at(*at) == b')');
        return close.map_or(start, |close| value::after_blanks(view, close + 1));
    }
    start
}

/// Where a value begins after the anchor of YAML: `&name value`.
fn after_anchor(view: &View, subject: &Subject<'_>, start: usize) -> usize {
    let length = view
        .count_while((start + 1).min(view.len())..view.len().min(start + 32), |byte| {
            byte.is_ascii_alphanumeric() || byte == b'_'
        });
    let end = start + 1 + length;
    let is_anchor = subject.separator == Separator::Loose
        && view.at(start) == b'&'
        && length > 0
        && value::is_blank(view.at(end))
        && !view.is_break(end);
    if is_anchor { value::after_blanks(view, end) } else { start }
}

/// Where a value goes on after the marker of another program: `[REDACTED]value`.
fn after_foreign_marker(view: &View, start: usize) -> usize {
    const WORDS: [&[u8]; 4] = [b"redacted", b"hidden", b"masked", b"filtered"];
    if !matches!(view.at(start), b'[' | b'<' | b'(') {
        return start;
    }
    let end =
        WORDS.iter().find(|word| view.reads(start + 1, word)).map(|word| start + 1 + word.len());
    let is_beside = |end: &usize| {
        matches!(view.at(*end), b']' | b'>' | b')')
            && view.at(end + 1).is_ascii_alphanumeric()
            && !view.is_break(end + 1)
    };
    end.filter(is_beside).map_or(start, |end| end + 1)
}

/// The lines of YAML's `!vault |`.
fn tagged_block(view: &View, start: usize) -> Option<Range<usize>> {
    matches!(view.at(start), b'!' | b'&').then_some(())?;
    let limit = view.next_break(start + 1).min(start + 32);
    let length = view.count_while(start..limit.max(start), |byte| !value::is_blank(byte));
    value::block(view, value::after_blanks(view, start + length))
}

/// `!!binary`, `!vault`, `&anchor`: what YAML writes before a value.
fn is_tag(text: &[u8]) -> bool {
    text.strip_prefix(b"!")
        .or_else(|| text.strip_prefix(b"&"))
        .is_some_and(|tag| shape::is_word(tag.trim_ascii_start()) || tag.starts_with(b"!"))
}

fn is_object(view: &View, start: usize) -> bool {
    view.at(start) == b'{' && {
        let next = view.at(start + 1);
        value::is_quote(next) || matches!(next, b' ' | b'}') || view.is_break(start + 1)
    }
}

fn examine_value(scan: &mut Scan<'_>, subject: &Subject<'_>, start: usize) {
    let view = scan.view;
    let start = after_anchor(view, subject, after_type(view, start));
    if examine_form(scan, start) {
        return;
    }
    if subject.separator == Separator::Loose
        && let Some(block) = tagged_block(view, start)
    {
        judge(scan, subject, &Value { range: block, quoted: true });
        return;
    }
    if let Some(block) = value::block(view, start) {
        judge(scan, subject, &Value { range: block, quoted: true });
        return;
    }
    let value = match subject.separator {
        Separator::Markup { end } => Value { range: start..end, quoted: true },
        Separator::Cell => Value { range: start..value::end_of_cell(view, start), quoted: true },
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
    let before = scan.count();
    if let Some(secret) = client_secret::secret_at(view, start) {
        scan.strike(secret, client_secret::RULE);
    } else if view.bytes()[start..].starts_with(b"eyJ") {
        json_web_token::examine(scan, start..start + 3);
    }
    scan.count() > before && !is_quoted
}

/// Removes `value` unless it cannot be a secret.
fn judge(scan: &mut Scan<'_>, subject: &Subject<'_>, value: &Value) {
    let view = scan.view;
    let text = view.slice(value.range.clone());
    // Only what is short can be let go, or else looking at it again and again would take too long.
    let is_short = text.len() <= shape::LONGEST_HARMLESS;
    if is_short && (text.starts_with(b"-----BEGIN") || innocent::is_innocent(view, subject, value))
    {
        return;
    }
    if let Some(quote) = innocent::quote_of_json(view, subject, value) {
        scan.strike_bare(value.range.clone(), subject.rule, quote);
        return;
    }
    let end = if value.quoted {
        value.range.end
    } else if subject.separator == Separator::Loose && is_tag(text) {
        value::at(view, value::after_blanks(view, value.range.end)).range.end
    } else {
        let end = value::over_blanks(view, &value.range);
        end.max(prose::phrase_end(view, subject, value))
    };
    scan.strike(value.range.start..end, subject.rule);
    strike_pieces(scan, end, subject.rule);
}

/// Removes the pieces of a value that goes on after its line, behind the prefix of a log.
fn strike_pieces(scan: &mut Scan<'_>, end: usize, rule: &'static str) {
    for piece in wrap::pieces_behind_prefix(scan.view, end) {
        scan.strike(piece, rule);
    }
}

#[cfg(test)]
mod tests;
