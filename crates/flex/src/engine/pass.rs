//! One pass: one decision from one snapshot, at most one effect, and the new memory.

use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{AzureFlexMachine, FlexMachineStatus, Phase};
use jiff::{SignedDuration, Timestamp};

use super::interfaces::{Claims, Cloud, Store, StoreError};
use crate::claim::ClaimState;
use crate::machine::{FailedClaim, Memory, Request, Snapshot, Step, conditions};
use crate::time::later;

/// The pause after a claim turned out to differ from the one in the snapshot.
pub const CLAIM_CHANGED: SignedDuration = SignedDuration::from_secs(2);

/// When to run the next pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once.
    Now,
    /// At a moment.
    At(Timestamp),
    /// When an object changes.
    Never,
}

/// What a pass changed in Kubernetes, for logs and metrics.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The status was stored.
    Status(Box<FlexMachineStatus>),
    /// The machine was deleted, because its claim no longer exists.
    MachineDeleted,
    /// The claim was deleted, because its machine failed.
    ClaimDeleted(FailedClaim),
}

/// The result of a pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// When to run the next pass.
    pub next: Next,
    /// What changed in Kubernetes, if logs or metrics need it.
    pub change: Option<Change>,
}

impl Pass {
    fn next(next: Next) -> Self {
        Self { next, change: None }
    }

    fn changed(change: Change) -> Self {
        Self { next: Next::Now, change: Some(change) }
    }
}

/// Executes decisions. The engine has no state: the caller stores each machine's [`Memory`].
///
/// One machine must not be in two passes at once; different machines may.
pub struct Engine<S, C, N> {
    store: S,
    cloud: C,
    claims: N,
}

impl<S: Store, C: Cloud, N: Claims> Engine<S, C, N> {
    /// An engine with these interfaces to Kubernetes and Azure.
    pub fn new(store: S, cloud: C, claims: N) -> Self {
        Self { store, cloud, claims }
    }

    /// Decides from a snapshot, and executes the decision.
    ///
    /// Afterwards, also after an error, `snapshot.memory` is the new memory of the machine. A caller that is
    /// cancelled during a pass must drop the machine's memory: then a VM that may have been requested is read
    /// first.
    pub async fn pass(&self, snapshot: &mut Snapshot<'_>) -> Result<Pass, StoreError> {
        match snapshot.next_step() {
            Step::Rest => Ok(Pass::next(Next::Never)),
            Step::Wait(until) => Ok(Pass::next(Next::At(until))),
            Step::AddFinalizer => {
                let mut machine = snapshot.machine.clone();
                machine.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
                self.store.write_finalizers(&machine).await?;
                Ok(Pass::next(Next::Now))
            }
            Step::RemoveFinalizer => {
                let mut machine = snapshot.machine.clone();
                machine.metadata.finalizers.get_or_insert_default().retain(|one| one != FINALIZER);
                self.store.write_finalizers(&machine).await?;
                snapshot.memory = Memory::default();
                Ok(Pass::next(Next::Now))
            }
            Step::Store(status) => {
                let unsent = unsent_vm_request(&status);
                let change = self.write_status(snapshot.machine, *status, snapshot.now).await?;
                snapshot.memory = Memory { unsent, ..snapshot.memory.of_claim() };
                Ok(Pass::changed(change))
            }
            Step::Send(request) => self.send(request, snapshot).await,
            Step::DeleteMachine => self.delete_machine(snapshot).await,
            Step::AnnounceFailure(_) | Step::DeleteClaim(_) => self.act_on_claim(snapshot).await,
        }
    }

