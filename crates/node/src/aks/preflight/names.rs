//! Do the names resolve that the scripts will need?

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

use bringup_contract::Cause;
use serde_json::json;

use super::{EACH, Finding, State, Subject};
use crate::clock::network;

/// The largest number of names that are looked up.
const MOST: usize = 6;

/// The answer of a name server for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Found,
    NoAddress,
    NoSuchName,
    ServerFailure,
    Refused,
    /// No server listens there.
    NotServed,
    Timeout,
}

impl Answer {
    fn word(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::NoAddress => "no-address",
            Self::NoSuchName => "nxdomain",
            Self::ServerFailure => "servfail",
            Self::Refused => "refused",
            Self::NotServed => "not-served",
            Self::Timeout => "timeout",
        }
    }
}

pub(super) fn check(subject: &Subject) -> Finding {
    let (names, servers) = (names(subject), &subject.endpoints.name_servers);
    if names.is_empty() || servers.is_empty() {
        let why = if names.is_empty() { "no name is configured" } else { "no name server is set" };
        return Finding::new("dns", State::Skipped, why, json!({}));
    }
    let answers: Vec<Vec<Answer>> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            servers.iter().map(|server| scope.spawn(|| ask(*server, &names))).collect();
        asked
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| vec![Answer::Timeout; names.len()]))
            .collect()
    });
    judge(&names, servers, &answers)
}

