//! Everything that a decision about one machine depends on, and what can be decided.

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
/// How long a VM that failed is kept, so that its failure can be inspected.
pub const EVIDENCE: SignedDuration = SignedDuration::from_mins(1);
/// The pause between two reads of something that is under way.
pub(super) const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// What is remembered of a machine and not worth storing. Without it more is read, and nothing is
/// done wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The call that this process has stored and not sent yet, by the time at which it was stored.
    pub unsent: Option<Timestamp>,
    /// The last read since the call was stored did not find the VM.
    pub vm_is_absent: bool,
    /// Nothing is sent before this, as Azure asks or as is usual.
    pub not_before: Option<Timestamp>,
    /// How many reads in a row did not find what is to be deleted.
    pub absent_reads: u32,
    /// How many lists and reads in a row did not show the VM of a machine that runs.
    pub missing_vm: u32,
    /// The Event on the claim about the failure of the machine has been created.
    pub failure_announced: bool,
    /// The claim has been deleted.
    pub claim_deleted: bool,
}

impl Memory {
    /// The memory after a list that did not show the VM of a machine that runs: the VM is read at
    /// the next pass.
    pub fn vm_not_listed() -> Self {
        Self { missing_vm: 1, ..Self::default() }
    }

    /// What remains when a new call begins: what concerns the claim.
    pub(crate) fn of_claim(self) -> Self {
        let Self { failure_announced, claim_deleted, .. } = self;
        Self { failure_announced, claim_deleted, ..Self::default() }
    }
}

/// What is requested of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Create the NIC.
    PutNic,
    /// Create the VM.
    PutVm,
    /// Read the VM.
    ReadVm,
    /// Read the state of the operation that is under way.
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
    /// It is being created or changed.
    Underway,
    /// It exists.
    Succeeded,
    /// It failed, because of this.
    Failed(Trouble),
    /// It is being deleted.
    Deleting,
}

/// What Azure answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The request is accepted.
    Accepted {
        /// The address of the operation; none: it is done.
        operation: Option<String>,
        /// How long to wait before the operation is polled.
        wait: Option<SignedDuration>,
        /// The vmId of the VM that was requested.
        vm_id: Option<String>,
    },
    /// The operation runs.
    Running {
        /// How long to wait before it is polled again.
        wait: Option<SignedDuration>,
    },
    /// It is done.
    Done,
    /// It failed.
    Failed(Trouble),
    /// A newer operation took its place, or Azure no longer knows it: the resource is to be read.
    Lost,
    /// The VM exists.
    Vm {
        /// Its state.
        state: Vm,
        /// Its vmId.
        id: Option<String>,
    },
    /// The resource does not exist.
    Absent,
    /// One read did not find the resource. That is no proof: reads can be behind.
    Unseen,
    /// A resource under one of the machine's names is not the machine's: which, and why. Nothing was
    /// written and nothing deleted.
    Foreign(String),
    /// The request was not answered, or refused.
    Trouble(Trouble),
}

/// Why a claim is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedClaim {
    /// Why, in one word.
    pub cause: String,
    /// Why, in a sentence.
    pub message: String,
}

/// What to do: at most one effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Add the finalizer, which keeps the machine until Azure holds nothing of it.
    AddFinalizer,
    /// Store this status.
    Store(Box<Status>),
    /// Send this request to Azure, and store what its answer means.
    Send(Request),
    /// Remove the finalizer: Azure holds nothing of the machine.
    RemoveFinalizer,
    /// Delete the machine: its claim no longer exists.
    DeleteMachine,
    /// Create the Event on the claim about the failure of its machine.
    AnnounceFailure(String),
    /// Delete the claim: its machine failed. The same Event comes first.
    DeleteClaim(FailedClaim),
    /// Nothing before this moment.
    Wait(Timestamp),
    /// Nothing, until something changes.
    Rest,
}

/// Everything that a decision about one machine depends on, at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The machine as it is stored.
    pub machine: &'a AzureFlexMachine,
    /// The place that follows from its class now; none: the class is not ready, or it is placed already.
    pub place: Option<&'a Place>,
    /// Why a machine at this place could never join: then nothing is requested of Azure.
    pub join_error: Option<&'a str>,
    /// The claim that it is for.
    pub claim: ClaimState<'a>,
    /// What this process remembers of it.
    pub memory: Memory,
    /// The time.
    pub now: Timestamp,
}

impl Snapshot<'_> {
    /// What is stored of its progress.
    pub(super) fn status(&self) -> Status {
        self.machine.status.clone().unwrap_or_default()
    }

    /// Whether a stored moment is at most so far away. One that is farther was not stored by bringup,
    /// or by a clock that was wrong: waiting for it would be waiting for ever.
    pub(super) fn is_near(&self, moment: Timestamp, most: SignedDuration) -> bool {
        moment <= later(self.now, most)
    }

    /// Now, as it can be stored: Kubernetes keeps no fractions.
    pub(super) fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now))
    }

    /// A new call, decided on now.
    pub(super) fn call(&self) -> Call {
        Call { started_at: Some(self.time()), ..Call::default() }
    }

    /// The status of a machine of which everything is to be deleted: the VM first, which holds the
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
