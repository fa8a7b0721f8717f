//! Programs that take a password as one of their words.

use std::ops::Range;

use super::{RULE, begins, command_end, flags, is_innocent, printed, strike_value};
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

/// The most words of a command that are looked at.
const MOST_WORDS: usize = 24;

/// The words of a command, without flags of Linux; quotations are one word.
fn words(view: &View, from: usize) -> Vec<Range<usize>> {
    let end = command_end(view, from);
    let mut words = Vec::new();
    let mut position = value::after_blanks(view, from);
    while position < end && words.len() < MOST_WORDS && !b"|;&>".contains(&view.at(position)) {
        let value = value::at(view, position);
        let close = usize::from(value.quoted && value::is_quote(view.at(value.range.end)));
        let next = value::after_blanks(view, value.range.end + close);
        if !value.range.is_empty() && !flags::is_flag(view, &(position..next)) {
            words.push(value.range);
        }
        if next <= position || view.is_break(next) && next < end {
            break;
        }
        position = next;
    }
    words
}

fn strike(scan: &mut Scan<'_>, word: Range<usize>) {
    if !is_innocent(scan.view.slice(word.clone())) {
        scan.strike(word, RULE);
    }
}

/// At `net use` and `net user`: `net use Z: \\server\share VALUE /user:NAME`, `net user NAME VALUE`.
pub(super) fn examine_net(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_user = matches!(view.at(anchor.end), b'r' | b'R');
    let from = anchor.end + usize::from(is_user);
    if !begins(view, &anchor) || !value::is_blank(view.at(from)) {
        return;
    }
    let words = words(view, from);
    let is_switch = |word: &Range<usize>| view.at(word.start) == b'/';
    if is_user {
        if let Some(word) = words.iter().filter(|word| !is_switch(word)).nth(1) {
            strike(scan, word.clone());
        }
        return;
    }
    let is_share = |word: &Range<usize>| {
        let text = view.slice(word.clone());
        view.at(word.start) == b'\\' || matches!(text, [_]) || is_switch(word)
    };
    let has_user = words.iter().any(|word| view.reads(word.start, b"/user:"));
    if let Some(word) =
        words.iter().find(|word| !is_share(word)).filter(|_| has_user || words.len() > 1)
    {
        strike(scan, word.clone());
    }
}

/// The words of a program before the one that is a password.
const BEFORE: &[(&str, usize)] = &[
    ("htpasswd", 2),
    ("rabbitmqctl", 2),
    ("wpa_passphrase", 1),
    ("bitsadmin", 5),
    ("mc alias set", 3),
    ("mc config host", 4),
    ("pro attach", 0),
    ("ua attach", 0),
    ("consul kv put", 1),
    ("user-secrets set", 1),
    ("createuser ", 2),
    ("etcdctl put", 1),
    ("etcdctl set", 1),
    ("autologon.exe", 2),
    ("autologon64.exe", 2),
    ("autologon ", 2),
];

/// At programs that take a password as a certain word: `htpasswd -b FILE USER VALUE`.
pub(super) fn examine_certain(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_apart = value::is_blank(view.at(anchor.end)) || value::is_blank(view.before(anchor.end));
    if !begins(view, &anchor) || !is_apart {
        return;
    }
    let program = view.folded(anchor.clone());
    let Some((name, before)) = BEFORE.iter().find(|(name, _)| name.as_bytes() == program) else {
        return;
    };
    let is_meant = match *name {
        "htpasswd" => has_batch(view, anchor.end, b'b'),
        "rabbitmqctl" => takes_password(view, anchor.end),
        _ => true,
    };
    let mut words = words(view, anchor.end);
    if name.starts_with("autologon") {
        words.retain(|word| view.at(word.start) != b'/');
    }
    let has_no_file = *name == "htpasswd" && has_batch(view, anchor.end, b'n');
    if is_meant && let Some(word) = words.get(*before - usize::from(has_no_file)) {
        strike(scan, word.clone());
    }
}

/// `smbclient //server/share VALUE`: the word beside the share.
pub(super) fn examine_share(scan: &mut Scan<'_>, from: usize) {
    let view = scan.view;
    let share = value::after_blanks(view, from);
    let end = command_end(view, from);
    let length = view.count_while(share.min(end)..end, |byte| !value::is_blank(byte));
    let start = value::after_blanks(view, share + length);
    let is_share = view.reads(share, b"//") || view.reads(share, b"'//");
    if is_share && start < end && !b"-|;&".contains(&view.at(start)) {
        strike_value(scan, start);
    }
}

/// Whether a flag of `htpasswd` has this letter: `b`, the password is an argument; `n`, there is no file.
fn has_batch(view: &View, from: usize, letter: u8) -> bool {
    let command = view.slice(from..command_end(view, from));
    let mut flags = command.split(|byte| *byte == b' ').filter(|word| word.starts_with(b"-"));
    flags.any(|flag| flag.contains(&letter))
}

/// Whether a command of `rabbitmqctl` takes a password.
fn takes_password(view: &View, from: usize) -> bool {
    ["add_user", "change_password", "authenticate_user"].iter().any(|command| {
        let end = command_end(view, from);
        view.find(from..end, command.as_bytes()).is_some()
    })
}

/// At `vault`: `vault login VALUE`, `vault operator unseal VALUE`.
pub(super) fn examine_vault(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    if !begins(view, &anchor) || !value::is_blank(view.at(anchor.end)) {
        return;
    }
    let words = words(view, anchor.end);
    if words.iter().take(2).any(|word| is_one_of(view, word, &[b"put", b"patch", b"write"])) {
        words.iter().skip(2).for_each(|word| strike_assigned(scan, word));
        return;
    }
    if words.iter().take(2).any(|word| is_one_of(view, word, &[b"get", b"read"])) {
        printed::examine_field(scan, anchor.end);
        return;
    }
    let command = words.iter().take(2).position(|word| {
        [&b"login"[..], b"unseal", b"unwrap"].iter().any(|name| view.reads(word.start, name))
    });
    let Some(word) = command.and_then(|command| words.get(command + 1)) else { return };
    if word.len() >= 8 && !view.slice(word.clone()).contains(&b'=') {
        strike(scan, word.clone());
    }
}

