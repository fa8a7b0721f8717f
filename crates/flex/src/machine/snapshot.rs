//! Everything that a decision about one machine depends on, and the possible decisions.

use bringup_objects::flex::machine::{
    AzureFlexMachine, Call, FlexMachineStatus as Status, Phase, Place,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::claim::ClaimState;
use crate::time::later;
use crate::trouble::Trouble;

/// How long Azure reserves a NIC for a VM that was requested.
pub const RESERVATION: SignedDuration = SignedDuration::from_secs(180);
/// How long a failed VM is not deleted, so that its failure can be inspected.
pub const EVIDENCE: SignedDuration = SignedDuration::from_mins(1);
/// The pause between two reads of a resource or an operation that is still in progress.
pub(super) const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// The state of a machine in this process's memory. Losing it costs reads, and causes no wrong decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The time at which this process stored the intent of a call, while that call was not sent yet.
    pub unsent: Option<Timestamp>,
    /// Whether the last read since the intent was stored found no VM.
    pub vm_is_absent: bool,
    /// The earliest time of the next call: Azure's `Retry-After`, or the usual pause.
    pub not_before: Option<Timestamp>,
    /// How many reads in a row did not find the resource that is to be deleted.
    pub absent_reads: u32,
    /// How many lists and reads in a row did not show the VM of a running machine.
    pub missing_vm: u32,
    /// Whether the Event on the claim about the machine's failure was created.
    pub failure_announced: bool,
    /// Whether the claim was deleted.
    pub claim_deleted: bool,
}

impl Memory {
    /// The memory after a list did not show the VM of a running machine: the next pass reads the VM.
    pub fn vm_not_listed() -> Self {
        Self { missing_vm: 1, ..Self::default() }
    }

    /// The part of the memory that remains when a new call begins: the part about the claim.
    pub(crate) fn of_claim(self) -> Self {
        let Self { failure_announced, claim_deleted, .. } = self;
        Self { failure_announced, claim_deleted, ..Self::default() }
    }
}

/// A request to Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Create the NIC.
    PutNic,
    /// Create the VM.
    PutVm,
    /// Read the VM.
    ReadVm,
    /// Read the state of the pending operation.
    Poll,
    /// Delete the VM.
    DeleteVm,
    /// Delete the NIC.
    DeleteNic,
    /// Delete the disk.
    DeleteDisk,
}

/// The state of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vm {
    /// The VM is being created or changed.
    Underway,
    /// The VM exists.
    Succeeded,
    /// The VM failed.
    Failed(Trouble),
    /// The VM is being deleted.
    Deleting,
}

/// Azure's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Azure accepted the request.
    Accepted {
        /// The operation's URL; none if the operation has already ended.
        operation: Option<String>,
        /// How long to wait before the first poll of the operation.
        wait: Option<SignedDuration>,
        /// The vmId of the VM that was requested.
        vm_id: Option<String>,
    },
    /// The operation is in progress.
    Running {
        /// How long to wait before the next poll.
        wait: Option<SignedDuration>,
    },
    /// The operation succeeded.
    Done,
    /// The operation failed.
    Failed(Trouble),
    /// A newer operation replaced this one, or Azure no longer knows it: the resource must be read.
    Lost,
    /// The VM exists.
    Vm {
        /// The VM's state.
        state: Vm,
        /// The VM's vmId.
        id: Option<String>,
    },
    /// The resource does not exist.
    Absent,
    /// One read did not find the resource. That is no proof, because reads can return old data.
    Unseen,
    /// A resource under one of the machine's names does not belong to the machine; the text names the
    /// resource and the reason. Nothing was written or deleted.
    Foreign(String),
    /// Azure refused the request, or did not answer.
    Trouble(Trouble),
}

/// The reason for deleting a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedClaim {
    /// The cause, in one word.
    pub cause: String,
    /// The cause, in a sentence.
    pub message: String,
}

/// The next step: at most one effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Add the finalizer, which prevents the deletion of the machine until Azure holds none of its resources.
    AddFinalizer,
    /// Store this status.
    Store(Box<Status>),
    /// Send this request to Azure, and store the result.
    Send(Request),
    /// Remove the finalizer: Azure holds no resource of the machine.
    RemoveFinalizer,
    /// Delete the machine: its claim no longer exists.
    DeleteMachine,
    /// Create the Event on the claim about the failure of its machine.
    AnnounceFailure(String),
    /// Delete the claim, because its machine failed. The Event about the failure is created first.
    DeleteClaim(FailedClaim),
    /// Wait until this time.
    Wait(Timestamp),
    /// Wait until an object changes.
    Rest,
}

/// Everything that a decision about one machine depends on, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The machine as it is stored.
    pub machine: &'a AzureFlexMachine,
    /// The place that the class gives the machine now; none if the class is not ready, or if the machine
    /// already has a place.
    pub place: Option<&'a Place>,
    /// Why a machine at this place could never join. If set, bringup sends no request to Azure.
    pub join_error: Option<&'a str>,
    /// The state of the machine's claim.
    pub claim: ClaimState<'a>,
    /// The state of the machine in this process's memory.
    pub memory: Memory,
    /// The time.
    pub now: Timestamp,
}

impl Snapshot<'_> {
    /// The stored status, or the default.
    pub(super) fn status(&self) -> Status {
        self.machine.status.clone().unwrap_or_default()
    }

    /// Whether a stored time is at most `most` away. A time that is farther away comes from another writer or
    /// a wrong clock: waiting for it could take forever.
    pub(super) fn is_near(&self, moment: Timestamp, most: SignedDuration) -> bool {
        moment <= later(self.now, most)
    }

    /// The present time in the precision that Kubernetes stores: whole seconds.
    pub(super) fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now))
    }

    /// A new call that begins now.
    pub(super) fn call(&self) -> Call {
        Call { started_at: Some(self.time()), ..Call::default() }
    }

    /// The status with which all of the machine's resources are deleted: the VM first, because it uses the
    /// others.
    pub(super) fn cleaning_up(&self, status: Status) -> Status {
        let phase = match (&status.place, &status.vm_attempt_at) {
            (None, _) => Phase::Gone,
            (Some(_), None) => Phase::CleanNic,
            (Some(_), Some(_)) => Phase::CleanVm,
        };
        Status { phase, call: Some(self.call()), ..status }
    }
}
