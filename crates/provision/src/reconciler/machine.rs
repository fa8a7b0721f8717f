//! Reconciles one machine: one snapshot, one decision, one effect, and the time of the next decision.

use bringup_flex::claim::ClaimState;
use bringup_flex::class::Class;
use bringup_flex::engine::{Bootstrap, Change, Next, StoreError};
use bringup_flex::machine::Snapshot;
use bringup_flex::time::later;
use bringup_objects::flex::machine::{AzureFlexMachine, FlexMachineStatus, Phase, Place};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::classes::is_ready;
use super::flex::Flex;
use super::kubernetes::{FORBIDDEN, RETRY, pause};

impl<B: Bootstrap> Flex<B> {
    /// Reconciles a machine: at most one effect. Returns when the machine is due again.
    pub(super) async fn reconcile_machine(&self, name: &str) -> Option<Timestamp> {
        let now = self.clock.now();
        let machine = match self.store.read(name).await {
            Ok(Some(machine)) => machine,
            Ok(None) => {
                self.memory().take_machine(name);
                return None;
            }
            Err(error) => return Some(failed(name, &error, now)),
        };
        self.note_class_failure_of(&machine);
        let (place, place_due) = self.place_of(&machine).await;
        let join_error = match &place {
            Some(place) => self.bootstrap.check(&machine, place).await.err(),
            None => None,
        };
        let (claim, is_listed) = self.index().claim_of(&machine);
        let mut snapshot = Snapshot {
            machine: &machine,
            place: place.as_ref(),
            join_error: join_error.as_deref(),
            claim: ClaimState::of(claim.as_ref(), is_listed),
            memory: self.memory().take_machine(name),
            now,
        };
        // The machine's own wait applies even if its claim cannot be read or deleted.
        let machine_due = snapshot.machine_wait();
        let passed = self.engine.pass(&mut snapshot).await;
        self.memory().keep_machine(name, snapshot.memory);
        let next = match passed {
            Ok(pass) => {
                self.log_and_count(&machine, pass.change.as_ref());
                match pass.next {
                    Next::Now => Some(now),
                    Next::At(at) => Some(at),
                    Next::Never => None,
                }
            }
            Err(error) => Some(failed(name, &error, now)),
        };
        [next, place_due, machine_due].into_iter().flatten().min()
    }

    fn log_and_count(&self, machine: &AzureFlexMachine, change: Option<&Change>) {
        let name = machine.name_any();
        match change {
            Some(Change::Status(status)) => {
                self.metrics.status_stored(machine, status);
                if let Some(error) = new_error(machine, status) {
                    warn!(machine = name, error, "Azure call failed");
                }
            }
            Some(Change::MachineDeleted) => {
                info!(machine = name, "deleting AzureFlexMachine: its NodeClaim no longer exists");
            }
            Some(Change::ClaimDeleted(failed)) => {
                let claim = machine.spec.claim_ref.as_ref().map(|claim| claim.name.as_str());
                let cause = failed.cause.as_str();
                info!(claim, machine = name, cause, "deleting NodeClaim: its machine failed");
                self.metrics.claim_deleted(cause);
            }
            None => {}
        }
    }

    /// The place of a machine that has none yet; and, if the place could not be resolved, when to try again.
    async fn place_of(&self, machine: &AzureFlexMachine) -> (Option<Place>, Option<Timestamp>) {
        let phase = machine.status.as_ref().map_or(Phase::Planned, |status| status.phase);
        let class_name = &machine.spec.node_class;
        let class = self.index().classes.get(class_name).filter(|class| is_ready(class)).cloned();
        let Some(class) = class.filter(|_| matches!(phase, Phase::Planned | Phase::Gone)) else {
            return (None, None);
        };
        let generation = class.metadata.generation;
        let Ok(class) = Class::of(&class.spec) else { return (None, None) };
        let name = machine.name_any();
        let image = match self.inquiries.resolved(&class).await {
            Ok(image) => image,
            Err(trouble) => {
                self.note_image_failure(class_name, generation, &trouble);
                return (None, Some(later(self.clock.now(), RETRY)));
            }
        };
        match self.cluster_uid().await {
            Ok(cluster) => {
                let uid = machine.metadata.uid.as_deref().unwrap_or_default();
                let place = class.place(&name, uid, &cluster, &self.key);
                (Some(Place { image, ..place }), None)
            }
            Err(error) => {
                warn!(machine = name, %error, "cannot read namespace kube-system, whose uid is part of the names in Azure");
                (None, Some(later(self.clock.now(), pause(&error))))
            }
        }
    }

    /// The uid of the namespace kube-system, which is unique to this cluster.
    pub(super) async fn cluster_uid(&self) -> Result<String, kube::Error> {
        let read = || async {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            Ok(namespaces.get("kube-system").await?.uid().unwrap_or_default())
        };
        self.cluster_uid.get_or_try_init(read).await.cloned()
    }
}

/// Logs that a request to Kubernetes failed. Returns when to decide again.
fn failed(name: &str, error: &StoreError, now: Timestamp) -> Timestamp {
    match error {
        // Another client changed the machine first: read it again at once.
        StoreError::Conflict => now,
        StoreError::Failed(error) => {
            warn!(machine = name, error, "AzureFlexMachine not reconciled");
            later(now, RETRY)
        }
        StoreError::Denied(error) => {
            warn!(machine = name, error, "AzureFlexMachine not reconciled");
            later(now, FORBIDDEN)
        }
    }
}

/// The error of the last call to Azure, if that error is new.
fn new_error<'a>(before: &AzureFlexMachine, after: &'a FlexMachineStatus) -> Option<&'a str> {
    let error = |status: &'a FlexMachineStatus| status.call.as_ref()?.last_error.as_deref();
    let known = before.status.as_ref().and_then(|status| status.call.as_ref());
    let known = known.and_then(|call| call.last_error.as_deref());
    error(after).filter(|new| known != Some(*new))
}

#[cfg(test)]
mod tests;
