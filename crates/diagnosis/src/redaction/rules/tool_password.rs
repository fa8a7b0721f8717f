//! Rule `tool-password`.
//!
//! Removes: passwords that well-known programs take under short names: `docker login -p`,
//! `sshpass -p`, `curl -u user:password`, `crictl pull --creds`, `ConvertTo-SecureString`, and what is
//! piped into `chpasswd` and `sudo -S`. A trace of the
//! shell prints them like any other argument.
//!
//! Leaves alone: `-p` and `-u` of other programs.

use std::ops::Range;

use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "tool-password";

/// How far from the program its arguments are searched.
const LINE: usize = 400;

/// Programs whose `login` takes `-p`.
const LOGINS: &str = "docker oras podman nerdctl registry az crane buildah skopeo";

/// At `login` or `sshpass`.
pub(in crate::redaction) fn examine_login(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_sshpass = view.reads(anchor.start, b"sshpass");
    if !is_sshpass
        && !LOGINS.split(' ').any(|program| is_before(view, anchor.start, program.as_bytes()))
    {
        return;
    }
    if let Some(after) = argument(view, anchor.end, b" -p")
        && (is_sshpass || value::is_blank(view.at(after)) || view.at(after) == b'=')
    {
        strike_value(scan, after + usize::from(view.at(after) == b'='));
    }
}

/// At `curl`, `--creds` or `--user`: the value is a pair of user and password.
pub(in crate::redaction) fn examine_user(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_program = !view.reads(anchor.start, b"--");
    let after = if is_program { argument(view, anchor.end, b" -u") } else { Some(anchor.end) };
    let Some(after) = after else { return };
    let has_separator = value::is_blank(view.at(after)) || view.at(after) == b'=';
    if !is_program && !has_separator {
        return;
    }
    let start = value::after_blanks(view, after + usize::from(view.at(after) == b'='));
    let range = value::at(view, start).range;
    let pair = &view.bytes()[range.clone()];
    if pair.len() > shape::LONGEST_HARMLESS {
        scan.strike(range, RULE);
        return;
    }
    let Some(colon) = memchr::memchr(b':', pair) else { return };
    let (user, password) = (&pair[..colon], &pair[colon + 1..]);
    let is_pair = !user.is_empty() && !shape::is_address(pair) && !shape::is_harmless(password);
    if is_pair && !(shape::is_number(user) && shape::is_number(password)) {
        scan.strike(range, RULE);
    }
}

/// At `chpasswd`, which reads `user:password` from an `echo` before it, a string after it, or the
/// list of cloud-init's setting of that name.
pub(in crate::redaction) fn examine_account_list(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let near = &view.bytes()[anchor.end..view.len().min(anchor.end + LINE)];
    let list = memchr::memmem::find(near, b"list:").map(|at| anchor.end + at + b"list:".len());
    let string = argument(view, anchor.end, b"<<<");
    for start in [echoed(scan, &anchor), string, list].into_iter().flatten() {
        let start = value::after_blanks(view, start);
        let range = value::block(view, start).unwrap_or_else(|| value::at(view, start).range);
        if view.bytes()[range.clone()].contains(&b':') {
            scan.strike(range, RULE);
        }
    }
}

/// At `sudo -S`, which reads the password from an `echo` before it.
pub(in crate::redaction) fn examine_sudo(scan: &mut Scan<'_>, anchor: Range<usize>) {
    if let Some(start) = echoed(scan, &anchor) {
        strike_value(scan, start);
    }
}

/// At `ConvertTo-SecureString`, which takes the text to be secured as its first argument.
pub(in crate::redaction) fn examine_secure_string(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let start = value::after_blanks(view, anchor.end);
    let named = argument(view, anchor.end, b"-String ");
    match view.at(start) {
        b'"' | b'\'' => strike_value(scan, start),
        b'-' => named.into_iter().for_each(|start| strike_value(scan, start)),
        _ => {}
    }
}

fn strike_value(scan: &mut Scan<'_>, start: usize) {
    let range = value::at(scan.view, value::after_blanks(scan.view, start)).range;
    if !shape::is_harmless(&scan.view.bytes()[range.clone()]) {
        scan.strike(range, RULE);
    }
}

/// The argument of the last `echo` on the line before `anchor`.
fn echoed(scan: &Scan<'_>, anchor: &Range<usize>) -> Option<usize> {
    let view = scan.view;
    let line = view.line_start(anchor.start + 1).max(anchor.start.saturating_sub(LINE));
    let before = view.bytes().get(line.max(scan.resume())..anchor.start)?;
    memchr::memmem::rfind(before, b"echo ").map(|at| anchor.start - before.len() + at + 5)
}

/// Whether `program` stands before `position` and a blank.
fn is_before(view: &View, position: usize, program: &[u8]) -> bool {
    let start = position.checked_sub(program.len() + 1);
    start.is_some_and(|start| view.reads(start, program)) && value::is_blank(view.before(position))
}

/// The position after `flag` on the same line.
fn argument(view: &View, from: usize, flag: &[u8]) -> Option<usize> {
    let end = view.next_break(from).min(from + LINE);
    memchr::memmem::find(&view.bytes()[from..end], flag).map(|at| from + at + flag.len())
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn passwords_of_known_programs_go() {
        for (text, expected) in [
            (
                "docker login -u x -p hunter2 r.example",
                "docker login -u x -p [redacted tool-password] r.example",
            ),
            ("sshpass -phunter2 ssh x", "sshpass -p[redacted tool-password] ssh x"),
            (
                "curl -sS -u 'bob:hunter2' https://x",
                "curl -sS -u '[redacted tool-password]' https://x",
            ),
            ("crictl pull --creds bob:hunter2 x", "crictl pull --creds [redacted tool-password] x"),
            (
                "ConvertTo-SecureString \"a b\" -AsPlainText",
                "ConvertTo-SecureString \"[redacted tool-password]\" -AsPlainText",
            ),
            (
                "chpasswd:\n  list: |\n    bob:hunter2\n",
                "chpasswd:\n  list: |\n    [redacted tool-password]\n",
            ),
            ("+ echo hunter2 | sudo -S true", "+ echo [redacted tool-password] | sudo -S true"),
            ("+ echo 'bob:hunter2' | chpasswd", "+ echo '[redacted tool-password]' | chpasswd"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn the_same_flags_of_other_programs_stay() {
        assert_kept(&[
            "mkdir -p /opt/azure",
            "useradd -u 1000:1000 x",
            "docker run --user 1000:1000 x",
            "curl -fsSLv https://packages.example/x",
            "systemctl --user status",
            "login: root -p x",
        ]);
    }
}
