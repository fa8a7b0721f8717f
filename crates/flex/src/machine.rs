//! What is next for one machine.
//!
//! Every intent is stored before the call to Azure that it is about, and every answer after it.
//! After a crash, the next process therefore knows what may have happened, and either reads the
//! resource or repeats the call. Repeating a call is harmless for everything but a VM: a second
//! request for one preempts the first. So only the process that has just stored its intent requests
//! a VM without reading it first.

mod answers;
mod ready;

use bringup_contract::flex::FailureCause;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{
    AzureFlexMachine, Call, Failure, FlexMachineStatus as Status, Phase, Place,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use ready::{READY, conditions};

use crate::time::later;
use crate::trouble::{Class, Trouble};

/// How long Azure keeps a NIC for a VM that was asked for.
pub const RESERVATION: SignedDuration = SignedDuration::from_secs(180);
/// How long after that it is asked for again.
const AFTER_RESERVATION: SignedDuration = SignedDuration::from_secs(10);
/// How long a VM that failed is kept, so that its failure can be inspected.
pub const EVIDENCE: SignedDuration = SignedDuration::from_mins(1);
/// No moment that is stored to wait for is farther away: the longest back-off is 23 hours.
const LONGEST_STORED: SignedDuration = SignedDuration::from_hours(24);
/// The pause until a machine that was refused before any call is looked at again.
const REFUSED: SignedDuration = SignedDuration::from_mins(2);
/// The pause between two looks at something that is under way.
pub(crate) const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// The VM of a place as Kubernetes names it.
pub fn provider_id(place: &Place) -> String {
    format!("azure-flex://{}", crate::engine::vm_id(place))
}

/// What is known of a machine and not worth storing: without it more is asked, nothing is done
/// wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The call that this process has stored and not made yet.
    pub fresh: Option<Timestamp>,
    /// The VM is not there, by the last look since the call was stored.
    pub absent: bool,
    /// Not before this, as Azure said or as is usual.
    pub wait: Option<Timestamp>,
    /// How often in a row a look did not find what is to be deleted.
    pub looks: u32,
    /// How often the VM of a machine that runs is to be looked for, because a list did not show it.
    pub doubts: u32,
}

/// What is asked of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ask {
    /// Make the NIC.
    PutNic,
    /// Make the VM.
    PutVm,
    /// Say how the VM is.
    ReadVm,
    /// Say how the call stands.
    Poll,
    /// Remove the VM.
    DeleteVm,
    /// Remove the NIC.
    DeleteNic,
    /// Remove the disk.
    DeleteDisk,
}

/// How a VM is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vm {
    /// It is being made or changed.
    Underway,
    /// It is there.
    Succeeded,
    /// It failed, because of this.
    Failed(Trouble),
    /// It is being removed.
    Deleting,
}

/// What Azure answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It will be done; this is where to ask how it stands.
    Accepted {
        /// The address of the operation; none: it is done.
        operation: Option<String>,
        /// How long to wait before asking.
        wait: Option<SignedDuration>,
        /// The vmId of the VM that was asked for.
        vm_id: Option<String>,
    },
    /// It runs.
    Running {
        /// How long to wait before asking again.
        wait: Option<SignedDuration>,
    },
    /// It is done.
    Done,
    /// It failed.
    Failed(Trouble),
    /// A newer operation took its place, or Azure no longer knows it: look at the resource.
    Lost,
    /// The VM is so.
    Vm {
        /// How it is.
        state: Vm,
        /// Its own id.
        id: Option<String>,
    },
    /// It is not there.
    Absent,
    /// One look did not find it. That is no proof: reads can be behind.
    Unseen,
    /// A resource under one of the machine's names is not the machine's: which, and why. Nothing was
    /// written and nothing deleted.
    Foreign(String),
    /// It was not answered, or refused.
    Trouble(Trouble),
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Keep the object until Azure holds nothing of it.
    Hold,
    /// Store this.
    Store(Box<Status>),
    /// Ask this of Azure.
    Ask(Ask),
    /// Nothing before this moment.
    Wait(Timestamp),
    /// Azure holds nothing of it: the object may go.
    Release,
    /// Nothing, until something changes.
    Rest,
}

