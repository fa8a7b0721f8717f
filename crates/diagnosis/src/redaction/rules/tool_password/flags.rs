//! Programs that take a password with a flag.

use std::ops::Range;

use super::{RULE, begins, command_end, is_innocent, next_element, strike_value, words};
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
    ("redis-cli", "-a auth", Takes::Next),
    ("snmp", "-c -A -X", Takes::Next),
    ("ldap", "-w -s", Takes::Next),
    ("smbclient", "-U --user", Takes::Pair(b'%')),
    ("rpcclient", "-U --user", Takes::Pair(b'%')),
    ("smbget", "-U --user", Takes::Pair(b'%')),
    ("net ads", "-U --user", Takes::Pair(b'%')),
    ("net rpc", "-U --user", Takes::Pair(b'%')),
    ("winexe", "-U", Takes::Pair(b'%')),
    ("winrs", "-p:", Takes::Attached),
    ("curl", "-u -U --proxy-user --oauth2-bearer -E --cert --proxy-cert", Takes::Pair(b':')),
    ("curl", "-b --cookie", Takes::Pair(b'=')),
    ("http -a", "http -a", Takes::Pair(b':')),
    ("https -a", "https -a", Takes::Pair(b':')),
    ("auth_pass", "auth_pass", Takes::Next),
    ("rocommunity", "rocommunity", Takes::Next),
    ("rwcommunity", "rwcommunity", Takes::Next),
    ("server community", "server community", Takes::Next),
    ("server key", "server key", Takes::Next),
    ("stats auth", "stats auth", Takes::Pair(b':')),
    ("netdom", "/pd: /passwordd: /passwordo: /po:", Takes::Attached),
    ("az keyvault", "--value", Takes::Next),
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
    ("put-parameter", "--value", Takes::Next),
    ("gh secret", "--body -b", Takes::NextOrAttached),
    ("encrypt_string", "encrypt_string", Takes::Next),
    ("add-generic-password", "-w", Takes::Next),
    ("add-internet-password", "-w", Takes::Next),
    ("iwconfig", "key", Takes::Next),
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
    let is_part = program == b"freerdp" || program.starts_with(b"server ");
    if !begins(view, &anchor) && !is_part {
        return;
    }
    let end = command_end(view, anchor.end);
    let is_about_passwords = view.find(anchor.end..end, b"pass").is_some();
    if matches!(program.as_slice(), b"iscsiadm") && !is_about_passwords {
        return;
    }
    match program.as_slice() {
        b"curl" => examine_bundle(scan, anchor.end..end),
        b"mysql" if view.reads(anchor.end, b"admin") => {
            examine_flag(scan, anchor.end..end, b"password", Takes::Next);
        }
        b"smbclient" => words::examine_share(scan, anchor.end),
        b"openssl" if view.reads(anchor.end, b" passwd ") => {
            words::examine_hashed(scan, anchor.start..anchor.end + b" passwd".len());
        }
        _ => {}
    }
    for (_, flags, takes) in tools {
        // A setting of several words is its own flag.
        let is_setting = flags.as_bytes() == program;
        for flag in flags.split(|byte| byte == ' ' && !is_setting) {
            // The flag may be the program itself, whose next word is meant.
            let from = if flag.as_bytes() == program { anchor.start } else { anchor.end };
            examine_flag(scan, from..end, flag.as_bytes(), *takes);
        }
    }
}

/// Looks at `-fsSLu user:password`: flags of one letter in one word, of which the last takes a value.
fn examine_bundle(scan: &mut Scan<'_>, command: Range<usize>) {
    let view = scan.view;
    let mut from = command.start;
    while let Some(found) = view.find(from..command.end, b" -") {
        let start = from + found + b" -".len();
        let letters = view.count_while(start..command.end, |byte| byte.is_ascii_alphabetic());
        let end = start + letters;
        if letters > 1 && view.before(end) == b'u' && value::is_blank(view.at(end)) {
            strike_pair(scan, end, b':');
        }
        from = end.max(start);
    }
}

/// Priorities of the journal, which `-p` also takes after `-u`.
const PRIORITIES: &str = "emerg alert crit err error warning notice info debug";

/// At `-u NAME`: a `-p VALUE` beside it is a password, whatever the program. Ports, paths and priorities
/// of the journal are not.
pub(super) fn examine_user_and_password(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_list = view.before(anchor.end) != b' ';
    let end = command_end(view, anchor.end);
    let user = if is_list { next_element(view, anchor.end - 1) } else { Some(anchor.end) };
    let Some(user) = user.map(|user| value::after_blanks(view, user)) else { return };
    let name = value::at(view, user);
    let close = usize::from(name.quoted && value::is_quote(view.at(name.range.end)));
    let mut flag = value::after_blanks(view, name.range.end + close);
    if view.at(flag) == b',' {
        flag = value::after_blanks(view, flag + 1);
    }
    flag += usize::from(value::is_quote(view.at(flag)));
    let after = flag + b"-p".len();
    let is_flag = view.reads(flag, b"-p")
        && (value::is_blank(view.at(after))
            || value::is_quote(view.at(after))
            || view.at(after) == b'=');
    if !is_flag || after >= end || view.at(user) == b'-' {
        return;
    }
    let start = value::after_blanks(view, after + usize::from(view.at(after) == b'='));
    let start = next_element(view, start).unwrap_or(start);
    let text = view.slice(value::at(view, start).range);
    let is_port = text.iter().all(|byte| byte.is_ascii_digit() || b":./-".contains(byte));
    let is_other = is_port
        || text.starts_with(b"/")
        || PRIORITIES.split(' ').any(|priority| text.eq_ignore_ascii_case(priority.as_bytes()));
    if !is_other {
        strike_value(scan, start);
    }
}

/// Looks at every value of `flag` in a command.
fn examine_flag(scan: &mut Scan<'_>, command: Range<usize>, flag: &[u8], takes: Takes) {
    let view = scan.view;
    let mut from = command.start;
    while let Some(start) = find_flag(view, from..command.end, flag) {
        let after = start + flag.len();
        from = after;
        let is_word = start == command.start
            || value::is_blank(view.before(start))
            || value::is_quote(view.before(start))
            || view.is_break(start);
        let next = view.at(after);
        let is_apart = value::is_blank(next) || next == b'=' || next_element(view, after).is_some();
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
            Takes::NextOrAttached
                if !is_apart
                    && flag == b"-P"
                    && shape::is_word(view.slice(value::at(view, value).range)) => {}
            _ => strike_value(scan, value),
        }
    }
}

/// Where the next `flag` is. Switches of Windows and words are written in any case.
fn find_flag(view: &View, command: Range<usize>, flag: &[u8]) -> Option<usize> {
    if flag.starts_with(b"-") {
        return view.find(command.clone(), flag).map(|found| command.start + found);
    }
    command.clone().find(|at| view.reads(*at, flag))
}

/// Removes a pair of user and password.
pub(super) fn strike_pair(scan: &mut Scan<'_>, start: usize, separator: u8) {
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
    let is_word = |word: &[u8]| {
        let word =
            word.strip_suffix(b".exe").or_else(|| word.strip_suffix(b".cmd")).unwrap_or(word);
        LOGINS.split(' ').any(|program| program.as_bytes() == word)
    };
    let mut words = before.split(|byte| !(byte.is_ascii_alphanumeric() || b"._-".contains(byte)));
    let before = view.before(anchor.start);
    if view.at(anchor.end) == b'=' {
        strike_pair(scan, anchor.end + 1, b':');
        return;
    }
    if !(value::is_blank(before) || value::is_quote(before)) || !words.any(is_word) {
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