fn judge(names: &[String], servers: &[SocketAddr], answers: &[Vec<Answer>]) -> Finding {
    let of = |name: usize| answers.iter().map(move |answers| answers[name]);
    let lost: Vec<usize> =
        (0..names.len()).filter(|name| !of(*name).any(|answer| answer == Answer::Found)).collect();
    let said = |name: usize| {
        let each = of(name).zip(servers).map(|(answer, at)| format!("{} at {at}", answer.word()));
        format!("{}: {}", names[name], each.collect::<Vec<_>>().join(", "))
    };
    let data = json!({
        "servers": servers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "names": names.iter().enumerate().map(|(at, name)| json!({
            "name": name, "answers": of(at).map(Answer::word).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    if lost.is_empty() {
        return Finding::new("dns", State::Ok, "all names are found", data);
    }
    let silent = lost.iter().flat_map(|name| of(*name)).all(|answer| answer == Answer::Timeout);
    let state = if silent { State::Timeout } else { State::Warn };
    let detail = lost.iter().map(|name| said(*name)).collect::<Vec<_>>().join("; ");
    let worst = lost.first().and_then(|name| of(*name).find(|answer| *answer != Answer::Timeout));
    Finding {
        found: worst.map(Answer::word),
        ..Finding::new("dns", state, &detail, data).because(Cause::DnsFailure)
    }
}

/// The host names in the variables of the scripts: API server, registries, package sources.
fn names(subject: &Subject) -> Vec<String> {
    let variables = [
        "API_SERVER_NAME",
        "BOOTSTRAP_PROFILE_CONTAINER_REGISTRY_SERVER",
        "KUBE_BINARY_URL",
        "CUSTOM_KUBE_BINARY_URL",
        "PRIVATE_KUBE_BINARY_URL",
        "CREDENTIAL_PROVIDER_DOWNLOAD_URL",
        "VNET_CNI_PLUGINS_URL",
        "CONTAINERD_DOWNLOAD_URL_BASE",
        "REPO_DEPOT_ENDPOINT",
    ];
    let mut names: Vec<String> = Vec::new();
    for host in variables.iter().filter_map(|name| host(subject.variable(name)?)) {
        if !names.contains(&host) {
            names.push(host);
        }
    }
    names.truncate(MOST);
    names
}

/// The host of an address, unless the host is an IP address.
fn host(address: &str) -> Option<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default().trim();
    let is_name = host.contains('.')
        && host.parse::<IpAddr>().is_err()
        && host.split('.').all(|label| !label.is_empty() && label.len() < 64)
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    is_name.then(|| host.to_ascii_lowercase())
}

/// Sends all queries to a server at once, and waits no longer than the limit of one check.
fn ask(server: SocketAddr, names: &[String]) -> Vec<Answer> {
    let mut answers = vec![Answer::Timeout; names.len()];
    let begun = Instant::now();
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let Ok(socket) = UdpSocket::bind(any) else { return answers };
    if socket.connect(server).is_err() {
        return vec![Answer::NotServed; names.len()];
    }
    for (number, name) in (0..).zip(names) {
        let _ = socket.send(&query(number, name));
    }
    let mut waiting = names.len();
    let mut packet = [0; 1232];
    while waiting > 0 {
        let left = network(EACH).saturating_sub(begun.elapsed());
        if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
            break;
        }
        match socket.recv(&mut packet) {
            Ok(length) => {
                if let Some((number, answer)) = read(&packet[..length])
                    && let Some(slot) = answers.get_mut(usize::from(number))
                {
                    waiting -= usize::from(*slot == Answer::Timeout);
                    *slot = answer;
                }
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return vec![Answer::NotServed; names.len()];
            }
            Err(_) => break,
        }
    }
    answers
}

/// A DNS query for the address of a name.
fn query(number: u16, name: &str) -> Vec<u8> {
    let mut packet = number.to_be_bytes().to_vec();
    // The header: recursion desired, one question, nothing else.
    packet.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        packet.push(u8::try_from(label.len()).unwrap_or_default());
        packet.extend(label.as_bytes());
    }
    packet.extend([0, 0, 1, 0, 1]);
    packet
}

/// The number of the query, and the answer.
fn read(packet: &[u8]) -> Option<(u16, Answer)> {
    let head = packet.first_chunk::<12>()?;
    if head[2] & 0x80 == 0 {
        return None;
    }
    let answer = match (head[3] & 0x0f, u16::from_be_bytes([head[6], head[7]])) {
        (0, 0) => Answer::NoAddress,
        (0, _) => Answer::Found,
        (3, _) => Answer::NoSuchName,
        (5, _) => Answer::Refused,
        _ => Answer::ServerFailure,
    };
    Some((u16::from_be_bytes([head[0], head[1]]), answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_a_name_or_nothing() {
        assert_eq!(host("https://a.example.io:443/x?y").as_deref(), Some("a.example.io"));
        assert_eq!(host("Registry.Example.io/path").as_deref(), Some("registry.example.io"));
        for none in ["", "10.0.0.1", "https://10.0.0.1/x", "localhost", "a..b", "$(x).y"] {
            assert_eq!(host(none), None, "{none}");
        }
    }

    #[test]
    fn a_question_has_labels_and_an_answer_has_a_code() {
        let packet = query(7, "ab.c");
        assert_eq!(packet[..2], [0, 7]);
        assert_eq!(packet[12..], [2, b'a', b'b', 1, b'c', 0, 0, 1, 0, 1]);
        assert_eq!(read(&packet), None, "a question is no answer");
        let answer =
            |code: u8, count: u8| read(&[0, 7, 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
        assert_eq!(answer(0, 1), Some((7, Answer::Found)));
        assert_eq!(answer(0, 0), Some((7, Answer::NoAddress)));
        assert_eq!(answer(3, 0), Some((7, Answer::NoSuchName)));
        assert_eq!(answer(2, 0), Some((7, Answer::ServerFailure)));
        assert_eq!(read(&[0, 7]), None);
    }

    #[test]
    fn one_server_that_knows_a_name_is_enough() {
        let servers = ["10.0.0.1:53", "10.0.0.2:53"].map(|at| at.parse().unwrap());
        let names = ["a.b".to_owned()];
        let state = |one, two| judge(&names, &servers, &[vec![one], vec![two]]).state;
        assert_eq!(state(Answer::Timeout, Answer::Found), State::Ok);
        assert_eq!(state(Answer::Timeout, Answer::NoSuchName), State::Warn);
        assert_eq!(state(Answer::Timeout, Answer::Timeout), State::Timeout);
        let finding = judge(&names, &servers, &[vec![Answer::Timeout], vec![Answer::NoSuchName]]);
        assert_eq!(finding.short(), "dns:nxdomain");
        assert_eq!(finding.detail.as_str(), "a.b: timeout at 10.0.0.1:53, nxdomain at 10.0.0.2:53");
    }
}
