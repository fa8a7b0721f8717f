//! The `NodeClaim` of a machine as plain values, without types of Kubernetes.

use bringup_objects::flex::machine::FlexMachineStatus;

use crate::ids::same_provider_id;

/// The cause of a claim that was deleted because Azure did not accept its VM in time.
pub const LAUNCH_TIMEOUT: &str = "LaunchTimeout";
/// The cause of a claim that was deleted because its Node did not join in time.
pub const BOOT_TIMEOUT: &str = "BootTimeout";

/// A claim of one of our classes, reduced to the fields that decide about its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The claim's uid. A later claim of the same name has another uid.
    pub uid: String,
    /// The name of the claim's `AzureFlexNodeClass`.
    pub class: String,
    /// Whether the claim has a deletion timestamp.
    pub is_deleting: bool,
    /// Whether Karpenter has found the claim's Node.
    pub is_registered: bool,
    /// The provider ID that Karpenter stored in the claim, which names the claim's machine.
    pub provider_id: Option<String>,
    /// The observer's verdict on the bootstrap; none: no verdict yet.
    pub verdict: Option<Verdict>,
}

/// The observer's verdict on a bootstrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The bootstrap succeeded.
    Succeeded,
    /// The bootstrap failed for a known cause.
    Failed {
        /// The reason of the condition.
        cause: String,
        /// The message of the condition.
        message: String,
    },
    /// No Node joined within the observer's time limit, for no known cause: the Node may still join.
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

/// Whether the claim of a machine exists, as far as the watch has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimState<'a> {
    /// Claims have not been listed yet, so the claim may exist.
    #[default]
    NotListed,
    /// Claims have been listed, and the claim is not among them.
    Missing,
    /// The claim exists.
    Exists(&'a Claim),
}

impl<'a> ClaimState<'a> {
    /// The state of a claim, from its watched state and whether claims have been listed.
    pub fn of(seen: Option<&'a Claim>, is_listed: bool) -> Self {
        match (seen, is_listed) {
            (Some(claim), _) => Self::Exists(claim),
            (None, true) => Self::Missing,
            (None, false) => Self::NotListed,
        }
    }
}
