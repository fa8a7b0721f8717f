//! The names of the sources of evidence in a report, and the result of each.

use bringup_azure::{ArmError, ErrorKind};
use bringup_diagnosis::redaction::redact;
use bringup_objects::report::{Collector, CollectorState};

/// The VM and its instance view.
pub const VM: &str = "virtual machine";
/// The AKS machine.
pub const MACHINE: &str = "AKS machine";
/// Managed run commands.
pub const RUN_COMMANDS: &str = "run commands";
/// The serial log from boot diagnostics.
pub const SERIAL_LOG: &str = "serial log";
/// The Node and its certificate requests.
pub const KUBERNETES: &str = "Kubernetes";
/// The age of a Machine, and so of its join token.
pub const TOKEN_AGE: &str = "join token's age";
/// The provider's object behind a Machine.
pub const PROVIDER_OBJECT: &str = "provider's object";
/// The conditions that bringup writes, if a write failed.
pub const CONDITIONS: &str = "conditions";
/// The activity log, which outlives the VM.
pub const ACTIVITY_LOG: &str = "activity log";

/// The most bytes in a collector's detail.
pub(crate) const DETAIL: usize = 300;

/// A collector's entry in a report. The detail may contain text of others: it is redacted.
pub fn collected(name: &str, state: CollectorState, detail: &str) -> Collector {
    let detail = redact(detail).text.truncated(DETAIL).into_string();
    Collector { name: name.to_owned(), state: state.into(), detail }
}

/// The state and detail with which a report shows a failed read.
pub fn refusal(error: &ArmError) -> (CollectorState, String) {
    match error.kind() {
        ErrorKind::Forbidden { action, scope } => {
            let action = action.as_deref().unwrap_or("reading it");
            let scope = scope.as_deref().map(|scope| format!(" on {scope}")).unwrap_or_default();
            (CollectorState::Denied, format!("the permission {action}{scope} is missing"))
        }
        ErrorKind::Throttled { policy, .. } => {
            let policy = policy.as_deref().unwrap_or("the front door");
            (CollectorState::Throttled, format!("Azure throttles ({policy})"))
        }
        ErrorKind::NotFound => (CollectorState::Late, error.to_string()),
        _ => (CollectorState::Failed, error.to_string()),
    }
}
