//! Does what is next, one effect at a time.

mod cloud;
mod proof;
mod sweeper;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{AzureFlexMachine, FlexMachineStatus, Phase, Place};
use jiff::Timestamp;

pub use cloud::{ArmCloud, Bootstrap, NETWORK, nic_id, vm_id};
pub use sweeper::{Sweeper, Swept};

use crate::machine::{Around, Ask, Memory, Snapshot, Step, Told, conditions};

/// Why nothing was stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first: read again and decide again.
    #[error("somebody else wrote first")]
    Conflict,
    /// Forbidden: nothing has happened, and nothing will until the permission is granted.
    #[error("{0}")]
    Denied(String),
    /// The store did not do it; it may have happened all the same.
    #[error("{0}")]
    Failed(String),
}

/// Where machines are kept. Every write names the version that it is based on.
#[async_trait]
pub trait Store: Send + Sync {
    /// Reads a machine.
    async fn read(&self, name: &str) -> Result<Option<AzureFlexMachine>, StoreError>;
    /// Writes its status.
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
    /// Writes its finalizers.
    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
}

/// Azure, as far as a machine asks for it.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Asks, and does not wait for what takes long.
    async fn ask(&self, ask: Ask, machine: &AzureFlexMachine, place: &Place) -> Told;
}

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once.
    Now,
    /// At a moment.
    At(Timestamp),
    /// When something changes.
    Never,
}

/// Does what is next for machines.
///
/// One machine must not be in two hands at once; different ones may.
pub struct Engine<S, C> {
    store: S,
    cloud: C,
    memories: Mutex<HashMap<String, Memory>>,
}

impl<S: Store, C: Cloud> Engine<S, C> {
    /// An engine that remembers nothing yet.
    pub fn new(store: S, cloud: C) -> Self {
        Self { store, cloud, memories: Mutex::default() }
    }

    /// Does one thing for a machine.
    pub async fn pass(
        &self,
        name: &str,
        around: Around<'_>,
        now: Timestamp,
    ) -> Result<Next, StoreError> {
        let Some(machine) = self.store.read(name).await? else {
            self.forget(name);
            return Ok(Next::Never);
        };
        let memory = self.memory(name);
        let snapshot = Snapshot { machine: &machine, around, memory: &memory, now };
        match snapshot.next_step() {
            Step::Rest => Ok(Next::Never),
            Step::Wait(until) => Ok(Next::At(until)),
            Step::Hold => {
                let mut machine = machine.clone();
                machine.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
                self.store.write_finalizers(&machine).await?;
                Ok(Next::Now)
            }
            Step::Release => {
                let mut machine = machine.clone();
                machine.metadata.finalizers.get_or_insert_default().retain(|one| one != FINALIZER);
                self.store.write_finalizers(&machine).await?;
                self.forget(name);
                Ok(Next::Now)
            }
            Step::Store(status) => {
                let fresh = fresh(&status);
                self.save(&machine, *status, now).await?;
                self.remember(name, Memory { fresh, ..Memory::default() });
                Ok(Next::Now)
            }
            Step::Ask(ask) => {
                let place = machine.status.as_ref().and_then(|status| status.place.clone());
                // Without a place nothing was ever asked for.
                let Some(place) = place else { return Ok(Next::Never) };
                // What is asked now cannot be called fresh again, whatever comes of it.
                self.remember(name, Memory::default());
                let told = self.cloud.ask(ask, &machine, &place).await;
                let (status, memory) = snapshot.after(ask, told);
                if let Some(status) = status {
                    self.save(&machine, *status, now).await?;
                }
                self.remember(name, memory);
                Ok(Next::Now)
            }
        }
    }

    /// A list of Azure did not show the VM of this machine: it is looked for at its next pass.
    pub fn doubt(&self, name: &str) {
        self.remember(name, Memory { doubts: 1, ..Memory::default() });
    }

    async fn save(
        &self,
        machine: &AzureFlexMachine,
        status: FlexMachineStatus,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let status = FlexMachineStatus { conditions: conditions(&status, now), ..status };
        let machine = AzureFlexMachine { status: Some(status), ..machine.clone() };
        self.store.write_status(&machine).await
    }

    fn memory(&self, name: &str) -> Memory {
        let memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        memories.get(name).cloned().unwrap_or_default()
    }

    fn remember(&self, name: &str, memory: Memory) {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        memories.insert(name.to_owned(), memory);
    }

    fn forget(&self, name: &str) {
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        memories.remove(name);
    }
}

/// The call that is about to be made for the first time, if this is the intent of one.
fn fresh(status: &FlexMachineStatus) -> Option<Timestamp> {
    let call = status.call.as_ref().filter(|_| status.phase == Phase::VmPut)?;
    call.started_at.as_ref().map(|time| time.0)
}
