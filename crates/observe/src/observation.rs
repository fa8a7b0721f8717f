//! What one look brought: the state of the VM, what the extension said, and the evidence.

use bringup_contract::Open;
pub use bringup_objects::report::ProvisionMode as Mode;
use bringup_objects::report::{Collector, CollectorState};
use jiff::Timestamp;

use crate::collector;
use crate::diagnosed::DiagnosedEvidence;
use crate::profile::Script;

/// What ARM shows of the VM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Vm {
    /// Its state could not be read.
    #[default]
    NotSeen,
    /// It does not exist, or not any more.
    Gone,
    /// It is being deleted, and says no more.
    Deleting,
    /// It exists.
    Present,
    /// Its creation or an extension failed.
    Failed,
}

/// What the guest agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agent {
    /// The last look could not read it.
    #[default]
    NotSeen,
    /// Nothing.
    Silent,
    /// That it runs.
    Ready,
}

impl Agent {
    /// What is known of it after a look that did not read the VM: an agent that was silent may have
    /// reported since.
    #[must_use]
    pub fn unread(self) -> Self {
        match self {
            Self::NotSeen | Self::Silent => Self::NotSeen,
            Self::Ready => Self::Ready,
        }
    }
}

/// What AKS says of the machine that it makes the VM for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aks {
    /// Nothing: it was not asked, or did not answer.
    #[default]
    NotSeen,
    /// Not that it failed.
    NotFailed,
    /// That it failed, whatever became of the VM.
    Failed,
}

/// What is known of the Custom Script extension's own result, wherever it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cse {
    /// There is no extension, and no result of the scripts elsewhere.
    #[default]
    Absent,
    /// It runs.
    Running {
        /// Since when, if that is known.
        since: Option<Timestamp>,
    },
    /// It succeeded.
    Succeeded {
        /// When, if that is known.
        at: Option<Timestamp>,
    },
    /// It failed.
    Failed {
        /// When, if that is known.
        at: Option<Timestamp>,
    },
}

/// What one look brought.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// When it was made.
    pub at: Timestamp,
    /// The VM.
    pub vm: Vm,
    /// Its guest agent.
    pub agent: Agent,
    /// The machine of AKS that it is.
    pub aks: Aks,
    /// Its extension.
    pub cse: Cse,
    /// The version of the extension's handler.
    pub handler_version: Option<String>,
    /// What ARM says of the extension.
    pub extension_state: Option<String>,
    /// How it bootstraps.
    pub mode: Mode,
    /// What the VM is.
    pub facts: Facts,
    /// Everything that was read, without secrets.
    pub evidence: DiagnosedEvidence,
    /// The sources that were asked, and the result of each.
    pub collectors: Vec<Collector>,
    /// What happened when.
    pub timeline: Vec<(Timestamp, String)>,
    /// Whether the VM has a console that can be read; absent: not known.
    pub console: Option<bool>,
    /// Whether its agent knows of managed run commands.
    pub runs_commands: bool,
    /// Why Azure could not be asked at all.
    pub denied: Option<String>,
    /// Everything that can be asked has been asked.
    pub is_full: bool,
    /// What was wrong with the bootstrap, should its Node come all the same.
    pub warning: Option<String>,
    /// Which extension tells how the bootstrap ended.
    pub script: Script,
}

impl Observation {
    /// The same with excerpts of at most `most` bytes of each piece of evidence. Takes as long as the
    /// evidence is large: not for a task on which others wait.
    #[must_use]
    pub fn with_excerpts(mut self, most: usize) -> Self {
        self.evidence.cut_to_excerpts(most);
        self
    }

    /// Whether a source that could tell more did not answer this time.
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

/// What ARM knows of a VM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The VM's own id.
    pub vm_id: Option<String>,
    /// When it was made.
    pub made: Option<Timestamp>,
    /// Its size.
    pub size: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its image.
    pub image: Option<String>,
    /// Its name in the network, which becomes the Node's.
    pub computer_name: Option<String>,
    /// linux or windows.
    pub os: Option<String>,
}