    async fn send(
        &self,
        request: Request,
        snapshot: &mut Snapshot<'_>,
    ) -> Result<Pass, StoreError> {
        let place = snapshot.machine.status.as_ref().and_then(|status| status.place.as_ref());
        let Some(place) = place else { return Ok(Pass::next(Next::Never)) };
        let before = *snapshot;
        // Whatever the result of this request, it no longer counts as unsent.
        snapshot.memory = before.memory.of_claim();
        let answer = self.cloud.send(request, before.machine, place).await;
        let (status, memory) = before.after(request, answer);
        let change = match status {
            Some(status) => Some(self.write_status(before.machine, *status, before.now).await?),
            None => None,
        };
        snapshot.memory = memory;
        Ok(Pass { next: Next::Now, change })
    }

    /// Deletes a machine whose claim no longer exists. The claim is read first, because the watch may not
    /// have delivered a new claim yet.
    async fn delete_machine(&self, snapshot: &Snapshot<'_>) -> Result<Pass, StoreError> {
        let Some(reference) = &snapshot.machine.spec.claim_ref else {
            return Ok(Pass::next(Next::Never));
        };
        if self.claims.read(reference).await?.is_some() {
            return Ok(Pass::next(Next::At(later(snapshot.now, CLAIM_CHANGED))));
        }
        self.store.delete(snapshot.machine).await?;
        Ok(Pass::changed(Change::MachineDeleted))
    }

    /// Announces the failure of a machine on its claim, or deletes the claim.
    ///
    /// The watched state of the claim may be old, and its Node may have joined since. So the claim is read
    /// again, the same decision is made from that read, and the claim is deleted only in the version that was
    /// read.
    async fn act_on_claim(&self, snapshot: &mut Snapshot<'_>) -> Result<Pass, StoreError> {
        let machine = snapshot.machine;
        let Some(reference) = &machine.spec.claim_ref else {
            return Ok(Pass::next(Next::Never));
        };
        // The claim was deleted; the watch will deliver the deletion.
        let Some(current) = self.claims.read(reference).await? else {
            return Ok(Pass::next(Next::Never));
        };
        let again = Snapshot { claim: ClaimState::Exists(&current.claim), ..*snapshot };
        match again.next_step() {
            Step::AnnounceFailure(message) => {
                self.claims.announce_failure(reference, machine, &message).await;
                snapshot.memory.failure_announced = true;
                Ok(Pass::next(Next::Now))
            }
            Step::DeleteClaim(failed) => {
                self.claims.announce_failure(reference, machine, &failed.message).await;
                snapshot.memory.failure_announced = true;
                match self.claims.delete(reference, &current.version).await {
                    Ok(()) => {
                        snapshot.memory.claim_deleted = true;
                        Ok(Pass::changed(Change::ClaimDeleted(failed)))
                    }
                    Err(StoreError::Conflict) => {
                        Ok(Pass::next(Next::At(later(snapshot.now, CLAIM_CHANGED))))
                    }
                    Err(error) => Err(error),
                }
            }
            // The claim has changed; the watch will deliver the change.
            Step::Wait(until) => Ok(Pass::next(Next::At(until))),
            Step::Rest => Ok(Pass::next(Next::Never)),
            Step::AddFinalizer
            | Step::Store(_)
            | Step::Send(_)
            | Step::RemoveFinalizer
            | Step::DeleteMachine => Ok(Pass::next(Next::At(later(snapshot.now, CLAIM_CHANGED)))),
        }
    }

    async fn write_status(
        &self,
        machine: &AzureFlexMachine,
        status: FlexMachineStatus,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let status = FlexMachineStatus { conditions: conditions(&status, now), ..status };
        let machine = AzureFlexMachine { status: Some(status.clone()), ..machine.clone() };
        self.store.write_status(&machine).await?;
        Ok(Change::Status(Box::new(status)))
    }
}

/// The stored time of a VM request that is about to be sent for the first time, if this status is the intent
/// of one.
fn unsent_vm_request(status: &FlexMachineStatus) -> Option<Timestamp> {
    let call = status.call.as_ref().filter(|_| status.phase == Phase::VmPut)?;
    call.started_at.as_ref().map(|time| time.0)
}
