//! What a VM does after it was created. Each field is one independent thing that can go
//! wrong; the defaults are a healthy node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Span;

/// The life of one VM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Boot {
    /// Whether the operating system comes up.
    pub os: OsOutcome,
    /// Whether the guest agent reports.
    pub agent: AgentOutcome,
    /// Who starts the bootstrap script.
    pub bootstrap: Bootstrap,
    /// What the bootstrap script does.
    pub script: Script,
    /// Version of the Custom Script handler, which decides the text format.
    pub handler: Option<String>,
    /// Whether a Node appears once the script has succeeded.
    pub node: NodeOutcome,
    /// The machine reboots this long after the agent was ready, and the script starts anew.
    pub reboot_after: Option<Span>,
    /// A spot VM is taken away this long after it was created.
    pub evicted_after: Option<Span>,
    /// Further lines on the serial console, written when the script ends.
    pub console: String,
    /// Further lines on the serial console, written when the machine powers on.
    pub early_console: String,
    /// From the PUT until the VM operation ends; seeded when absent.
    pub vm_ready_after: Option<Span>,
    /// From the end of the VM operation until the agent reports; seeded when absent.
    pub agent_ready_after: Option<Span>,
    /// From the DELETE until the VM is gone; seeded when absent.
    pub gone_after: Option<Span>,
    /// Outcome of extensions other than Custom Script, by their type: `succeeds` unless named.
    pub extensions: BTreeMap<String, ScriptRun>,
    /// What managed run commands do, by their names: print the result of the bootstrap unless named.
    pub run_commands: BTreeMap<String, ScriptRun>,
}

/// Whether the operating system comes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OsOutcome {
    /// It does.
    #[default]
    Ready,
    /// The platform gives up waiting after about 20 minutes.
    TimesOut,
    /// The platform gives up, and the VM comes up and joins all the same.
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
    /// It does.
    #[default]
    Ready,
    /// It never reports; extensions wait for it in vain.
    Silent,
}

/// Who starts the bootstrap script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bootstrap {
    /// A Custom Script extension that somebody puts on the VM.
    #[default]
    Extension,
    /// cloud-init, from customData: its result shows on the serial console alone.
    CustomData,
    /// cloud-init, from customData of somebody else: there is no result, only what it writes to the
    /// serial console.
    UserData,
}

/// What the bootstrap script does.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Script {
    /// Ends with 0.
    #[default]
    Succeeds,
    /// Ends as told, 0 included.
    Ends(ScriptRun),
    /// Never ends; the platform gives up after 90 minutes.
    Hangs,
    /// The handler itself fails with this text and the script never runs.
    HandlerFails(String),
    /// A real program runs in its place: its output and exit code are the script's.
    Runs(Vec<String>),
}

/// One run of a script, as told in advance.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptRun {
    /// The exit code of the bootstrap.
    pub exit_code: i32,
    /// The exit status that the handler sees, where it differs (1 with aks-node-controller).
    pub outer_exit_code: Option<i32>,
    /// The log of the script: its last 3,000 bytes go into the result's `Output`.
    pub output: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// How the result stands in the output.
    pub json: JsonShape,
    /// On Windows: the name of the code, which stands between the bars.
    pub name: String,
    /// How long it runs; seeded when absent.
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

/// How the result JSON stands in the extension's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsonShape {
    /// As the scripts print it.
    #[default]
    Whole,
    /// Its head, and so the exit code, was cut off.
    HeadCut,
    /// There is none: standard output is what the script wrote.
    Absent,
}

/// Whether a Node appears once the script has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeOutcome {
    /// Seconds later.
    #[default]
    Joins,
    /// Never: the silent success.
    Never,
    /// This long after the script ended, whatever its result was.
    JoinsAfter(Span),
}
