//! The effect of Azure's answer on a machine: what to store, and what to remember.

use bringup_contract::flex::FailureCause;
use bringup_objects::flex::machine::{Call, Failure, FlexMachineStatus as Status, Phase};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::snapshot::{Answer, Memory, PAUSE, Request, Snapshot, Vm};
use crate::backoff::hunting_pause;
use crate::time::later;
use crate::trouble::{Class, Trouble};

/// The pause after a refusal that does not last.
const REFUSED: SignedDuration = SignedDuration::from_secs(30);
/// The longest pause after errors in a row.
const LONGEST: SignedDuration = SignedDuration::from_mins(1);
/// After this many reads in a row that did not find it, an accepted VM counts as lost.
const INVISIBLE: u32 = 12;
/// After this many reads in a row that did not find it, a resource counts as deleted.
const CERTAIN: u32 = 3;
/// The pause before a machine without a claim tries again, if Azure sends none.
const AGAIN: SignedDuration = SignedDuration::from_mins(2);
/// The pause before it tries again if a foreign resource has one of its names.
const FOREIGN: SignedDuration = SignedDuration::from_mins(10);

impl Snapshot<'_> {
    /// The status and the memory after an answer. No status is returned if the answer changes nothing.
    pub fn after(&self, request: Request, answer: Answer) -> (Option<Box<Status>>, Memory) {
        let status = self.status();
        let wait = |pause: Option<SignedDuration>| {
            let until = later(self.now, pause.unwrap_or(PAUSE));
            Memory { not_before: Some(until), ..self.memory.of_claim() }
        };
        match answer {
            Answer::Running { wait: pause } => (answered(status), wait(pause)),
            Answer::Accepted { operation, wait: pause, vm_id } => {
                let status = match request {
                    Request::PutVm => Status { vm_id: status.vm_id.clone().or(vm_id), ..status },
                    _ => status,
                };
                let Some(operation) = operation else { return self.done(status) };
                let phase =
                    if request == Request::PutVm { Phase::VmAccepted } else { status.phase };
                let status = self.accepted(Status { phase, ..status }, operation);
                (Some(Box::new(status)), wait(pause))
            }
            Answer::Absent if request == Request::ReadVm => self.invisible(status),
            Answer::Done | Answer::Absent => self.done(status),
            Answer::Unseen => self.unseen_resource(status),
            Answer::Foreign(what) => self.foreign(status, what),
            Answer::Vm { state, id } => self.seen(status, state, id),
            // A read, or the same request again, will show which operation replaced this one.
            Answer::Lost => self.store(self.without_operation(status)),
            Answer::Failed(trouble) => self.store(self.failed(status, &trouble)),
            Answer::Trouble(trouble) if matches!(request, Request::Poll | Request::ReadVm) => {
                let missing_vm = self.memory.missing_vm;
                let status = self.unread(request, status, &trouble);
                (Some(Box::new(status)), Memory { missing_vm, ..self.memory.of_claim() })
            }
            Answer::Trouble(trouble) => self.store(self.refused(request, status, &trouble)),
        }
    }

    /// A status to store; the memory of the call is dropped.
    fn store(&self, status: Status) -> (Option<Box<Status>>, Memory) {
        (Some(Box::new(status)), self.memory.of_claim())
    }

    fn accepted(&self, status: Status, operation: String) -> Status {
        let call = status.call.clone().unwrap_or_default();
        let (call, accepted_at) = match status.phase {
            Phase::VmAccepted => {
                (faultless(call), status.accepted_at.clone().or(Some(Time(self.now))))
            }
            _ => (call, status.accepted_at.clone()),
        };
        let call = Call { operation_url: Some(operation), not_before: None, ..call };
        Status { call: Some(call), accepted_at, ..status }
    }

    fn without_operation(&self, status: Status) -> Status {
        let call = status.call.clone().unwrap_or_default();
        let not_before = Some(Time(later(self.now, PAUSE)));
        Status { call: Some(Call { operation_url: None, not_before, ..call }), ..status }
    }

    /// The step after a request that succeeded.
    fn done(&self, status: Status) -> (Option<Box<Status>>, Memory) {
        let next = match status.phase {
            Phase::NicPut => Status { phase: Phase::NicReady, call: None, ..status },
            // The operation has ended; a read of the VM shows with which result.
            Phase::VmPut | Phase::VmAccepted => {
                let accepted_at = status.accepted_at.clone().or(Some(Time(self.now)));
                let call = faultless(status.call.clone().unwrap_or_default());
                let call = Call { operation_url: None, ..call };
                Status { phase: Phase::VmAccepted, call: Some(call), accepted_at, ..status }
            }
            Phase::CleanVm => Status { phase: Phase::CleanNic, call: Some(self.call()), ..status },
            Phase::CleanNic => {
                Status { phase: Phase::CleanDisk, call: Some(self.call()), ..status }
            }
            Phase::CleanDisk => Status { phase: Phase::Gone, call: None, ..status },
            Phase::Planned | Phase::NicReady | Phase::Running | Phase::Gone => status,
        };
        self.store(next)
    }

    /// The step after a read that found the VM.
    fn seen(&self, status: Status, state: Vm, id: Option<String>) -> (Option<Box<Status>>, Memory) {
        if status.phase == Phase::Running && state != Vm::Deleting {
            return (answered(status), self.memory.of_claim()); // it exists
        }
        let wait = Memory { not_before: Some(later(self.now, PAUSE)), ..self.memory.of_claim() };
        let is_identified = status.vm_id.is_none() && id.is_some();
        let vm_id = status.vm_id.clone().or(id);
        let accepted_at = status.accepted_at.clone().or(Some(Time(self.now)));
        let status = Status { vm_id, accepted_at, ..status };
        let known = status.phase == Phase::VmAccepted;
        match state {
            Vm::Succeeded => {
                let completed_at = Some(Time(self.now));
                let (phase, call, failure) = (Phase::Running, None, None);
                self.store(Status { phase, call, failure, completed_at, ..status })
            }
            Vm::Failed(trouble) => self.store(self.failed(status, &trouble)),
            // Another client deletes the VM: if bringup did, the machine would be in a cleaning phase.
            Vm::Deleting => {
                let gone = Trouble::transient("another client is deleting the VM");
                self.store(self.failed(status, &gone))
            }
            // Store the vmId, which distinguishes the VM from one that is created later under the same name.
            Vm::Underway if known && is_identified => {
                let stored = answered(status.clone()).unwrap_or_else(|| Box::new(status));
                (Some(stored), wait)
            }
            Vm::Underway if known => (answered(status), wait),
            // The answer to the request was lost, but Azure is creating the VM.
            Vm::Underway => {
                let call = faultless(status.call.clone().unwrap_or_default());
                let status = Status { phase: Phase::VmAccepted, call: Some(call), ..status };
                (Some(Box::new(status)), wait)
            }
        }
    }

    /// The step after a read that did not find the requested VM.
    fn invisible(&self, status: Status) -> (Option<Box<Status>>, Memory) {
        if status.phase == Phase::VmPut {
            return (None, Memory { vm_is_absent: true, ..self.memory.of_claim() });
        }
        if status.phase == Phase::Running && self.memory.missing_vm < CERTAIN {
            let not_before = Some(later(self.now, PAUSE));
            let missing_vm = self.memory.missing_vm.saturating_add(1);
            return (None, Memory { not_before, missing_vm, ..self.memory.of_claim() });
        }
        if status.phase == Phase::Running {
            let gone = Trouble::transient("the VM no longer exists, and bringup did not delete it");
            return self.store(self.failed(status, &gone));
        }
        let call = status.call.clone().unwrap_or_default();
        // Earlier reads that were refused do not count: they did not show that the VM is absent.
        let before = if call.last_error.is_some() { 0 } else { call.failures };
        let failures = before.saturating_add(1);
        if failures >= INVISIBLE {
            let gone = Trouble::transient("Azure accepted the VM, and does not show it");
            return self.store(self.failed(status, &gone));
        }
        let not_before = Some(Time(later(self.now, PAUSE)));
        let call = Call { failures, not_before, last_error: None, ..call };
        self.store(Status { call: Some(call), ..status })
    }

    /// The step after one read that did not find the resource to delete, or the NIC that the VM needs. A read
    /// can return older data than the creation, so one read proves nothing.
    fn unseen_resource(&self, status: Status) -> (Option<Box<Status>>, Memory) {
        let failures = status.call.as_ref().map_or(0, |call| call.failures);
        let absent_reads = self.memory.absent_reads.saturating_add(1);
        if status.phase.is_cleaning() {
            if absent_reads >= CERTAIN {
                return self.done(status);
            }
            let not_before = Some(later(self.now, PAUSE));
            return (None, Memory { not_before, absent_reads, ..self.memory.of_claim() });
        }
        let gone = Trouble::transient("the NIC of the VM no longer exists");
        let next = if failures >= INVISIBLE {
            self.failed(status, &gone)
        } else {
            self.later(status, &gone, PAUSE)
        };
        self.store(next)
    }

    /// The step after finding that a resource under one of the machine's names belongs to another owner.
    /// bringup leaves that resource unchanged: a deletion continues with the next resource, and a creation
    /// ends.
    fn foreign(&self, status: Status, what: String) -> (Option<Box<Status>>, Memory) {
        let failure = Failure {
            class: Class::Conflict.into(),
            cause: FailureCause::ForeignResource.into(),
            arm_code: None,
            message: what,
        };
        let known =
            status.failure.clone().filter(|known| known.cause == FailureCause::ForeignResource);
        let status = Status { failure: known.or(Some(failure)), ..status };
        if status.phase.is_cleaning() {
            return self.done(status);
        }
        let retry_at = Some(Time(later(self.now, FOREIGN)));
        self.store(self.cleaning_up(Status { retry_at, ..status }))
    }

    /// The attempt has failed: all of its resources are deleted. A deletion that has begun continues.
    fn failed(&self, status: Status, trouble: &Trouble) -> Status {
        if status.phase.is_cleaning() {
            return self.later(status, trouble, REFUSED);
        }
        let is_hunter = status.place.as_ref().is_some_and(|place| place.hunting);
        let back_off = trouble.back_off.map(|(_, time)| match trouble.class {
            Class::Capacity if is_hunter => hunting_pause(status.attempt),
            _ => time,
        });
        let pause = back_off.or(trouble.retry_after).unwrap_or(AGAIN);
        let retry_at = Some(Time(later(self.now, pause)));
        // A failure that only follows from an earlier one does not replace it.
        let failure = status.failure.clone().filter(|_| trouble.class == Class::Wait);
        let failure = failure.or_else(|| Some(trouble.stored()));
        self.cleaning_up(Status { failure, retry_at, ..status })
    }

    /// Repeats the same call after a pause.
    fn later(&self, status: Status, trouble: &Trouble, pause: SignedDuration) -> Status {
        let call = status.call.clone().unwrap_or_default();
        let call = Call {
            operation_url: None,
            not_before: Some(Time(later(self.now, pause))),
            last_error: Some(trouble.message.chars().take(300).collect()),
            failures: call.failures.saturating_add(1),
            ..call
        };
        Status { call: Some(call), ..status }
    }

    /// A read was refused or not answered. That proves nothing about the resource, so the read is repeated
    /// later.
    fn unread(&self, request: Request, status: Status, trouble: &Trouble) -> Status {
        let operation = status.call.as_ref().and_then(|call| call.operation_url.clone());
        let (pause, cleaning) = (pause(&status, trouble), status.phase.is_cleaning());
        match trouble.class {
            Class::Throttle | Class::Transient | Class::Access => {
                let mut later = self.later(status, trouble, pause);
                if let Some(call) = later.call.as_mut().filter(|_| request == Request::Poll) {
                    call.operation_url = operation;
                }
                later
            }
            // The operation cannot be polled, so the resource itself is read.
            Class::Capacity | Class::Request | Class::Network | Class::Wait | Class::Conflict => {
                self.later(status, trouble, pause.max(if cleaning { REFUSED } else { PAUSE }))
            }
        }
    }

    /// A call was refused or not answered.
    fn refused(&self, request: Request, status: Status, trouble: &Trouble) -> Status {
        let pause = pause(&status, trouble);
        let cleaning = status.phase.is_cleaning();
        match trouble.class {
            // Azure may still have executed the call.
            Class::Throttle | Class::Transient => self.later(status, trouble, pause),
            // The VM uses the NIC, so the VM must be deleted first.
            Class::Wait
                if request == Request::DeleteNic && trouble.code.as_deref() == Some("NicInUse") =>
            {
                let phase = Phase::CleanVm;
                self.later(Status { phase, ..status }, trouble, REFUSED)
            }
            Class::Wait => self.later(status, trouble, REFUSED),
            // Another VM exists under the name; only a new attempt helps.
            Class::Conflict if trouble.code.as_deref() == Some("PropertyChangeNotAllowed") => {
                self.failed(status, trouble)
            }
            Class::Conflict => self.later(status, trouble, pause.max(PAUSE)),
            _ if cleaning => self.later(status, trouble, pause.max(REFUSED)),
            _ => self.failed(status, trouble),
        }
    }
}

/// The pause after an error: Azure's `Retry-After`, or twice the last pause.
fn pause(status: &Status, trouble: &Trouble) -> SignedDuration {
    let failures = status.call.as_ref().map_or(0, |call| call.failures);
    let doubled = SignedDuration::from_secs(1 << failures.min(6)).min(LONGEST);
    trouble.retry_after.unwrap_or(doubled)
}

/// The status after an answer that follows errors: the errors are cleared, except during a deletion, which
/// clears them at its end.
fn answered(status: Status) -> Option<Box<Status>> {
    let call = status.call.clone().filter(|call| call.last_error.is_some())?;
    match status.phase {
        phase if phase.is_cleaning() => None,
        Phase::Running => Some(Box::new(Status { call: None, ..status })),
        _ => Some(Box::new(Status { call: Some(faultless(call)), ..status })),
    }
}

/// The call without its earlier errors.
fn faultless(call: Call) -> Call {
    Call { last_error: None, failures: 0, not_before: None, ..call }
}
