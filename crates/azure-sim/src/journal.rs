//! The record of a run: every request with its answer and every state change, in order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

/// One request and its answer.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The sequence number, from 1.
    pub number: u64,
    /// When the request arrived.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// Path and query as sent, without signatures.
    pub path: String,
    /// The kind of call, such as `GetVm` or `DeleteNic`.
    pub operation: &'static str,
    /// The HTTP status of the answer; absent when the connection broke.
    pub status: Option<u16>,
    /// The error code of the answer.
    pub error: Option<String>,
    /// The fault that was injected.
    pub fault: Option<String>,
}

/// The record of a run.
///
/// # Guarantees
/// Two runs with the same seed, scenario, requests and moments produce the same text, byte for
/// byte.
#[derive(Debug, Default)]
pub struct Journal {
    requests: Vec<Recorded>,
    text: String,
}

impl Journal {
    pub(crate) fn request(&mut self, mut recorded: Recorded) {
        recorded.number = self.requests.len() as u64 + 1;
        let answer = match recorded.status {
            Some(status) => status.to_string(),
            None => "no answer".to_owned(),
        };
        let _ =
            write!(self.text, "{} {} {} -> {answer}", recorded.at, recorded.method, recorded.path);
        for note in [&recorded.error, &recorded.fault].into_iter().flatten() {
            let _ = write!(self.text, " {note}");
        }
        self.text.push('\n');
        self.requests.push(recorded);
    }

    pub(crate) fn state(&mut self, at: Timestamp, what: &str, change: &str) {
        let _ = writeln!(self.text, "{at} {what}: {change}");
    }

    /// All requests so far.
    pub fn requests(&self) -> &[Recorded] {
        &self.requests
    }

    /// The number of requests of each kind.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for request in &self.requests {
            *counts.entry(request.operation).or_default() += 1;
        }
        counts
    }

    /// Requests and state changes, one per line.
    pub fn text(&self) -> &str {
        &self.text
    }
}
