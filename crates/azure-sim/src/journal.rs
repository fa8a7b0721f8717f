//! What happened: every request with its answer, every change of state, in order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

/// One request as it was answered.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Its number, from 1.
    pub number: u64,
    /// When it came.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// Path and query, as they were sent; signatures are left out.
    pub path: String,
    /// What kind of call it was, such as `GetVm` or `DeleteNic`.
    pub operation: &'static str,
    /// The status that was answered; absent when the connection broke.
    pub status: Option<u16>,
    /// The code of the error that was answered.
    pub error: Option<String>,
    /// The fault that struck it.
    pub fault: Option<String>,
}

/// The record of a run.
///
/// # Guarantees
/// The text of two runs with the same seed, scenario, requests and moments is the same to the
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

    /// How many requests of each kind there were.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for request in &self.requests {
            *counts.entry(request.operation).or_default() += 1;
        }
        counts
    }

    /// Requests and changes of state, one a line.
    pub fn text(&self) -> &str {
        &self.text
    }
}
