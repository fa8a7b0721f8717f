//! Machines in Kubernetes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bringup_flex::engine::{Store, StoreError};
use bringup_objects::flex::{AzureFlexMachine, FINALIZER};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client, ResourceExt as _};
use tracing::warn;

use crate::ledger::Ledger;

/// Machines in Kubernetes, with what was last written or seen of each: an own write need not be read
/// back, and one that is based on something older is refused by its version.
#[derive(Clone)]
pub(super) struct KubeStore {
    api: Api<AzureFlexMachine>,
    ledger: Ledger,
    known: Arc<Mutex<HashMap<String, AzureFlexMachine>>>,
}

impl KubeStore {
    pub(super) fn new(client: Client, ledger: Ledger) -> Self {
        Self { api: Api::all(client), ledger, known: Arc::default() }
    }

    pub(super) fn api(&self) -> &Api<AzureFlexMachine> {
        &self.api
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, AzureFlexMachine>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch has seen this machine. If it differs from the known one, which may be older or
    /// newer, the machine is read again.
    pub(super) fn noticed(&self, machine: &AzureFlexMachine) {
        let mut known = self.known();
        let name = machine.name_any();
        let same = known.get(&name).is_some_and(|known| {
            known.metadata.resource_version == machine.metadata.resource_version
        });
        if !same {
            known.remove(&name);
        }
    }

    pub(super) fn forget(&self, name: &str) {
        self.known().remove(name);
    }

    /// A machine, if it can be read.
    pub(super) async fn machine(&self, name: &str) -> Option<AzureFlexMachine> {
        self.get(name).await.ok()?
    }

    async fn get(&self, name: &str) -> Result<Option<AzureFlexMachine>, StoreError> {
        if let Some(known) = self.known().get(name).cloned() {
            return Ok(Some(known));
        }
        let read = self.api.get_opt(name).await.map_err(|error| failed(&error))?;
        if let Some(machine) = &read {
            self.known().insert(name.to_owned(), machine.clone());
        }
        Ok(read)
    }

    /// Writes the finalizers into the object as it is stored. Its spec may never change, and says some things
    /// in words that we would not use: `labels: {}` is left out where we write it.
    async fn replace_finalizers(
        &self,
        name: &str,
        machine: &AzureFlexMachine,
    ) -> Result<AzureFlexMachine, kube::Error> {
        let resource = ApiResource::erase::<AzureFlexMachine>(&());
        let objects: Api<DynamicObject> = Api::all_with(self.api.clone().into_client(), &resource);
        let mut object = objects.get(name).await?;
        object.metadata.finalizers.clone_from(&machine.metadata.finalizers);
        // Refused if it has changed meanwhile.
        object.metadata.resource_version.clone_from(&machine.metadata.resource_version);
        let written = objects.replace(name, &PostParams::default(), &object).await?;
        let written = serde_json::to_value(written).and_then(serde_json::from_value);
        written.map_err(kube::Error::SerdeError)
    }

    fn written(
        &self,
        name: &str,
        written: Result<AzureFlexMachine, kube::Error>,
    ) -> Result<(), StoreError> {
        match written {
            Ok(machine) => {
                self.known().insert(name.to_owned(), machine);
                Ok(())
            }
            Err(error) => {
                self.forget(name);
                Err(failed(&error))
            }
        }
    }
}

fn failed(error: &kube::Error) -> StoreError {
    match error {
        kube::Error::Api(status) if matches!(status.code, 404 | 409) => StoreError::Conflict,
        kube::Error::Api(status) if status.code == 403 => StoreError::Denied(error.to_string()),
        error => StoreError::Failed(error.to_string()),
    }
}

#[async_trait]
impl Store for KubeStore {
    async fn read(&self, name: &str) -> Result<Option<AzureFlexMachine>, StoreError> {
        self.get(name).await
    }

    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let name = machine.name_any();
        let written = self.api.replace_status(&name, &PostParams::default(), machine).await;
        self.written(&name, written)
    }

    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let name = machine.name_any();
        let is_free = !machine.finalizers().iter().any(|held| held == FINALIZER);
        // Counted before it goes; that it cannot be counted does not keep it.
        if is_free && let Err(error) = self.ledger.update(|page| page.tally.count(machine)).await {
            warn!(machine = name, %error, "a machine that is gone could not be counted");
        }
        let written = self.replace_finalizers(&name, machine).await;
        self.written(&name, written)
    }
}
