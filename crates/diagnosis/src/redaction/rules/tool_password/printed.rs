//! Secrets that stand on lines of their own: what a command printed that reads one, lists of accounts, lines
//! of a dialogue.

use std::ops::Range;

use super::{RULE, command_end, is_innocent};
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value::{self, is_blank};
use crate::redaction::view::View;

/// The longest line that is a secret.
const LONGEST: usize = 512;

/// The most lines of a list.
const MOST_LINES: usize = 16;

/// Commands that read a secret, and what makes them print it alone.
const READERS: [(&str, &str); 7] = [
    ("get secret", "jsonpath template custom-columns"),
    ("secret show", "-o output --query"),
    ("credential show", "-o output --query"),
    (" keys list", "-o output --query"),
    ("get-parameter", "--query"),
    ("get-secret-value", "--query"),
    ("versions access", "--secret"),
];

/// At a command that reads a secret: the next line, if it is one word. A trace goes on with `+`.
pub(super) fn examine_reader(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let command = view.folded(anchor.clone());
    let line_end = view.next_break(anchor.end);
    let rest = view.slice(anchor.end..command_end(view, anchor.end));
    let mut readers = READERS.iter().filter(|(name, _)| name.as_bytes() == command);
    let prints = readers.any(|(_, flags)| {
        flags.split(' ').any(|flag| memchr::memmem::find(rest, flag.as_bytes()).is_some())
    });
    if prints && let Some(word) = lone_word(view, line_end) {
        scan.strike(word, RULE);
    }
}

/// After `vault kv get`, which prints one field alone if it is named.
pub(super) fn examine_field(scan: &mut Scan<'_>, from: usize) {
    let view = scan.view;
    let command = view.slice(from..command_end(view, from));
    if memchr::memmem::find(command, b"-field").is_some()
        && let Some(word) = lone_word(view, view.next_break(from))
    {
        scan.strike(word, RULE);
    }
}

/// The word that begins the line at `line`, if it can be a secret: alone there, or of letters and digits.
fn lone_word(view: &View, line: usize) -> Option<Range<usize>> {
    view.is_break(line).then_some(())?;
    let end = view.next_break(line + 1);
    let text = view.slice(line..end.min(line + LONGEST)).trim_ascii_end();
    let length = text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len());
    let word = &text[..length];
    let is_mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
    let is_secret = length >= 4
        && (length == text.len() || is_mixed && length >= 6 && !shape::is_harmless(word))
        && !b"+#[{<(".contains(&word[0])
        && !word.ends_with(b":")
        && !is_innocent(word);
    is_secret.then_some(line..line + length)
}

/// At `passwords` at the end of a line, with which cloud-init begins its list of `user:password`.
pub(super) fn examine_banner(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let mut line = anchor.end + usize::from(view.at(anchor.end) == b':');
    for _ in 0..MOST_LINES {
        let Some(password) = account(view, line) else { return };
        scan.strike(password, RULE);
        line = view.next_break(line + 1);
    }
}

/// The password in the line `user:password` that begins at `line`; the prefix of a log may stand before.
fn account(view: &View, line: usize) -> Option<Range<usize>> {
    view.is_break(line).then_some(())?;
    let end = view.next_break(line + 1).min(line + LONGEST);
    let text = view.slice(line..end);
    let word = memchr::memmem::find(text, b"]: ").map_or(0, |at| at + b"]: ".len());
    let length = text[word..].iter().position(|byte| is_blank(*byte)).unwrap_or(text.len() - word);
    let entry = &text[word..word + length];
    let colon = memchr::memchr(b':', entry)?;
    let (user, password) = (&entry[..colon], &entry[colon + 1..]);
    let is_user = !user.is_empty()
        && user.len() <= 64
        && user.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-\\@".contains(byte));
    let start = line + word + colon + 1;
    (is_user && password.len() >= 4).then_some(start..line + word + length)
}

/// At `Password:` in base64, with which a mail server asks for one: the next line is the answer.
pub(super) fn examine_prompt(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let line = view.next_break(anchor.end);
    if !view.is_break(line) {
        return;
    }
    let end = view.next_break(line + 1).min(line + LONGEST);
    let text = view.slice(line..end).trim_ascii_end();
    let word = text.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    if text.len() > word && word <= 64 {
        scan.strike(line + word..line + text.len(), RULE);
    }
}

/// At the id of a secret of Azure's Key Vault: the member `value` of the same object.
pub(super) fn examine_vault_entry(scan: &mut Scan<'_>, anchor: Range<usize>) {
    const NAME: &[u8] = b"\"value\":";
    let view = scan.view;
    let end = view.len().min(anchor.end + LONGEST);
    let Some(at) = view.find(anchor.end..end, NAME) else { return };
    let start = value::after_blanks(view, anchor.end + at + NAME.len());
    let is_same = !view.slice(anchor.end..anchor.end + at).contains(&b'}');
    if is_same && view.at(start) == b'"' {
        super::strike_value(scan, start);
    }
}

/// At the sentence with which a program tells the code to sign in with: capital letters and digits.
pub(super) fn examine_code(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = anchor.end;
    let length = view.count_while(start..command_end(view, start), |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-'
    });
    if (6..=16).contains(&length) {
        scan.strike(start..start + length, RULE);
    }
}

/// At `auth plain` and the like of a mail client: the word that follows, in base64.
pub(in crate::redaction::rules) fn examine_mail(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    // `auth`, then the name of the method.
    let method =
        anchor.end + view.find(anchor.end..command_end(view, anchor.end), b" ").unwrap_or(0);
    let method = value::after_blanks(view, method);
    let start =
        method + view.count_while(method..command_end(view, method), |byte| !is_blank(byte));
    let start = value::after_blanks(view, start);
    let length = view.count_while(start..command_end(view, start), |byte| {
        byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
    });
    let text = view.slice(start..start + length);
    if length >= 8 && !shape::is_word(text) {
        scan.strike(start..start + length, RULE);
    }
}

/// At the group or the user of a line of a static token file: `token,user,uid,"group"`.
pub(super) fn examine_static_token(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let line = view.line_start(anchor.start + 1).max(anchor.start.saturating_sub(LONGEST));
    let before = view.slice(line..anchor.start);
    let word = before.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    let fields: Vec<&[u8]> = before[word..].splitn(4, |byte| *byte == b',').collect();
    let is_user = view.at(anchor.start + 1) == b'k';
    let token = fields.first().copied().unwrap_or_default();
    if token.len() >= 8 && (fields.len() == 3 || is_user && fields.len() == 1) {
        scan.strike(line + word..line + word + token.len(), RULE);
    }
}

/// At `user =` of a file of curl's options: `user = "name:password"`.
pub(super) fn examine_user_setting(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = value::after_blanks(view, anchor.end);
    if !view.reads(start, b"system:") && !view.reads(start, b"\"system:") {
        super::flags::strike_pair(scan, start, b':');
    }
}
