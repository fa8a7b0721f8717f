//! Rule `tool-password`.
//!
//! Removes: passwords that well-known programs take under short names: `docker login -p`,
//! `sshpass -p`, `curl -u user:password`, `crictl pull --creds`, `chpasswd` lines. A trace of the
//! shell prints them like any other argument.
//!
//! Leaves alone: `-p` and `-u` of other programs.

use std::ops::Range;

use super::super::scan::Scan;
use super::super::shape;
use super::super::value;
use super::super::view::View;

const RULE: &str = "tool-password";

/// How far from the program its arguments are searched.
const LINE: usize = 400;

/// Programs whose `login` takes `-p`.
const LOGINS: [&[u8]; 9] = [
    b"docker",
    b"oras",
    b"podman",
    b"nerdctl",
    b"registry",
    b"az",
    b"crane",
    b"buildah",
    b"skopeo",
];

/// At `login` or `sshpass`.
pub(in super::super) fn examine_login(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_sshpass = view.reads(anchor.start, b"sshpass");
    if !is_sshpass && !LOGINS.iter().any(|program| is_before(view, anchor.start, program)) {
        return;
    }
    if let Some(after) = argument(view, anchor.end, b" -p")
        && (is_sshpass || value::is_blank(view.at(after)) || view.at(after) == b'=')
    {
        let start = after + usize::from(view.at(after) == b'=');
        let range = value::at(view, value::after_blanks(view, start)).range;
        if !shape::is_harmless(&view.bytes()[range.clone()]) {
            scan.strike(range, RULE);
        }
    }
}

/// At `curl`, `--creds` or `--user`: the value is a pair of user and password.
pub(in super::super) fn examine_user(scan: &mut Scan<'_>, anchor: Range<usize>) {
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
    let Some(colon) = memchr::memchr(b':', pair) else { return };
    let (user, password) = (&pair[..colon], &pair[colon + 1..]);
    let is_pair = !user.is_empty() && !shape::is_address(pair) && !shape::is_harmless(password);
    if is_pair && !(shape::is_number(user) && shape::is_number(password)) {
        scan.strike(range, RULE);
    }
}

/// At `chpasswd`, which reads `user:password` from an `echo` before it or a string after it.
pub(in super::super) fn examine_account_list(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let line =
        view.line_start(anchor.start + 1).max(anchor.start.saturating_sub(LINE)).max(scan.resume());
    let echo =
        memchr::memmem::rfind(&view.bytes()[line..anchor.start], b"echo ").map(|at| line + at + 5);
    let string = argument(view, anchor.end, b"<<<");
    for start in [echo, string].into_iter().flatten() {
        let range = value::at(view, value::after_blanks(view, start)).range;
        if view.bytes()[range.clone()].contains(&b':') {
            scan.strike(range, RULE);
        }
    }
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
