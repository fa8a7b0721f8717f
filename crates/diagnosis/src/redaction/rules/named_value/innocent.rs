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
        || is_refusal(text)
        || subject.name.is_about()
            && !text.split(|byte| b":/.,".contains(byte)).any(shape::is_key_like)
        || can_be_prose && prose::reads_on(view, subject, value)
        || subject.rule == "secret" && is_object_name(text)
        || matches!(subject.rule, "secret" | "token") && is_name_of_token(text)
        || subject.rule == "key" && is_public_key(text)
        || subject.kind == Kind::UserData && !is_encoded(text)
        || matches!(subject.rule, "token" | "sas-token") && is_shared_access_signature(view, value)
        || is_lenient_number(view, subject, value)
        || subject.kind == Kind::RegistryAuth && (text.len() < 8 || shape::is_word(text))
}

/// `{"error":"invalid_request","error_description":"Identity not found"}`: what a token service answers in
/// place of a token. Nothing in it looks like a key.
fn is_refusal(text: &[u8]) -> bool {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !b" '\\".contains(byte)).collect();
    text.starts_with(b"{\"error\":\"")
        && text.len() <= 512
        && !text.split(|byte| !byte.is_ascii_alphanumeric()).any(shape::is_key_like)
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
        Kind::Token | Kind::Secret | Kind::Credential | Kind::Key => {
            shape::is_no_password(text)
                || is_lenient(view, subject, text) && shape::is_harmless(text)
        }
        Kind::Cookie => shape::is_harmless(text) || is_handle(text),
        _ => shape::is_harmless(text),
    }
}

/// Where a value that looks harmless is believed to be, after the name of a token, secret or key: beside
/// the name without a mark, in a sentence, the number of something, the tag of an
/// image, and the file of a private key.
fn is_lenient(view: &View, subject: &Subject<'_>, text: &[u8]) -> bool {
    let name = &subject.name;
    let is_joined = match subject.separator {
        Separator::Loose => !prose::is_in_sentence(view, name),
        Separator::Beside => false,
        Separator::Tight
        | Separator::Flag
        | Separator::Markup { .. }
        | Separator::Entry
        | Separator::Cell => true,
    };
    let is_image = view.before(name.range.start) == b'/' && view.at(name.range.end) == b':';
    let is_count = name.is_plural() && shape::is_number(text);
    let is_file = name.is_key_file() && (shape::is_path(text) || shape::is_file_name(text));
    !is_joined
        || is_image
        || is_count
        || is_file
        || is_kind_of_machine(text)
        || shape::is_digest(text)
}

/// The number of a request, which programs call a cookie too: `reply_cookie=4711`, `0x63825363`.
fn is_handle(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    text.len() <= 18
        && digits.iter().all(u8::is_ascii_hexdigit)
        && (digits.len() < text.len() || shape::is_number(digits))
}

/// `libsecret-1-0:amd64`: a package.
fn is_kind_of_machine(text: &[u8]) -> bool {
    matches!(text, b"amd64" | b"arm64" | b"i386" | b"all")
}

/// `PASS: test_join`, `pass: 12`: the result of a test.
fn is_result(view: &View, subject: &Subject<'_>, text: &[u8]) -> bool {
    subject.separator == Separator::Loose
        && view.at(value::after_blanks(view, subject.name.range.end)) != b'='
        && (shape::is_word(text) || shape::is_number(text))
}

/// A bare number of JSON.
fn is_number_of_json(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let mut text = view.slice(value.range.clone()).iter();
    let is_json = view.at(subject.name.range.end) == b'"' && !value.quoted;
    is_json && text.all(|byte| byte.is_ascii_digit() || b".-+eE".contains(byte))
}

/// A number of JSON under a name that is only perhaps one of a secret, or in the plural: a count.
fn is_lenient_number(view: &View, subject: &Subject<'_>, value: &Value) -> bool {
    let is_secret =
        matches!(subject.kind, Kind::Password | Kind::Token | Kind::Secret | Kind::Credential);
    (!is_secret || subject.name.is_plural()) && is_number_of_json(view, subject, value)
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

/// `default-token-7x2kd`: the Secret with the token of a service account.
fn is_name_of_token(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let Some(at) = memchr::memmem::rfind(text, b"-token-") else { return false };
    let (account, suffix) = (&text[..at], &text[at + b"-token-".len()..]);
    suffix.len() == 5
        && suffix.iter().all(is_letter)
        && account.first().is_some_and(u8::is_ascii_lowercase)
        && account.iter().all(|byte| is_letter(byte) || *byte == b'-')
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
