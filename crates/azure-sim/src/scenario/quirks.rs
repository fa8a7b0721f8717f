//! Undocumented behaviours of Azure. Each is a switch, so that tests cover both variants.

use serde::Deserialize;

use super::Span;

/// The undocumented behaviours of Azure.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Quirks {
    /// Whether the instance view shows extensions while the VM is being deleted.
    pub extensions_while_deleting: DeletedExtensions,
    /// The effect of another PUT or DELETE for the same VM on a running operation.
    pub preemption: Preemption,
    /// Whether a VM's state is `Updating` while an extension runs, or stays `Succeeded`.
    pub updating_during_extension: bool,
    /// The HTTP status for a second Custom Script extension under another name: 400 or 409.
    pub second_custom_script: u16,
    /// The HTTP status of `retrieveBootDiagnosticsData` when boot diagnostics are off: 400 or 409.
    pub boot_diagnostics_off: u16,
    /// Whether reads of operations count against the front door's read limit.
    pub operation_reads_count: bool,
    /// A read of a new resource returns 404 for this long.
    pub hidden_after_create: Span,
    /// A read of a deleted resource still succeeds for this long.
    pub shown_after_delete: Span,
    /// Lists are this far behind.
    pub lists_lag: Span,
    /// The stored serial console is this far behind.
    pub console_lag: Span,
    /// Resource Graph is this far behind.
    pub resource_graph_lag: Span,
    /// Operation URLs return 404 after this long.
    pub operation_address_lives: Span,
    /// The value of `Retry-After` in long-running answers, if any.
    pub retry_after: Option<u64>,
    /// Whether the agent lists the handler of managed run commands among the handlers of extensions.
    pub run_command_handler: RunCommandHandler,
    /// Whether requests are throttled at all.
    pub throttling: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            extensions_while_deleting: DeletedExtensions::Kept,
            preemption: Preemption::Canceled,
            updating_during_extension: true,
            second_custom_script: 409,
            boot_diagnostics_off: 409,
            operation_reads_count: false,
            hidden_after_create: Span::seconds(0),
            shown_after_delete: Span::seconds(2),
            lists_lag: Span::seconds(0),
            console_lag: Span::seconds(10),
            resource_graph_lag: Span::seconds(30),
            operation_address_lives: Span::minutes(24 * 60),
            retry_after: None,
            run_command_handler: RunCommandHandler::Shown,
            throttling: true,
        }
    }
}

/// Whether the instance view shows extensions while the VM is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeletedExtensions {
    /// Extensions stay in the view.
    Kept,
    /// Extensions disappear from the view.
    Dropped,
}

/// Whether the agent lists the handler of managed run commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunCommandHandler {
    /// The agent lists it.
    Shown,
    /// The agent does not list it.
    Hidden,
}

/// The effect of another PUT or DELETE for the same VM on a running operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// The running operation ends as `Canceled`.
    Canceled,
    /// The running operation ends as `Failed`.
    Failed,
    /// The running operation continues, and the new request is refused with 409.
    Conflict,
}
