//! The health of this process: missing permissions, an Azure that does not answer, a stuck loop. A change
//! is logged once; a problem is on `/readyz` and in a metric for as long as it lasts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bringup_diagnosis::redaction::redact;
use kube::core::Status;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::rights::{Needed, Right};

/// The problems of this process, shared by all components that report them.
#[derive(Debug, Clone)]
pub struct Health(Arc<watch::Sender<Troubles>>, Arc<Mutex<Option<Instant>>>);

/// How long the main loop may be silent before it counts as stuck.
const STUCK: Duration = Duration::from_mins(1);

/// The heartbeat of the main loop. While this exists, the loop is expected to beat.
#[derive(Debug)]
pub struct Pulse(Arc<Mutex<Option<Instant>>>);

impl Pulse {
    /// The pause between two beats.
    pub const EACH: Duration = Duration::from_secs(5);

    /// Records that the main loop has completed a round.
    pub fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[derive(Debug, Default)]
struct Troubles {
    rights: BTreeMap<Right, String>,
    azure: Option<String>,
    waiting: BTreeMap<&'static str, String>,
    missing: Vec<Needed>,
}

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Troubles::default())), Arc::default())
    }
}

impl Health {
    /// Waits until `is` returns true.
    pub async fn until(&self, is: impl Fn(&Self) -> bool) {
        let mut changes = self.0.subscribe();
        while !is(self) {
            // Cannot fail: `self` holds the sender.
            let _ = changes.changed().await;
        }
    }

    /// Starts the heartbeat of the main loop.
    pub fn start_pulse(&self) -> Pulse {
        let pulse = Pulse(self.1.clone());
        pulse.beat();
        pulse
    }

    /// How long the main loop has been silent, if that is longer than allowed.
    pub fn stuck(&self, now: Instant) -> Option<Duration> {
        let last = *self.1.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|last| now.saturating_duration_since(last)).filter(|silent| *silent >= STUCK)
    }

    /// Records that a request that needs this right was allowed.
    pub fn may(&self, right: Right) {
        self.0.send_if_modified(|troubles| {
            let was = troubles.rights.remove(&right).is_some();
            if was {
                info!(access = right.name(), "API server requests succeed again");
            }
            was
        });
    }

    /// Records that a request that needs this right failed.
    pub fn failed(&self, right: Right, error: &kube::Error) {
        let text = redact(&advice(error)).text.into_string();
        self.0.send_if_modified(|troubles| {
            let is_new = troubles.rights.get(&right) != Some(&text);
            if is_new {
                warn!(access = right.name(), error = %text, "API server request failed; retrying");
                troubles.rights.insert(right, text);
            }
            is_new
        });
    }

    /// Stores the missing rights.
    pub fn lacks(&self, missing: Vec<Needed>) {
        self.0.send_if_modified(|troubles| {
            if troubles.missing == missing {
                return false;
            }
            let words: Vec<String> = missing.iter().map(Needed::words).collect();
            if words.is_empty() {
                info!("all RBAC permissions granted");
            } else {
                let words = words.join(", ");
                warn!(missing = words, "RBAC permissions missing; the chart's roles grant them");
            }
            troubles.missing = missing;
            true
        });
    }

    /// Stores that Azure answered, or why Azure did not answer.
    pub fn azure(&self, trouble: Option<String>) {
        let trouble = trouble.map(|text| redact(&text).text.into_string());
        self.0.send_if_modified(|troubles| {
            if troubles.azure == trouble {
                return false;
            }
            if let Some(text) = &trouble {
                warn!(error = %text, "Azure not reachable; retrying");
            } else {
                info!("Azure reachable again");
            }
            troubles.azure = trouble;
            true
        });
    }

    /// Stores that a precondition, such as a resource definition, is missing, or that it is met.
    pub fn waits(&self, what: &'static str, why: Option<&str>) {
        self.0.send_if_modified(|troubles| {
            if troubles.waiting.get(what).map(String::as_str) == why {
                return false;
            }
            match why {
                Some(why) => {
                    info!(precondition = what, why, "waiting for a precondition");
                    troubles.waiting.insert(what, why.to_owned());
                }
                None => drop(troubles.waiting.remove(what)),
            }
            true
        });
    }

    /// Why the process is not ready; empty if it is.
    pub fn not_ready(&self) -> Vec<String> {
        let troubles = self.0.borrow();
        let vital = troubles.rights.iter().filter(|(right, _)| right.is_vital());
        let failed = vital.map(|(right, text)| format!("{}: {text}", right.name()));
        let missing = troubles.missing.iter().filter(|needed| needed.right.is_vital());
        failed.chain(missing.map(|needed| format!("may not {}", needed.words()))).collect()
    }

    /// The names of all present problems.
    pub fn degraded(&self) -> Vec<String> {
        let troubles = self.0.borrow();
        let mut names: Vec<String> =
            troubles.rights.keys().map(|right| right.name().to_owned()).collect();
        names.extend(troubles.azure.as_ref().map(|_| "azure".to_owned()));
        names.extend((!troubles.missing.is_empty()).then(|| "rights".to_owned()));
        names
    }

    /// The preconditions that this process waits for.
    pub fn waiting(&self) -> Vec<String> {
        let troubles = self.0.borrow();
        let azure = troubles.azure.iter().map(|why| format!("Azure cannot be read: {why}"));
        troubles.waiting.values().cloned().chain(azure).collect()
    }
}

/// An error of the API server in one line. If a right is missing, the line names it.
pub fn advice(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => forbidden(status),
        _ => error.to_string(),
    }
}

/// The message of the API server contains verb, resource and group.
fn forbidden(status: &Status) -> String {
    format!("forbidden: {}", status.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_is_silent_for_too_long_is_stuck_and_one_that_does_not_run_is_not() {
        let health = Health::default();
        let later = |seconds| Instant::now().checked_add(Duration::from_secs(seconds)).unwrap();
        assert_eq!(health.stuck(later(3600)), None, "nothing runs");
        let pulse = health.start_pulse();
        assert_eq!(health.stuck(later(30)), None);
        assert!(health.stuck(later(90)).is_some());
        pulse.beat();
        assert_eq!(health.stuck(later(30)), None);
        drop(pulse);
        assert_eq!(health.stuck(later(90)), None, "it has ended");
    }
}
