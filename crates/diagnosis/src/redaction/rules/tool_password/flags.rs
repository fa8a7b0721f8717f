//! Programs that take a password with a flag.

use std::ops::Range;

use super::{RULE, begins, command_end, is_innocent, strike_value};
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

/// How a value follows its flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `-p value`, `-p=value`.
    Next,
    /// The same, or `-pvalue`.
    NextOrAttached,
    /// `-pvalue`; without a value the program asks.
    Attached,
    /// `-u user:password`, with this between them.
    Pair(u8),
}

/// A program, or how the names of a family begin; its flags; how they take a password.
type Tool = (&'static str, &'static str, Takes);

const TOOLS: &[Tool] = &[
    ("sshpass", "-p", Takes::NextOrAttached),
    ("mysql", "-p", Takes::Attached),
    ("mariadb", "-p", Takes::Attached),
    ("psexec", "-p", Takes::Next),
    ("schtasks", "/rp /p", Takes::Next),
    ("sqlcmd", "-P", Takes::NextOrAttached),
    ("osql", "-P", Takes::NextOrAttached),
    ("isql", "-P", Takes::NextOrAttached),
    ("bcp ", "-P", Takes::NextOrAttached),
    ("redis-cli", "-a", Takes::Next),
    ("snmp", "-c -A -X", Takes::Next),
    ("ldap", "-w -s", Takes::Next),
    ("smbclient", "-U --user", Takes::Pair(b'%')),
    ("rpcclient", "-U --user", Takes::Pair(b'%')),
    ("smbget", "-U --user", Takes::Pair(b'%')),
    ("net ads", "-U --user", Takes::Pair(b'%')),
    ("net rpc", "-U --user", Takes::Pair(b'%')),
    ("winexe", "-U", Takes::Pair(b'%')),
    ("winrs", "-p:", Takes::Attached),
    ("curl", "-u -U --proxy-user --oauth2-bearer", Takes::Pair(b':')),
    ("ctr ", "-u --user", Takes::Pair(b':')),
    ("lftp", "-u", Takes::Pair(b',')),
    ("ncftp", "-p", Takes::Next),
    ("unzip", "-P", Takes::NextOrAttached),
    ("zip ", "-P", Takes::NextOrAttached),
    ("7z ", "-p", Takes::Attached),
    ("7za ", "-p", Takes::Attached),
    ("rar ", "-p -hp", Takes::Attached),
    ("mongo", "-p", Takes::Next),
    ("cqlsh", "-p", Takes::Next),
    ("ipmitool", "-P", Takes::Next),
    ("racadm", "-p", Takes::Next),
    ("freerdp", "/p:", Takes::Attached),
    ("rdesktop", "-p", Takes::Next),
    ("ipa-", "-w -p -a", Takes::Next),
    ("ssh-keygen", "-N -P", Takes::Next),
    ("mosquitto", "-P", Takes::Next),
    ("certutil", "-p", Takes::Next),
    ("iscsiadm", "-v --value", Takes::Next),
    ("useradd", "-p", Takes::Next),
    ("usermod", "-p", Takes::Next),
    ("manage-bde", "-rp", Takes::Next),
    ("nmcli", "psk password wifi-sec.psk 802-11-wireless-security.psk", Takes::Next),
    ("sqlplus", "sqlplus -s -S -L", Takes::Pair(b'/')),
    ("openssl", "-k -K passwd -1 -5 -6 -apr1", Takes::Next),
    ("adcli", "-W", Takes::Next),
    ("requirepass", "requirepass", Takes::Next),
    ("masterauth", "masterauth", Takes::Next),
];

/// Programs whose `login` takes `-p`.
const LOGINS: &str =
    "docker oras podman nerdctl registry az crane buildah skopeo helm regctl acr ctr ecr oc";

/// At the name of a program.
pub(super) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let program = view.folded(anchor.clone());
    let tools = TOOLS.iter().filter(|(name, ..)| name.as_bytes() == program);
    // `xfreerdp` and `wfreerdp` are the same.
    if !begins(view, &anchor) && program != b"freerdp" {
        return;
    }
    let end = command_end(view, anchor.end);
    let is_about_passwords = view.find(anchor.end..end, b"pass").is_some();
    if matches!(program.as_slice(), b"iscsiadm") && !is_about_passwords {
        return;
    }
    for (_, flags, takes) in tools {
        for flag in flags.split(' ') {
            // The flag may be the program itself, whose next word is meant.
            let from = if flag.as_bytes() == program { anchor.start } else { anchor.end };
            examine_flag(scan, from..end, flag.as_bytes(), *takes);
        }
    }
}

