//! The behaviour of a VM after its creation. Each field is one independent thing that can fail. The defaults
//! describe a healthy node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Span;

/// The life of one VM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Boot {
    /// Whether the operating system starts.
    pub os: OsOutcome,
    /// Whether the guest agent reports.
    pub agent: AgentOutcome,
    /// What starts the bootstrap script.
    pub bootstrap: Bootstrap,
    /// The behaviour of the bootstrap script.
    pub script: Script,
    /// Version of the Custom Script handler, which decides the text format.
    pub handler: Option<String>,
    /// Whether a Node appears once the script has succeeded.
    pub node: NodeOutcome,
    /// The VM reboots this long after the agent was ready, and the script starts again.
    pub reboot_after: Option<Span>,
    /// A spot VM is evicted this long after it was created.
    pub evicted_after: Option<Span>,
    /// Further lines on the serial console, written when the script ends.
    pub console: String,
    /// Further lines on the serial console, written when the VM powers on.
    pub early_console: String,
    /// From the PUT until the VM operation ends; seeded when absent.
    pub vm_ready_after: Option<Span>,
    /// From the end of the VM operation until the agent reports; seeded when absent.
    pub agent_ready_after: Option<Span>,
    /// From the DELETE until the VM is deleted; seeded when absent.
    pub gone_after: Option<Span>,
    /// Outcome of extensions other than Custom Script, by their type; those not listed succeed.
    pub extensions: BTreeMap<String, ScriptRun>,
    /// Outcome of managed run commands, by their names; those not listed print the bootstrap
    /// result.
    pub run_commands: BTreeMap<String, ScriptRun>,
}

/// Whether the operating system starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OsOutcome {
    /// The operating system starts.
    #[default]
    Ready,
    /// The platform gives up waiting after about 20 minutes.
    TimesOut,
    /// The platform gives up, but the VM starts and joins anyway.
    TimesOutThenReady,
    /// The image was not generalised.
    ClientError,
    /// The platform failed.
    InternalError,
}

/// Whether the guest agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOutcome {
    /// The agent reports.
    #[default]
    Ready,
    /// The agent never reports; extensions time out waiting for it.
    Silent,
}

/// What starts the bootstrap script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bootstrap {
    /// A Custom Script extension, which a client puts on the VM.
    #[default]
    Extension,
    /// cloud-init, from customData. The result shows only on the serial console.
    CustomData,
    /// cloud-init, from customData that neither bringup nor AKS wrote: there is no result, only the output on
    /// the serial console.
    UserData,
}

/// The behaviour of the bootstrap script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Script {
    /// The script ends with exit code 0.
    #[default]
    Succeeds,
    /// The script ends with the given result, which may be exit code 0.
    Ends(ScriptRun),
    /// The script never ends; the platform gives up after 90 minutes.
    Hangs,
    /// The handler itself fails with this text and the script never runs.
    HandlerFails(String),
    /// A real program runs instead: its output and exit code are used as the script's.
    Runs(Vec<String>),
}

/// The outcome of one run of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptRun {
    /// The exit code of the bootstrap.
    pub exit_code: i32,
    /// The exit status that the handler sees, if it differs (1 with aks-node-controller).
    pub outer_exit_code: Option<i32>,
    /// The log of the script. Its last 3,000 bytes become `Output` of the result.
    pub output: String,
    /// The standard error of the script.
    pub stderr: String,
    /// How the result appears in the output.
    pub json: JsonShape,
    /// On Windows, the name of the exit code, which the message shows between bars.
    pub name: String,
    /// The duration of the run; seeded when absent.
    pub lasts: Option<Span>,
}

impl Default for ScriptRun {
    fn default() -> Self {
        Self {
            exit_code: 0,
            outer_exit_code: None,
            output: String::new(),
            stderr: String::new(),
            json: JsonShape::Whole,
            name: String::new(),
            lasts: None,
        }
    }
}

/// How the result JSON appears in the extension's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsonShape {
    /// Complete, as the scripts print it.
    #[default]
    Whole,
    /// Without its beginning, including the exit code, which was cut off.
    HeadCut,
    /// Absent: standard output is the script's own output.
    Absent,
}

/// Whether a Node appears once the script has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeOutcome {
    /// The Node joins seconds later.
    #[default]
    Joins,
    /// The Node never joins, although the script succeeds.
    Never,
    /// The Node joins this long after the script ended, whatever its result was.
    JoinsAfter(Span),
}