/// What others say of a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around<'a> {
    /// Where it is to be, as its class says now; none: its class is not ready.
    pub place: Option<&'a Place>,
    /// Its VM is still needed to find out why it failed.
    pub is_evidence: bool,
    /// Why it could never join: then nothing is asked of Azure.
    pub refused: Option<&'a str>,
}

/// What is known of a machine at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// What is stored of it.
    pub machine: &'a AzureFlexMachine,
    /// What others say.
    pub around: Around<'a>,
    /// What is known beside.
    pub memory: &'a Memory,
    /// Now.
    pub now: Timestamp,
}

impl Snapshot<'_> {
    /// What is stored of its progress.
    pub fn status(&self) -> Status {
        self.machine.status.clone().unwrap_or_default()
    }

    /// What is next.
    pub fn next_step(&self) -> Step {
        let status = self.status();
        let held = self.machine.metadata.finalizers.iter().flatten().any(|held| held == FINALIZER);
        let deleting = self.machine.metadata.deletion_timestamp.is_some();
        match (held, deleting) {
            (false, true) => return Step::Rest,
            (false, false) => return Step::Hold,
            (true, true) if status.delete_requested_at.is_none() || !status.phase.is_cleaning() => {
                return Step::Store(Box::new(self.going(status)));
            }
            (true, _) => {}
        }
        let stored = status.call.as_ref().and_then(|call| call.not_before.as_ref());
        let stored = stored.map(|time| time.0).filter(|until| self.is_near(*until, LONGEST_STORED));
        let wait = stored.max(self.memory.wait);
        if let Some(until) = wait.filter(|until| *until > self.now) {
            return Step::Wait(until);
        }
        self.by_phase(status, deleting)
    }

    fn by_phase(&self, status: Status, deleting: bool) -> Step {
        let underway = status.call.as_ref().is_some_and(|call| call.operation_url.is_some());
        let is_refused = status.call.as_ref().is_some_and(|call| call.last_error.is_some());
        match status.phase {
            Phase::Planned => match (self.around.refused, self.around.place) {
                (Some(why), _) => Step::Store(Box::new(refused_unasked(status, why))),
                (None, Some(place)) => Step::Store(Box::new(self.planned(status, place))),
                (None, None) => Step::Rest,
            },
            Phase::NicPut
            | Phase::VmAccepted
            | Phase::CleanVm
            | Phase::CleanNic
            | Phase::CleanDisk
                if underway =>
            {
                Step::Ask(Ask::Poll)
            }
            Phase::NicPut => Step::Ask(Ask::PutNic),
            Phase::NicReady => Step::Store(Box::new(self.asking_for_vm(status))),
            Phase::VmPut => {
                let started = status.call.as_ref().and_then(|call| call.started_at.as_ref());
                match (started, self.memory.fresh) {
                    (Some(started), Some(fresh)) if started.0 == fresh => Step::Ask(Ask::PutVm),
                    _ if self.memory.absent => Step::Store(Box::new(self.asking_for_vm(status))),
                    _ => Step::Ask(Ask::ReadVm),
                }
            }
            Phase::VmAccepted => Step::Ask(Ask::ReadVm),
            // A look that was refused is still to be made.
            Phase::Running if self.memory.doubts > 0 || is_refused => Step::Ask(Ask::ReadVm),
            Phase::Running => Step::Rest,
            Phase::CleanVm => match self.is_read_until(&status) {
                Some(until) => Step::Wait(until),
                None => Step::Ask(Ask::DeleteVm),
            },
            Phase::CleanNic => match self.nic_is_kept_until(&status) {
                Some(until) => Step::Wait(until),
                None => Step::Ask(Ask::DeleteNic),
            },
            Phase::CleanDisk => Step::Ask(Ask::DeleteDisk),
            Phase::Gone if deleting => Step::Release,
            Phase::Gone => self.again(status),
        }
    }

    /// Until when the VM is kept so that its failure can be inspected; not for ever.
    fn is_read_until(&self, status: &Status) -> Option<Timestamp> {
        let call = status.call.as_ref().filter(|call| call.failures == 0)?;
        let decided = call.started_at.as_ref().filter(|_| self.around.is_evidence)?;
        let until = later(decided.0, EVIDENCE);
        Some(until).filter(|until| *until > self.now && self.is_near(*until, EVIDENCE))
    }

    /// Until when Azure would refuse to remove the NIC. That of a VM which was there went with it.
    fn nic_is_kept_until(&self, status: &Status) -> Option<Timestamp> {
        let reserved = status.nic_reserved_until.as_ref().filter(|_| status.completed_at.is_none());
        let until = reserved.map(|until| later(until.0, AFTER_RESERVATION))?;
        let longest = RESERVATION.saturating_add(AFTER_RESERVATION);
        Some(until).filter(|until| *until > self.now && self.is_near(*until, longest))
    }

    /// Whether a stored moment is at most so far away. One that is farther was not stored by us, or by
    /// a clock that was wrong: waiting for it would be waiting for ever.
    fn is_near(&self, moment: Timestamp, most: SignedDuration) -> bool {
        moment <= later(self.now, most)
    }

    /// Now, as it can be stored: Kubernetes keeps no fractions.
    fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now))
    }

    /// A new call, decided on now.
    pub(crate) fn call(&self) -> Call {
        Call { started_at: Some(self.time()), ..Call::default() }
    }

    /// The beginning of an attempt: from here on Azure may hold something of it.
    fn planned(&self, status: Status, place: &Place) -> Status {
        let created_at = status.created_at.or_else(|| Some(self.time()));
        Status {
            phase: Phase::NicPut,
            attempt: status.attempt.saturating_add(1),
            location: Some(place.location.clone()),
            provider_id: Some(provider_id(place)),
            place: Some(place.clone()),
            call: Some(self.call()),
            created_at,
            failure: status.failure,
            ..Status::default()
        }
    }

    fn asking_for_vm(&self, status: Status) -> Status {
        let failures = match &status.call {
            Some(call) if status.phase == Phase::VmPut => call.failures,
            _ => 0,
        };
        Status {
            phase: Phase::VmPut,
            call: Some(Call { failures, ..self.call() }),
            vm_attempt_at: Some(self.time()),
            nic_reserved_until: Some(Time(later(self.now, RESERVATION))),
            ..status
        }
    }

    /// It is to go, however far it has come.
    fn going(&self, status: Status) -> Status {
        let phase = status.phase;
        let status = Status { delete_requested_at: Some(self.time()), ..status };
        if phase.is_cleaning() { status } else { self.cleaning_up(status) }
    }

    /// Everything of it is to be removed: the VM first, which holds the others.
    pub(crate) fn cleaning_up(&self, status: Status) -> Status {
        let phase = match (&status.place, &status.vm_attempt_at) {
            (None, _) => Phase::Gone,
            (Some(_), None) => Phase::CleanNic,
            (Some(_), Some(_)) => Phase::CleanVm,
        };
        Status { phase, call: Some(self.call()), ..status }
    }

    /// After a failed attempt of which nothing is left: a machine without a claim tries again; for
    /// a machine with a claim, the creator of the claim decides.
    fn again(&self, status: Status) -> Step {
        if self.machine.spec.claim_ref.is_some() {
            return Step::Rest;
        }
        let until = status.retry_at.as_ref().map(|until| until.0);
        let until = until.filter(|at| *at > self.now && self.is_near(*at, LONGEST_STORED));
        match (until, self.around.refused, self.around.place) {
            (Some(until), ..) => Step::Wait(until),
            (None, Some(_), _) => Step::Wait(later(self.now, REFUSED)),
            (None, None, Some(place)) => Step::Store(Box::new(self.planned(status, place))),
            (None, None, None) => Step::Rest,
        }
    }
}

/// It is refused before anything is asked of Azure.
fn refused_unasked(status: Status, why: &str) -> Status {
    let failure = Failure {
        class: Class::Request.into(),
        cause: FailureCause::InvalidJoinConfiguration.into(),
        arm_code: None,
        message: why.chars().take(1024).collect(),
    };
    Status { phase: Phase::Gone, failure: Some(failure), call: None, ..status }
}
