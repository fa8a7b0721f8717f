//! Rule `cookie`.
//!
//! Removes: the values of `Cookie` and `Set-Cookie` headers; a session's cookie is as good as its
//! password. The values of names that end with the word (`ERLANG_COOKIE`), and of options. The last
//! field of a line of a cookie jar.
//!
//! Leaves alone: the word elsewhere, and the numbers of requests.

use std::ops::Range;

use super::authorization::end_of_header;
use super::{key_text, named_value};
use crate::redaction::name::Name;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "cookie";

/// Names of headers, in lower case and without what joins words.
const HEADERS: [&str; 5] = ["cookie", "setcookie", "cookie2", "setcookie2", "setcookie3"];

/// The shortest cookie that Erlang makes up itself.
const SHORTEST_ERLANG: usize = 16;

pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let name = Name::around(view, anchor.clone(), scan.resume());
    if name.is_flag() || !HEADERS.iter().any(|header| name.is(header)) {
        examine_named(scan, &name, anchor);
        return;
    }
    let Some(start) = named_value::value_start(view, name.range.end) else { return };
    let start = start + usize::from(view.at(start) == b'[');
    let range = if value::is_quote(view.at(start)) {
        value::at(view, start).range
    } else {
        start..end_of_header(view, start)
    };
    let first = view.count_while(range.clone(), |byte| !value::is_blank(byte));
    let range = if view.find(range.clone(), b"=").is_none() {
        range.start..range.start + first
    } else {
        range
    };
    let text = view.slice(range.clone());
    if text.len() > shape::LONGEST_HARMLESS || is_session(text) && !shape::is_harmless(text) {
        scan.strike(range, RULE);
    }
}

/// At a name that the word is a part of.
fn examine_named(scan: &mut Scan<'_>, name: &Name<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let end = name.range.end;
    if name.is("erlangcookie")
        && view.is_break(end)
        && let Some(word) = printed(view, end)
    {
        scan.strike(word, RULE);
    } else if name.has("magiccookie") {
        // What `xauth list` prints: `host/unix:0  MIT-MAGIC-COOKIE-1  0f1e…`.
        key_text::examine_cipher(scan, end..end);
    } else if anchor.end == end {
        named_value::examine(scan, anchor);
    }
}

/// The cookie alone on the line at `line`, after a command that prints its file.
fn printed(view: &View, line: usize) -> Option<Range<usize>> {
    let end = view.next_break(line + 1).min(line + shape::LONGEST_HARMLESS);
    let text = view.slice(line..end).trim_ascii_end();
    is_of_erlang(text).then_some(line..line + text.len())
}

/// Capital letters only, as Erlang makes a cookie up.
fn is_of_erlang(text: &[u8]) -> bool {
    text.len() >= SHORTEST_ERLANG && text.iter().all(u8::is_ascii_uppercase)
}

/// The longest field of a cookie jar that is looked at before the value.
const LONGEST_FIELD: usize = 256;

/// At the first flag of a line of a cookie jar, as curl and wget write it: domain, flag, path, flag, time,
/// name, value. Its tabs may have become blanks.
pub(in crate::redaction) fn examine_jar(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    if value::is_blank(view.before(anchor.start))
        && !view.is_break(anchor.start)
        && let Some(start) = jar_value(view, anchor.start)
    {
        let start = start + usize::from(value::is_quote(view.at(start)));
        let is_letter = |byte: u8| !value::is_blank(byte) && byte != b'"';
        let end = value::end_of_letters(view, start, 0, is_letter);
        if end - start > shape::LONGEST_HARMLESS || !shape::is_harmless(view.slice(start..end)) {
            scan.strike(start..end, RULE);
        }
    }
}

/// Where the value begins on the line of a cookie jar whose first flag is at `flag`.
fn jar_value(view: &View, flag: usize) -> Option<usize> {
    let line_end = view.next_break(flag + 1);
    let mut next = flag;
    let mut field = || {
        let start = next;
        let limit = line_end.min(start + LONGEST_FIELD);
        let end = start + view.count_while(start..limit, |byte| !value::is_blank(byte));
        next = value::after_blanks(view, end);
        (end > start && next > end && next < line_end).then_some(start..end)
    };
    let is_flag = |field: &Range<usize>| {
        let text = view.slice(field.clone());
        text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false")
    };
    field().filter(is_flag)?;
    field().filter(|path| view.at(path.start) == b'/')?;
    field().filter(is_flag)?;
    let is_time = |byte: &u8| byte.is_ascii_digit() || b"-.".contains(byte);
    field().filter(|time| view.slice(time.clone()).iter().all(is_time))?;
    field()?;
    Some(next)
}

/// `name=value`, or one word as only generators make it.
fn is_session(text: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(byte);
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    text.contains(&b'=')
        || is_of_erlang(text)
        || text.len() >= 12 && digits >= 2 && text.iter().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn cookies_go_to_the_end_of_their_line() {
        assert_eq!(
            redacted("< Set-Cookie: a=b; path=/\r\n< x"),
            "< Set-Cookie: [redacted cookie]\r\n< x"
        );
        assert_eq!(
            redacted("{\"Cookie\":\"a=b\",\"x\":1}"),
            "{\"Cookie\":\"[redacted cookie]\",\"x\":1}"
        );
    }

    #[test]
    fn the_word_alone_stays() {
        assert_kept(&["cookie: none", "cookies are off", "the cookie jar"]);
        assert_kept(&[
            "Got message type=method_call reply_cookie=4711 signature=s",
            "dhcp_cookie: 0x63825363",
            "net.ipv4.tcp_syncookies = 1",
            "SESSION_COOKIE_SECURE=true",
            "session_cookie: disabled",
            "ERLANG_COOKIE=$COOKIE",
            "session-cookie: could not be read",
            "FS-Cache: O-cookie c=00000000 [p=00000001 fl=226 nc=0 na=1]",
            "chmod 400 /var/lib/rabbitmq/.erlang.cookie\nRESTARTED",
            "wget --load-cookies jar.txt --cookie cookies.txt",
        ]);
    }

    #[test]
    fn the_last_field_of_a_cookie_jar_goes() {
        let line = "#HttpOnly_portal.local\tFALSE\t/\tTRUE\t0\tJSESSIONID\t";
        assert_eq!(
            redacted(&format!("{line}hmcxvzjp\nx y")),
            format!("{line}[redacted cookie]\nx y")
        );
        let blanks = line.replace('\t', "   ");
        assert_eq!(
            redacted(&format!("{blanks}hmcxvzjp\n")),
            format!("{blanks}[redacted cookie]\n")
        );
        assert_kept(&[
            &format!("{line}\nnext line"),
            &format!("{line}true\n"),
            "mounted: true /var/lib ext4 true 0 a b",
            "ready true  / true",
            "x false / false done 3 of them",
        ]);
    }

    #[test]
    fn names_that_end_with_the_word_lose_their_value() {
        assert_eq!(
            redacted("a: RABBITMQ_ERLANG_COOKIE: LUMNXOWABALBKZDRBCKA (deprecated env in use)"),
            "a: RABBITMQ_ERLANG_COOKIE: [redacted cookie] (deprecated env in use)"
        );
        assert_eq!(
            redacted("erl -setcookie monster -name a@b"),
            "erl -setcookie [redacted cookie] -name a@b"
        );
    }
}
