//! The `NodeClaim` that a machine is for, as plain values: no types of Kubernetes.

use bringup_objects::flex::machine::FlexMachineStatus;

use crate::ids::same_provider_id;

/// The cause of a claim that was deleted because Azure did not accept its VM in time.
pub const LAUNCH_TIMEOUT: &str = "LaunchTimeout";
/// The cause of a claim that was deleted because its Node did not join in time.
pub const BOOT_TIMEOUT: &str = "BootTimeout";

/// A claim of one of our classes, reduced to what decides about its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its uid, which a claim of the same name created later does not share.
    pub uid: String,
    /// The name of its `AzureFlexNodeClass`.
    pub class: String,
    /// It has a deletion timestamp.
    pub is_deleting: bool,
    /// Karpenter has found its Node.
    pub is_registered: bool,
    /// The provider id that Karpenter has stored: the machine that it names as its own.
    pub provider_id: Option<String>,
    /// What the observer reports of its bootstrap; none: no report yet.
    pub verdict: Option<Verdict>,
}

/// What the observer reports of a bootstrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The bootstrap succeeded.
    Succeeded,
    /// The bootstrap failed, and the report says why.
    Failed {
        /// The reason of the condition.
        cause: String,
        /// The message of the condition.
        message: String,
    },
    /// No Node came within the time limit of the observer, and nothing explains it: the Node may
    /// still come.
    Unexplained,
}

impl Claim {
    /// Whether the claim names this machine as its own.
    ///
    /// Any client that may create machines can make one that refers to any claim, so the reference
    /// in the machine proves nothing.
    pub fn names(&self, machine: &FlexMachineStatus) -> bool {
        let both = self.provider_id.as_deref().zip(machine.provider_id.as_deref());
        both.is_some_and(|(claimed, machine)| same_provider_id(claimed, machine))
    }
}

/// Whether the claim of a machine exists, by what has been seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimState<'a> {
    /// Claims have not been listed yet: one that has not been seen may exist.
    #[default]
    NotListed,
    /// Claims have been listed, and it is not among them.
    Missing,
    /// It exists.
    Exists(&'a Claim),
}

impl<'a> ClaimState<'a> {
    /// The state of a claim that was seen, or of one that was not.
    pub fn of(seen: Option<&'a Claim>, is_listed: bool) -> Self {
        match (seen, is_listed) {
            (Some(claim), _) => Self::Exists(claim),
            (None, true) => Self::Missing,
            (None, false) => Self::NotListed,
        }
    }
}
