//! Which values are no secret although their name is one's.

use super::{Separator, Subject, prose};
use crate::redaction::shape;
use crate::redaction::value::{self, Value};
use crate::redaction::view::View;
use crate::redaction::words::Kind;

pub(super) fn is_innocent(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let text = view.slice(value.range.clone());
    let can_be_prose = !value.quoted && subject.separator.is_loose();
    is_harmless(view, subject, text)
        || subject.name.is_about()
            && !text.split(|byte| b":/.,".contains(byte)).any(shape::is_key_like)
        || can_be_prose && prose::reads_on(view, subject, value)
        || subject.rule == "secret" && is_object_name(text)
        || subject.rule == "key" && is_public_key(text)
        || subject.kind == Kind::UserData && !is_encoded(text)
        || matches!(subject.rule, "token" | "sas-token") && is_shared_access_signature(view, value)
        || subject.kind != Kind::Password && is_number_of_json(view, subject, value)
        || subject.kind == Kind::RegistryAuth && (text.len() < 8 || shape::is_word(text))
}

fn is_harmless(view: &View, subject: &Subject<'_>, text: &[u8]) -> bool {
    match subject.kind {
        Kind::Password => {
            let is_directory = ["pwd", "oldpwd"].iter().any(|name| subject.name.is(name));
            let is_spoken_of = subject.separator == Separator::Loose
                && prose::is_in_sentence(view, &subject.name)
                && shape::is_harmless(text);
            shape::is_no_password(text)
                || is_spoken_of
                || is_directory && shape::is_path(text)
                || subject.name.is("pass") && is_result(view, subject, text)
        }
        Kind::Weak => {
            // Sessions of Express begin with it.
            let text = text.strip_prefix(b"s:").unwrap_or(text);
            let end = text.iter().position(|byte| b"?&;".contains(byte)).unwrap_or(text.len());
            !shape::is_opaque(&text[..end]) || shape::is_address(text)
        }
        _ => shape::is_harmless(text),
    }
}

/// `PASS: test_join`, `pass: 12`: the result of a test.
fn is_result(view: &View, subject: &Subject<'_>, text: &[u8]) -> bool {
    subject.separator == Separator::Loose
        && view.at(value::after_blanks(view, subject.name.range.end)) != b'='
        && (shape::is_word(text) || shape::is_number(text))
}

/// A bare number of JSON. Secrets other than passwords are strings there.
fn is_number_of_json(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let mut text = view.slice(value.range.clone()).iter();
    let is_json = view.at(subject.name.range.end) == b'"' && !value.quoted;
    is_json && text.all(|byte| byte.is_ascii_digit() || b".-+eE".contains(byte))
}

/// The quotation mark of the name of a bare value of JSON, in whose place a marker would not parse.
pub(super) fn quote_of_json(view: &View, subject: &Subject<'_>, value: &Value) -> Option<usize> {
    let quote = subject.name.range.end;
    is_number_of_json(view, subject, value).then_some(quote)
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
    let rest = view.slice(start..view.len().min(start + shape::LONGEST_HARMLESS));
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
