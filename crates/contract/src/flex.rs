//! Enumerations of `AzureFlexNodeClass` and `AzureFlexMachine`.

use crate::open::Word;
use crate::{Cause, words};

words! {
    /// How Azure sells a VM.
    #[derive(Default)]
    pub enum CapacityType {
        /// Azure runs the VM until it is deleted.
        #[default]
        OnDemand = "on-demand",
        /// Azure may evict the VM when it needs the capacity.
        Spot = "spot",
    }
}

words! {
    /// The kind of failure of an Azure call, which determines retries and back-off.
    #[derive(Default)]
    pub enum FailureClass {
        /// There is no quota or no capacity: try elsewhere, or later.
        Capacity = "capacity",
        /// The request is wrong.
        Request = "request",
        /// The subnet has no free address.
        Network = "network",
        /// Something has to pass first, such as a reservation of the NIC.
        Wait = "wait",
        /// Too many requests.
        Throttle = "throttle",
        /// Another operation is under way, or the name belongs to another resource.
        Conflict = "conflict",
        /// The identity lacks a role.
        Access = "access",
        /// Azure is unwell, or did not answer: the request may have taken effect.
        #[default]
        Transient = "transient",
    }
}

/// Why an attempt to create a VM failed: a cause, or what only a flex machine meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureCause {
    /// A cause that any node can have.
    Node(Cause),
    /// A resource under one of the machine's names belongs to another owner.
    ForeignResource,
    /// The join configuration is invalid, so no VM was requested.
    InvalidJoinConfiguration,
}

impl Word for FailureCause {
    const ALL: &'static [Self] = &{
        let mut all = [Self::ForeignResource; Cause::ALL.len() + 2];
        all[Cause::ALL.len() + 1] = Self::InvalidJoinConfiguration;
        let mut nth = 0;
        while nth < Cause::ALL.len() {
            all[nth] = Self::Node(Cause::ALL[nth]);
            nth += 1;
        }
        all
    };

    fn word(self) -> &'static str {
        match self {
            Self::Node(cause) => cause.reason(),
            Self::ForeignResource => "ForeignResource",
            Self::InvalidJoinConfiguration => "InvalidJoinConfiguration",
        }
    }
}

impl Default for FailureCause {
    fn default() -> Self {
        Self::Node(Cause::Unknown)
    }
}

impl From<Cause> for FailureCause {
    fn from(cause: Cause) -> Self {
        Self::Node(cause)
    }
}
