//! The differences between kinds of subjects, in one table. [`crate::claims`] and [`crate::machines`] give
//! each subject a profile; all other code reads the profile instead of the kind.

use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED};
use bringup_objects::report::MOVED_LABEL;
use jiff::SignedDuration;

/// A kind of object that becomes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A NodeClaim of Karpenter.
    NodeClaim,
    /// A Machine of Cluster API.
    Machine,
}

impl Kind {
    /// All kinds.
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

    /// How the observer treats subjects of this kind.
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::NodeClaim => &NODE_CLAIM,
            Self::Machine => &MACHINE,
        }
    }
}

/// Whether objects of a kind are namespaced, and where their reports and Events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Cluster-scoped: reports are in the controller's namespace.
    Cluster,
    /// Namespaced: reports are in the object's namespace.
    Namespace,
}

/// The cluster in which the Node of a subject registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLocation {
    /// The cluster that the controller watches: its Nodes and certificate requests can be read.
    ThisCluster,
    /// A workload cluster: the subject itself refers to its Node.
    WorkloadCluster,
}

/// Which extension of a VM shows how the bootstrap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Script {
    /// The extension that runs the bootstrap script: CSE on AKS nodes.
    #[default]
    Bootstrap,
    /// An extension that waits for a bootstrap that cloud-init runs. All other extensions are the user's own:
    /// they can explain a failure, but prove none.
    Waiter,
}

/// The pauses between two looks while the bootstrap script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pauses {
    /// Longer after each look: Karpenter's Events reveal most failures earlier.
    Growing,
    /// Half of the twelve reads a minute that Azure allows of one VM. The other half belongs to the
    /// provider.
    Steady,
}

/// How the observer treats subjects of one kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The kind of the subjects.
    pub kind: Kind,
    /// Whether the objects are namespaced.
    pub scope: Scope,
    /// The cluster in which the Nodes register.
    pub node: NodeLocation,
    /// The extension that shows how the bootstrap ended.
    pub script: Script,
    /// The time from the VM's acceptance to the first look.
    pub first_look: SignedDuration,
    /// The pauses after the first look.
    pub pauses: Pauses,
    /// The types of the conditions that bringup writes on the objects.
    pub conditions: &'static [&'static str],
    /// Labels without a value on the reports.
    pub report_labels: &'static [&'static str],
    /// Whether the console alone is enough for a verdict. The VMs need no extension: the result of the
    /// bootstrap is on the console, or in a run command in which the bootstrap waits.
    pub console_decides: bool,
    /// Whether the objects exist after a failure until a person or a controller replaces them: then a verdict
    /// without evidence justifies another look.
    pub outlives_failure: bool,
    /// How to enable boot diagnostics; empty if the provider decides.
    pub boot_diagnostics_remedy: &'static str,
}

/// A NodeClaim: Karpenter deletes a failed claim and its VM within minutes.
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

/// A Machine: its VM exists before the Machine is first observed, and until the Machine is replaced.
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
    /// Whether bringup writes conditions of this type on objects of this kind.
    pub fn bears(&self, condition: &str) -> bool {
        self.conditions.contains(&condition)
    }
}
