//! Do the metadata service and the wire server of the platform answer?

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bringup_contract::Cause;
use jiff::Timestamp;
use serde_json::json;

use super::{EACH, Finding, State, Subject};
use crate::clock::network;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    Timeout,
    Refused,
    Other(String),
}

impl Silence {
    fn of(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Self::Timeout,
            ErrorKind::ConnectionRefused => Self::Refused,
            _ => Self::Other(error.to_string()),
        }
    }

    pub(super) fn words(&self) -> &str {
        match self {
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Other(why) => why,
        }
    }
}

/// The beginning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// The time of the answering server's clock.
    pub(super) date: Option<Timestamp>,
}

/// Sends one request, without a proxy.
pub(super) fn ask(address: SocketAddr, path: &str) -> Result<Reply, Silence> {
    let begun = Instant::now();
    let left = || network(EACH).saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
    let silence = |error: std::io::Error| Silence::of(&error);
    let mut stream = TcpStream::connect_timeout(&address, left()).map_err(silence)?;
    stream.set_write_timeout(Some(left())).map_err(silence)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nMetadata: true\r\nConnection: close\r\n\r\n",
        address.ip()
    );
    stream.write_all(request.as_bytes()).map_err(silence)?;
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while head.len() < 8 * 1024 && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left())).map_err(silence)?;
        match stream.read(&mut part).map_err(silence)? {
            0 => break,
            length => head.extend(&part[..length]),
        }
    }
    reply(&String::from_utf8_lossy(&head))
        .ok_or_else(|| Silence::Other("what answers does not speak HTTP".to_owned()))
}

fn reply(head: &str) -> Option<Reply> {
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    let date = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| value.trim())
    });
    let date =
        date.and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
    Some(Reply { status, date })
}

/// The finding for a service of the platform that does not answer.
fn silent(check: &'static str, silence: &Silence, at: SocketAddr, cause: Cause) -> Finding {
    let state = if *silence == Silence::Timeout { State::Timeout } else { State::Warn };
    let detail = format!("{at}: {}", silence.words());
    let data = json!({"address": at.to_string(), "found": silence.words()});
    let refused = (*silence == Silence::Refused).then_some("refused");
    Finding { found: refused, ..Finding::new(check, state, &detail, data).because(cause) }
}

pub(super) fn imds(subject: &Subject) -> Finding {
    let Some(at) = subject.endpoints.imds else {
        return Finding::new("imds", State::Skipped, "no address is set", json!({}));
    };
    match ask(at, "/metadata/versions") {
        Ok(Reply { status: 200, .. }) => {
            Finding::new("imds", State::Ok, "it answers", json!({"status": 200}))
        }
        Ok(Reply { status, .. }) => {
            let detail = format!("{at}: HTTP {status}");
            Finding::new("imds", State::Warn, &detail, json!({"status": status}))
                .because(Cause::ImdsUnreachable)
        }
        Err(silence) => silent("imds", &silence, at, Cause::ImdsUnreachable),
    }
}

pub(super) fn wire_server(subject: &Subject) -> Finding {
    let addresses = &subject.endpoints.wire_server;
    if addresses.is_empty() {
        return Finding::new("wireserver", State::Skipped, "no address is set", json!({}));
    }
    let silent_one = std::thread::scope(|scope| {
        let tries: Vec<_> = addresses
            .iter()
            .map(|at| (*at, scope.spawn(|| TcpStream::connect_timeout(at, network(EACH)))))
            .collect();
        let mut outcomes = tries.into_iter().filter_map(|(at, one)| Some((at, one.join().ok()?)));
        outcomes.find_map(|(at, outcome)| Some((at, Silence::of(&outcome.err()?))))
    });
    match silent_one {
        None => Finding::new("wireserver", State::Ok, "it answers", json!({})),
        Some((at, silence)) => silent("wireserver", &silence, at, Cause::WireServerUnreachable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_a_date() {
        let text = "HTTP/1.1 200 OK\r\ndate: Tue, 27 Jan 2026 14:30:00 GMT\r\n\r\n{}";
        let date = "2026-01-27T14:30:00Z".parse().ok();
        assert_eq!(reply(text), Some(Reply { status: 200, date }));
        assert_eq!(reply("HTTP/1.0 404 Not Found\r\n"), Some(Reply { status: 404, date: None }));
        assert_eq!(reply("SSH-2.0-x\r\n"), None);
    }
}
