//! The result of one look: the state of the VM, the result of the extension, and the evidence.

use bringup_contract::Open;
pub use bringup_objects::report::ProvisionMode as Mode;
use bringup_objects::report::{Collector, CollectorState};
use jiff::Timestamp;

use crate::collector;
use crate::diagnosed::DiagnosedEvidence;
use crate::profile::Script;

/// The state of the VM in ARM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Vm {
    /// The state could not be read.
    #[default]
    NotSeen,
    /// The VM does not exist.
    Gone,
    /// The VM is being deleted, and shows nothing else.
    Deleting,
    /// The VM exists.
    Present,
    /// The creation of the VM or an extension failed.
    Failed,
}

/// The state of the guest agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agent {
    /// The last look could not read the agent's state.
    #[default]
    NotSeen,
    /// The agent has not reported.
    Silent,
    /// The agent reports that it runs.
    Ready,
}

impl Agent {
    /// The state after a look that could not read the VM: a silent agent may have reported since.
    #[must_use]
    pub fn unread(self) -> Self {
        match self {
            Self::NotSeen | Self::Silent => Self::NotSeen,
            Self::Ready => Self::Ready,
        }
    }
}

/// The state of the AKS machine that the VM belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aks {
    /// AKS was not queried, or did not answer.
    #[default]
    NotSeen,
    /// AKS reports no failure.
    NotFailed,
    /// AKS reports a failure, regardless of the VM's state.
    Failed,
}

/// The result of the Custom Script extension, from whichever source shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cse {
    /// No extension exists, and no other source shows a result of the scripts.
    #[default]
    Absent,
    /// The script runs.
    Running {
        /// The start of the script, if known.
        since: Option<Timestamp>,
    },
    /// The script succeeded.
    Succeeded {
        /// The end of the script, if known.
        at: Option<Timestamp>,
    },
    /// The script failed.
    Failed {
        /// The end of the script, if known.
        at: Option<Timestamp>,
    },
}

/// The result of one look.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// The time of the look.
    pub at: Timestamp,
    /// The state of the VM.
    pub vm: Vm,
    /// The state of the guest agent.
    pub agent: Agent,
    /// The state of the AKS machine.
    pub aks: Aks,
    /// The result of the extension.
    pub cse: Cse,
    /// The version of the extension's handler.
    pub handler_version: Option<String>,
    /// The extension's provisioning state in ARM.
    pub extension_state: Option<String>,
    /// How the node bootstraps.
    pub mode: Mode,
    /// Properties of the VM.
    pub facts: Facts,
    /// All texts that were read, without secrets.
    pub evidence: DiagnosedEvidence,
    /// The sources that were read, and the result of each.
    pub collectors: Vec<Collector>,
    /// Events with their times.
    pub timeline: Vec<(Timestamp, String)>,
    /// Whether the VM has a console that can be read; absent if not known.
    pub console: Option<bool>,
    /// Whether the VM's agent knows of managed run commands.
    pub runs_commands: bool,
    /// Why Azure could not be read at all, if so.
    pub denied: Option<String>,
    /// Whether all sources have been read.
    pub is_full: bool,
    /// A problem with the bootstrap, to warn of in case the Node joins all the same.
    pub warning: Option<String>,
    /// Which extension shows how the bootstrap ended.
    pub script: Script,
}

impl Observation {
    /// The observation with each piece of evidence cut to at most `most` bytes. Takes time in proportion to
    /// the size of the evidence: call it only on a worker thread.
    #[must_use]
    pub fn with_excerpts(mut self, most: usize) -> Self {
        self.evidence.cut_to_excerpts(most);
        self
    }

    /// Whether a source that could show more did not answer this time.
    pub fn is_unanswered(&self) -> bool {
        let asked = [collector::VM, collector::SERIAL_LOG];
        let is_silent = |one: &Collector| {
            asked.contains(&one.name.as_str())
                && matches!(
                    one.state,
                    Open::Known(CollectorState::Failed | CollectorState::Throttled)
                )
        };
        self.denied.is_some() || self.collectors.iter().any(is_silent)
    }
}

/// Properties of a VM in ARM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The VM's unique ID.
    pub vm_id: Option<String>,
    /// When the VM was created.
    pub made: Option<Timestamp>,
    /// The VM's size.
    pub size: Option<String>,
    /// The VM's region.
    pub region: Option<String>,
    /// The VM's zone.
    pub zone: Option<String>,
    /// The VM's image.
    pub image: Option<String>,
    /// The host name of the VM, which becomes the Node's name.
    pub computer_name: Option<String>,
    /// The operating system: linux or windows.
    pub os: Option<String>,
}