/// Looks at every value of `flag` in a command.
fn examine_flag(scan: &mut Scan<'_>, command: Range<usize>, flag: &[u8], takes: Takes) {
    let view = scan.view;
    let mut from = command.start;
    while let Some(found) = view.find(from..command.end, flag) {
        let start = from + found;
        let after = start + flag.len();
        from = after;
        let is_word = start == command.start
            || value::is_blank(view.before(start))
            || value::is_quote(view.before(start))
            || view.is_break(start);
        let next = view.at(after);
        let is_apart = value::is_blank(next) || next == b'=';
        let fits = match takes {
            Takes::Next => is_apart,
            Takes::NextOrAttached | Takes::Pair(_) => true,
            Takes::Attached => !is_apart && after < command.end && !view.is_break(after),
        };
        if !is_word || !fits {
            continue;
        }
        let value = after + usize::from(next == b'=');
        match takes {
            Takes::Pair(separator) => strike_pair(scan, value, separator),
            Takes::NextOrAttached if !is_apart && next.is_ascii_lowercase() && flag == b"-P" => {}
            _ => strike_value(scan, value),
        }
    }
}

/// Removes a pair of user and password.
fn strike_pair(scan: &mut Scan<'_>, start: usize, separator: u8) {
    let view = scan.view;
    let start = value::after_blanks(view, start);
    let mut range = value::at(view, start).range;
    if !value::is_quote(view.at(start)) {
        // What parts the pair could also end a value.
        let end = command_end(view, start);
        range.end =
            range.end.max(start + view.count_while(start..end, |byte| !value::is_blank(byte)));
    }
    let pair = view.slice(range.clone());
    if pair.len() > shape::LONGEST_HARMLESS {
        scan.strike(range, RULE);
        return;
    }
    let Some(at) = memchr::memchr(separator, pair) else { return };
    let (user, password) = (&pair[..at], &pair[at + 1..]);
    let is_pair = !user.is_empty()
        && !shape::is_address(pair)
        && !shape::is_path(pair)
        && !is_innocent(password);
    if is_pair && !(shape::is_number(user) && shape::is_number(password)) {
        scan.strike(range, RULE);
    }
}

/// At `login`, anywhere after the program.
pub(super) fn examine_login(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let line = view.line_start(anchor.start + 1).max(anchor.start.saturating_sub(super::LINE / 2));
    let before = view.slice(line..anchor.start).to_ascii_lowercase();
    let is_word = |word: &[u8]| LOGINS.split(' ').any(|program| program.as_bytes() == word);
    let mut words = before.split(|byte| !(byte.is_ascii_alphanumeric() || b"._-".contains(byte)));
    if !value::is_blank(view.before(anchor.start)) || !words.any(is_word) {
        return;
    }
    let end = command_end(view, anchor.end);
    examine_flag(scan, anchor.end..end, b"-p", Takes::Next);
    examine_flag(scan, line..anchor.start, b"-p", Takes::Next);
}

/// At `--user`, `--proxy-user` and `--creds`: the value is a pair of user and password.
pub(super) fn examine_user(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let next = view.at(anchor.end);
    if value::is_blank(next) || next == b'=' {
        strike_pair(scan, anchor.end + usize::from(next == b'='), b':');
    }
}

/// At `--from-literal=NAME=VALUE`, with which Secrets are made.
pub(super) fn examine_literal(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = value::after_blanks(view, anchor.end + usize::from(view.at(anchor.end) == b'='));
    let start = start + usize::from(value::is_quote(view.at(start)));
    let end = view.next_break(start + 1).min(start + 128);
    let near = view.slice(start.min(end)..end);
    let name = near.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte));
    let equals = start + name.count();
    if view.at(equals) == b'=' {
        strike_value(scan, equals + 1);
    }
}

/// Whether the word at `range` is a flag.
pub(super) fn is_flag(view: &View, range: &Range<usize>) -> bool {
    matches!(view.at(range.start), b'-')
}
