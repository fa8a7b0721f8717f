//! The decision about a machine.

use bringup_contract::flex::FailureCause;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{Call, Failure, FlexMachineStatus as Status, Phase, Place};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::snapshot::{EVIDENCE, RESERVATION, Request, Snapshot, Step};
use crate::claim::ClaimState;
use crate::ids::provider_id;
use crate::time::later;
use crate::trouble::Class;

/// How long after the end of its reservation a NIC is deleted.
const AFTER_RESERVATION: SignedDuration = SignedDuration::from_secs(10);
/// The longest wait that bringup stores: the longest back-off is 23 hours. A stored time farther away is not
/// bringup's.
const LONGEST_STORED: SignedDuration = SignedDuration::from_hours(24);
/// The pause after which a machine that was refused before any call is checked again.
const REFUSED: SignedDuration = SignedDuration::from_mins(2);

impl Snapshot<'_> {
    /// The next step. If the machine itself has nothing to do, the step may be about its claim.
    pub fn next_step(&self) -> Step {
        let status = self.status();
        let until = match self.machine_step(status.clone()) {
            Step::Wait(until) => Some(until),
            Step::Rest => None,
            step => return step,
        };
        match (self.claim_step(&status), until) {
            (Step::Rest, Some(until)) => Step::Wait(until),
            (Step::Wait(of_claim), Some(until)) => Step::Wait(of_claim.min(until)),
            (step, _) => step,
        }
    }

    /// Until when the machine itself waits, regardless of its claim; none if the machine has something to do
    /// or rests.
    pub fn machine_wait(&self) -> Option<Timestamp> {
        let step = self.machine_step(self.status());
        if let Step::Wait(until) = step { Some(until) } else { None }
    }

    /// The next step for the machine and its resources in Azure.
    fn machine_step(&self, status: Status) -> Step {
        let held = self.machine.metadata.finalizers.iter().flatten().any(|held| held == FINALIZER);
        let deleting = self.machine.metadata.deletion_timestamp.is_some();
        match (held, deleting) {
            (false, true) => return Step::Rest,
            (false, false) => return Step::AddFinalizer,
            (true, true) if status.delete_requested_at.is_none() || !status.phase.is_cleaning() => {
                return Step::Store(Box::new(self.deleting(status)));
            }
            (true, _) => {}
        }
        let stored = status.call.as_ref().and_then(|call| call.not_before.as_ref());
        let stored = stored.map(|time| time.0).filter(|until| self.is_near(*until, LONGEST_STORED));
        let wait = stored.max(self.memory.not_before);
        if let Some(until) = wait.filter(|until| *until > self.now) {
            return Step::Wait(until);
        }
        // Without a place, no request was ever sent.
        let is_placed = status.place.is_some();
        match self.by_phase(status, deleting) {
            Step::Send(_) if !is_placed => Step::Rest,
            step => step,
        }
    }

    fn by_phase(&self, status: Status, deleting: bool) -> Step {
        let underway = status.call.as_ref().is_some_and(|call| call.operation_url.is_some());
        let is_refused = status.call.as_ref().is_some_and(|call| call.last_error.is_some());
        match status.phase {
            Phase::Planned => match (self.join_error, self.place) {
                (Some(why), _) => Step::Store(Box::new(refused_unsent(status, why))),
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
                Step::Send(Request::Poll)
            }
            Phase::NicPut => Step::Send(Request::PutNic),
            Phase::NicReady => Step::Store(Box::new(self.requesting_vm(status))),
            Phase::VmPut => {
                let started = status.call.as_ref().and_then(|call| call.started_at.as_ref());
                match (started, self.memory.unsent) {
                    (Some(started), Some(unsent)) if started.0 == unsent => {
                        Step::Send(Request::PutVm)
                    }
                    _ if self.memory.vm_is_absent => {
                        Step::Store(Box::new(self.requesting_vm(status)))
                    }
                    _ => Step::Send(Request::ReadVm),
                }
            }
            Phase::VmAccepted => Step::Send(Request::ReadVm),
            // A read that was refused is repeated.
            Phase::Running if self.memory.missing_vm > 0 || is_refused => {
                Step::Send(Request::ReadVm)
            }
            Phase::Running => Step::Rest,
            Phase::CleanVm => match self.vm_is_kept_until(&status) {
                Some(until) => Step::Wait(until),
                None => Step::Send(Request::DeleteVm),
            },
            Phase::CleanNic => match self.nic_is_reserved_until(&status) {
                Some(until) => Step::Wait(until),
                None => Step::Send(Request::DeleteNic),
            },
            Phase::CleanDisk => Step::Send(Request::DeleteDisk),
            Phase::Gone if deleting => Step::RemoveFinalizer,
            Phase::Gone => self.retry(status),
        }
    }

    /// Until when the failed VM stays so that its failure can be inspected; limited in time.
    fn vm_is_kept_until(&self, status: &Status) -> Option<Timestamp> {
        let call = status.call.as_ref().filter(|call| call.failures == 0)?;
        let decided = call.started_at.as_ref().filter(|_| self.is_evidence(status))?;
        let until = later(decided.0, EVIDENCE);
        Some(until).filter(|until| *until > self.now && self.is_near(*until, EVIDENCE))
    }

    /// Whether the VM is still needed to find out why it failed.
    fn is_evidence(&self, status: &Status) -> bool {
        status.accepted_at.is_some()
            && match self.claim {
                ClaimState::Exists(claim) => !claim.is_registered && claim.verdict.is_none(),
                ClaimState::NotListed => self.machine.spec.claim_ref.is_some(),
                ClaimState::Missing => false,
            }
    }

    /// Until when Azure would refuse to delete the NIC. Azure deletes the NIC of a VM that existed together
    /// with that VM.
    fn nic_is_reserved_until(&self, status: &Status) -> Option<Timestamp> {
        let reserved = status.nic_reserved_until.as_ref().filter(|_| status.completed_at.is_none());
        let until = reserved.map(|until| later(until.0, AFTER_RESERVATION))?;
        let longest = RESERVATION.saturating_add(AFTER_RESERVATION);
        Some(until).filter(|until| *until > self.now && self.is_near(*until, longest))
    }

    /// The start of an attempt: from now on, Azure may hold resources of the machine.
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

    fn requesting_vm(&self, status: Status) -> Status {
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

    /// The machine is being deleted, in whichever phase it is.
    fn deleting(&self, status: Status) -> Status {
        let phase = status.phase;
        let status = Status { delete_requested_at: Some(self.time()), ..status };
        if phase.is_cleaning() { status } else { self.cleaning_up(status) }
    }

    /// After a failed attempt whose resources are all deleted: a machine without a claim tries again; for a
    /// machine with a claim, the creator of the claim decides.
    fn retry(&self, status: Status) -> Step {
        if self.machine.spec.claim_ref.is_some() {
            return Step::Rest;
        }
        let until = status.retry_at.as_ref().map(|until| until.0);
        let until = until.filter(|at| *at > self.now && self.is_near(*at, LONGEST_STORED));
        match (until, self.join_error, self.place) {
            (Some(until), ..) => Step::Wait(until),
            (None, Some(_), _) => Step::Wait(later(self.now, REFUSED)),
            (None, None, Some(place)) => Step::Store(Box::new(self.planned(status, place))),
            (None, None, None) => Step::Rest,
        }
    }
}

/// The machine is refused before any request to Azure.
fn refused_unsent(status: Status, why: &str) -> Status {
    let failure = Failure {
        class: Class::Request.into(),
        cause: FailureCause::InvalidJoinConfiguration.into(),
        arm_code: None,
        message: why.chars().take(1024).collect(),
    };
    Status { phase: Phase::Gone, failure: Some(failure), call: None, ..status }
}
