//! What is different between kinds of subjects, in one table. A door ([`crate::claims`],
//! [`crate::machines`]) gives each subject a profile; what is behind the doors asks the profile, and
//! never for the kind.

use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED};
use bringup_objects::report::MOVED_LABEL;
use jiff::SignedDuration;

/// A kind of object that is to become a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A NodeClaim of Karpenter.
    NodeClaim,
    /// A Machine of Cluster API.
    Machine,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NodeClaim, Self::Machine];

    /// The kind's name in the Kubernetes API.
    pub fn word(self) -> &'static str {
        match self {
            Self::NodeClaim => "NodeClaim",
            Self::Machine => "Machine",
        }
    }

    /// The kind with this name in the Kubernetes API.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// How subjects of this kind are treated.
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::NodeClaim => &NODE_CLAIM,
            Self::Machine => &MACHINE,
        }
    }
}

/// Where the objects of a kind are, and so the reports and Events about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In no namespace: reports are kept in the controller's namespace.
    Cluster,
    /// In a namespace: reports are kept in the same one.
    Namespace,
}

/// The cluster in which the Node of a subject registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLocation {
    /// The cluster that is watched: Nodes and certificate requests can be read.
    ThisCluster,
    /// A workload cluster: the subject itself tells of its Node.
    WorkloadCluster,
}

/// Which extension of a VM tells how the bootstrap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Script {
    /// The extension that runs the bootstrap script: CSE on AKS nodes.
    #[default]
    Bootstrap,
    /// An extension that waits for a bootstrap which cloud-init runs. All other extensions are the
    /// user's own: they explain a failure, and are none.
    Waiter,
}

/// The pauses between two looks while the bootstrap script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pauses {
    /// Longer each time: Karpenter's Events bring most failures to light before.
    Growing,
    /// Half of the twelve reads a minute that Azure allows of one VM. The other half belongs to the
    /// provider.
    Steady,
}

/// How subjects of a kind are treated.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The kind.
    pub kind: Kind,
    /// Where its objects are.
    pub scope: Scope,
    /// Where its Nodes register.
    pub node: NodeLocation,
    /// The extension that tells how the bootstrap ended.
    pub script: Script,
    /// How long after the VM was accepted it is first looked at.
    pub first_look: SignedDuration,
    /// The pauses after that.
    pub pauses: Pauses,
    /// The conditions that its objects bear.
    pub conditions: &'static [&'static str],
    /// Labels without a value on its reports.
    pub report_labels: &'static [&'static str],
    /// Its VMs need no extension: the result of the bootstrap is on the console, and a console that
    /// proves a failure is enough for a verdict. A bootstrap may also wait in a run command.
    pub console_decides: bool,
    /// Its objects stay after a failure until a person or a controller replaces them: a verdict
    /// without evidence is worth another look.
    pub outlives_failure: bool,
    /// How boot diagnostics are switched on; empty: the provider decides.
    pub boot_diagnostics_remedy: &'static str,
}

/// A NodeClaim: Karpenter deletes it minutes after a failure, with its VM.
pub static NODE_CLAIM: Profile = Profile {
    kind: Kind::NodeClaim,
    scope: Scope::Cluster,
    node: NodeLocation::ThisCluster,
    script: Script::Bootstrap,
    first_look: SignedDuration::from_secs(45),
    pauses: Pauses::Growing,
    conditions: &[CSE_PROVISIONED, BOOTSTRAP_SUCCEEDED],
    report_labels: &[],
    console_decides: false,
    outlives_failure: false,
    boot_diagnostics_remedy: "",
};

/// A Machine: its VM exists before it is first seen, and stays until the Machine is replaced.
pub static MACHINE: Profile = Profile {
    kind: Kind::Machine,
    scope: Scope::Namespace,
    node: NodeLocation::WorkloadCluster,
    script: Script::Waiter,
    first_look: SignedDuration::from_secs(30),
    pauses: Pauses::Steady,
    conditions: &[BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL],
    // clusterctl moves reports together with the Machines that they are about.
    report_labels: &[MOVED_LABEL],
    console_decides: true,
    outlives_failure: true,
    boot_diagnostics_remedy: ": set spec.diagnostics.boot.storageAccountType to Managed",
};

impl Profile {
    /// Whether objects of this kind bear a condition of this type.
    pub fn bears(&self, condition: &str) -> bool {
        self.conditions.contains(&condition)
    }
}
