//! The sources of evidence as a report lists them: names, and what came of each.

use bringup_azure::{ArmError, ErrorKind};
use bringup_diagnosis::redaction::redact;
use bringup_objects::report::{Collector, CollectorState};

/// The VM with its instance view.
pub const VM: &str = "virtual machine";
/// The machine of AKS.
pub const MACHINE: &str = "AKS machine";
/// Managed run commands.
pub const RUN_COMMANDS: &str = "run commands";
/// Boot diagnostics.
pub const SERIAL_LOG: &str = "serial log";
/// Node and certificate requests.
pub const KUBERNETES: &str = "Kubernetes";
/// How old a Machine is, and so its join token.
pub const TOKEN_AGE: &str = "join token's age";
/// The provider's object behind a machine.
pub const PROVIDER_OBJECT: &str = "provider's object";
/// Our conditions, where they may not be written.
pub const CONDITIONS: &str = "conditions";
/// What outlives the VM.
pub const ACTIVITY_LOG: &str = "activity log";

/// How long a collector's detail may be.
pub(crate) const DETAIL: usize = 300;

/// A collector's line in a report. The detail may be text of others: it is redacted.
pub fn collected(name: &str, state: CollectorState, detail: &str) -> Collector {
    let detail = redact(detail).text.truncated(DETAIL).into_string();
    Collector { name: name.to_owned(), state: state.into(), detail }
}

/// What a refusal means to the reader of a report.
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
