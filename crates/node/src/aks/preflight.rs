//! Checks before the scripts run: would the attempt fail anyway, and what is odd about this node?
//!
//! All checks run at once. Together they take a second at most; a check that is late is reported as
//! late and not waited for. Nothing is written, nothing is retried, no lock is taken.

mod certificate;
mod clock;
mod containerd;
mod database;
mod names;
mod oras;
pub(crate) mod packages;
mod platform;
mod programs;
mod system;

use std::sync::mpsc;
use std::time::Duration;

use bringup_contract::Cause;
use bringup_diagnosis::redaction::{Redacted, redact};
use serde::Serialize;
use serde_json::Value;

use crate::aks::endpoints::Endpoints;
use crate::aks::environment::Variables;
use crate::clock::{Moment, receive};
use crate::host::paths::Root;

/// The budget of all checks.
const BUDGET: Duration = Duration::from_millis(950);

/// How long a check waits for an answer.
const EACH: Duration = Duration::from_millis(400);

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    /// Which check.
    pub(crate) check: &'static str,
    /// How it ended.
    pub(crate) state: State,
    /// What was found in a word, such as `absent`; for the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<&'static str>,
    /// What it would make the attempt fail with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// The name of the code, where it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'static str>,
    /// How long it took.
    pub(crate) ms: u128,
    /// What was found in a sentence.
    pub(crate) detail: Redacted,
    /// Everything that was looked at.
    pub(crate) data: Value,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As it should.
    Ok,
    /// It is odd; the attempt may work.
    Warn,
    /// The attempt cannot work.
    Fatal,
    /// It was late.
    Timeout,
    /// There was nothing to look at.
    Skipped,
}

impl State {
    /// The same in words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fatal => "fatal",
            Self::Timeout => "timeout",
            Self::Skipped => "skipped",
        }
    }

    /// It is worth a word.
    pub(crate) fn is_odd(self) -> bool {
        !matches!(self, Self::Ok | Self::Skipped)
    }
}

impl Finding {
    fn new(check: &'static str, state: State, detail: &str, data: Value) -> Self {
        let detail = redact(detail).text;
        Self { check, state, found: None, cause: None, name: None, ms: 0, detail, data }
    }

    fn because(self, cause: Cause) -> Self {
        Self { cause: Some(cause), ..self }
    }

    /// `oras:absent`.
    pub(crate) fn short(&self) -> String {
        format!("{}:{}", self.check, self.found.unwrap_or(self.state.word()))
    }
}

/// What the checks have to know.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Where to look.
    pub(crate) root: Root,
    /// The value of PATH.
    pub(crate) path: String,
    /// Without oras the attempt cannot work.
    pub(crate) needs_oras: bool,
    /// What the scripts are told.
    pub(crate) variables: Variables,
    /// Where the platform answers.
    pub(crate) endpoints: Endpoints,
}

impl Subject {
    /// A variable of the scripts, if it says anything.
    fn variable(&self, name: &str) -> Option<&str> {
        let (_, value) = self.variables.iter().rev().find(|(known, _)| known == name)?;
        value.to_str().filter(|value| !value.is_empty())
    }
}

/// Which checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of them.
    All,
    /// Only whether oras can be used.
    Oras,
    /// Only these, by their names.
    Only(&'static [&'static str]),
}

impl Which {
    fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Oras => name == "oras",
            Self::Only(names) => names.contains(&name),
        }
    }
}

type Check = fn(&Subject) -> Finding;

/// Runs the checks.
pub(crate) fn run(subject: &Subject, which: Which) -> Vec<Finding> {
    let all: [(&'static str, Check); 10] = [
        ("oras", oras::check),
        ("binaries", programs::check),
        ("disk", system::disk),
        ("dns", names::check),
        ("imds", platform::imds),
        ("wireserver", platform::wire_server),
        ("clock", clock::check),
        ("packages", packages::check),
        ("containerd", containerd::check),
        ("image", system::image),
    ];
    let chosen: Vec<_> = all.into_iter().filter(|(name, _)| which.has(name)).collect();
    let begun = Moment::now();
    let (sender, receiver) = mpsc::channel();
    for (at, (_, check)) in chosen.iter().copied().enumerate() {
        let (sender, subject) = (sender.clone(), subject.clone());
        std::thread::spawn(move || {
            let mut finding = check(&subject);
            finding.ms = begun.elapsed().as_millis();
            let _ = sender.send((at, finding));
        });
    }
    drop(sender);
    let mut found: Vec<Option<Finding>> = chosen.iter().map(|_| None).collect();
    while let Some((at, finding)) = receive(&receiver, begun, BUDGET) {
        found[at] = Some(finding);
    }
    let late = |name| Finding {
        ms: begun.elapsed().as_millis(),
        ..Finding::new(name, State::Timeout, "the check was late", Value::Null)
    };
    let pairs = chosen.iter().zip(found);
    pairs.map(|((name, _), finding)| finding.unwrap_or_else(|| late(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_waits_in_vain_is_over_before_all_of_them_and_that_within_a_second() {
        assert!(EACH.saturating_mul(2) < BUDGET && BUDGET < Duration::from_secs(1));
    }
}
