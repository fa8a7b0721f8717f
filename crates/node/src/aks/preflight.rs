//! Checks before the scripts run: finds reasons why the attempt would fail, and anything unusual about the
//! node.
//!
//! All checks run in parallel and take at most one second together; a late check is reported as late and not
//! waited for. The checks write nothing, retry nothing and take no lock.

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

/// The time limit of all checks together.
const BUDGET: Duration = Duration::from_millis(950);

/// The longest that one check waits for an answer.
const EACH: Duration = Duration::from_millis(400);

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    /// The name of the check.
    pub(crate) check: &'static str,
    pub(crate) state: State,
    /// The result in one word, such as `absent`, for the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<&'static str>,
    /// The cause of failure that this finding would lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// The name of the exit code, if the finding has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'static str>,
    /// The duration of the check in milliseconds.
    pub(crate) ms: u128,
    /// The result in a sentence.
    pub(crate) detail: Redacted,
    /// Everything that the check examined.
    pub(crate) data: Value,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// The check found no problem.
    Ok,
    /// The check found a problem that may not stop the attempt.
    Warn,
    /// The attempt cannot succeed.
    Fatal,
    /// The check did not finish in time.
    Timeout,
    /// There was nothing to check.
    Skipped,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fatal => "fatal",
            Self::Timeout => "timeout",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the finding is worth reporting.
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

    /// The check and its result, such as `oras:absent`.
    pub(crate) fn short(&self) -> String {
        format!("{}:{}", self.check, self.found.unwrap_or(self.state.word()))
    }
}

/// The input of the checks.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) root: Root,
    /// The value of PATH.
    pub(crate) path: String,
    /// Whether the attempt needs oras.
    pub(crate) needs_oras: bool,
    /// The variables of the scripts.
    pub(crate) variables: Variables,
    /// The addresses of the platform.
    pub(crate) endpoints: Endpoints,
}

impl Subject {
    /// A variable of the scripts, if its value is not empty.
    fn variable(&self, name: &str) -> Option<&str> {
        let (_, value) = self.variables.iter().rev().find(|(known, _)| known == name)?;
        value.to_str().filter(|value| !value.is_empty())
    }
}

/// Which checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All checks.
    All,
    /// Only the check whether oras can be used.
    Oras,
    /// Only the checks with these names.
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