fn is_one_of(view: &View, word: &Range<usize>, names: &[&[u8]]) -> bool {
    let text = view.slice(word.clone());
    names.contains(&text)
}

/// At commands that set secrets: `fly secrets set NAME=VALUE`.
pub(super) fn examine_assigned(scan: &mut Scan<'_>, anchor: Range<usize>) {
    for word in words(scan.view, anchor.end) {
        strike_assigned(scan, &word);
    }
}

/// Removes the value of `name=value`.
fn strike_assigned(scan: &mut Scan<'_>, word: &Range<usize>) {
    let view = scan.view;
    let Some(equals) = view.find(word.clone(), b"=") else { return };
    let start = word.start + equals + 1;
    let is_quoted = value::is_quote(view.at(start)) && start + 1 < word.end;
    strike(scan, start + usize::from(is_quoted)..word.end);
}

/// At words of SQL before a password: `IDENTIFIED BY 'VALUE'`.
pub(super) fn examine_next(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = value::after_blanks(view, anchor.end);
    let start = if view.reads(start, b"password ") { start + b"password ".len() } else { start };
    if value::is_quote(view.at(start)) {
        strike_value(scan, start);
    }
}

/// At `IDENTIFIED WITH method BY 'VALUE'`.
pub(super) fn examine_identified(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = command_end(view, anchor.end).min(anchor.end + 64);
    let by = (anchor.end..end).find(|at| view.reads(*at, b" by "));
    let start = by.map(|by| value::after_blanks(view, by + b" by ".len()));
    if let Some(start) = start.filter(|start| value::is_quote(view.at(*start))) {
        strike_value(scan, start);
    }
}

/// At programs that make a hash of a word: `mkpasswd -m sha-512 VALUE`, `openssl passwd -salt x VALUE`.
pub(super) fn examine_hashed(scan: &mut Scan<'_>, anchor: Range<usize>) {
    const FLAGS_WITH_A_WORD: [&[u8]; 4] = [b" -m ", b" -salt ", b" -S ", b" -R "];
    let view = scan.view;
    if begins(view, &anchor) && value::is_blank(view.at(anchor.end)) {
        let end = command_end(view, anchor.end);
        let flags = FLAGS_WITH_A_WORD.iter();
        let before = flags.filter(|flag| view.find(anchor.end..end, flag).is_some()).count();
        if let Some(word) = words(view, anchor.end).get(before) {
            strike(scan, word.clone());
        }
    }
}

/// At the port in `host:port:database:user:VALUE`, a line of `.pgpass`.
pub(super) fn examine_database_list(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = command_end(view, anchor.end);
    let fields = if view.at(anchor.start + 1) == b'*' { 1 } else { 2 };
    let mut start = anchor.end;
    for _ in 0..fields {
        let Some(colon) = view.find(start..end, b":") else { return };
        let field = view.slice(start..start + colon);
        if field.is_empty() || field.iter().any(|byte| b" /\"'".contains(byte)) {
            return;
        }
        start += colon + 1;
    }
    let rest = view.slice(start..end);
    let length = rest.iter().position(|byte| value::is_blank(*byte)).unwrap_or(rest.len());
    if length >= 3 && !shape::is_placeholder(&rest[..length]) {
        scan.strike(start..start + length, RULE);
    }
}

/// At `ConvertTo-SecureString`, which takes the text to be secured as its first argument.
pub(super) fn examine_secure_string(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = command_end(view, anchor.end);
    let start = value::after_blanks(view, anchor.end);
    let command = view.slice(anchor.end..end);
    let named =
        memchr::memmem::find(command, b"-String ").map(|at| anchor.end + at + b"-String ".len());
    let is_plain = command.windows(12).any(|text| text.eq_ignore_ascii_case(b"-AsPlainText"));
    if is_plain && let Some(text) = piped_text(view, anchor.start) {
        strike(scan, text);
    }
    // A trace of PowerShell says the name and the value of each argument.
    if let Some(at) = memchr::memmem::find(command, b"value=\"") {
        strike_value(scan, anchor.end + at + b"value=".len());
    }
    match view.at(start) {
        b'"' | b'\'' => strike_value(scan, start),
        b'-' if named.is_some() => named.into_iter().for_each(|start| strike_value(scan, start)),
        b'-' if is_plain => {
            // The text comes after the flags.
            if let Some(word) = words(view, anchor.end).into_iter().next() {
                strike(scan, word);
            }
        }
        b'-' | b'$' | b'(' => {}
        _ if is_plain => strike_value(scan, start),
        _ => {}
    }
}

/// The quoted text that is piped into the command whose name ends at `end`: `'VALUE' | ConvertTo-…`.
fn piped_text(view: &View, end: usize) -> Option<Range<usize>> {
    let line = view.line_start(end + 1).max(end.saturating_sub(LONGEST_PIPED));
    let before = view.slice(line..end);
    let pipe = memchr::memrchr(b'|', before)?;
    let (close, mark) =
        before[..pipe].iter().copied().enumerate().rfind(|(_, byte)| *byte != b' ')?;
    value::is_quote(mark).then_some(())?;
    let open = memchr::memrchr(mark, &before[..close])?;
    Some(line + open + 1..line + close)
}

/// How far before a command the text is searched that is piped into it.
const LONGEST_PIPED: usize = 160;
