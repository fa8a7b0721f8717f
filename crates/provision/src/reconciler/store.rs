//! Machines in Kubernetes: the store of the engine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bringup_flex::engine::{Store, StoreError};
use bringup_objects::flex::{AzureFlexMachine, FINALIZER};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client, ResourceExt as _};
use tracing::warn;

use super::kubernetes::{exactly, store_error};
use crate::ledger::Ledger;

/// Machines in Kubernetes, with a cache of each machine as last written or read. Own writes need not be read
/// back, and the API server refuses a write that is based on an older version.
#[derive(Clone)]
pub(super) struct KubeStore {
    api: Api<AzureFlexMachine>,
    ledger: Ledger,
    cache: Arc<Mutex<HashMap<String, AzureFlexMachine>>>,
}

impl KubeStore {
    pub(super) fn new(client: Client, ledger: Ledger) -> Self {
        Self { api: Api::all(client), ledger, cache: Arc::default() }
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, AzureFlexMachine>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares a machine that the watch delivered with the cached one. If they differ, either may be the
    /// newer one, so the machine is read again.
    pub(super) fn watched(&self, machine: &AzureFlexMachine) {
        let mut cache = self.cache();
        let name = machine.name_any();
        let is_same = cache.get(&name).is_some_and(|cached| {
            cached.metadata.resource_version == machine.metadata.resource_version
        });
        if !is_same {
            cache.remove(&name);
        }
    }

    pub(super) fn forget(&self, name: &str) {
        self.cache().remove(name);
    }

    /// Reads a machine; none if it does not exist.
    pub(super) async fn read(&self, name: &str) -> Result<Option<AzureFlexMachine>, StoreError> {
        if let Some(cached) = self.cache().get(name).cloned() {
            return Ok(Some(cached));
        }
        let read = self.api.get_opt(name).await;
        let read =
            read.map_err(|error| store_error(&format!("read AzureFlexMachine {name}"), &error))?;
        if let Some(machine) = &read {
            self.cache().insert(name.to_owned(), machine.clone());
        }
        Ok(read)
    }

    /// Writes the finalizers into the object as it is stored. The object's spec is immutable, and may contain
    /// fields that bringup would serialise differently, such as an empty `labels: {}`.
    async fn replace_finalizers(
        &self,
        name: &str,
        machine: &AzureFlexMachine,
    ) -> Result<AzureFlexMachine, kube::Error> {
        let resource = ApiResource::erase::<AzureFlexMachine>(&());
        let objects: Api<DynamicObject> = Api::all_with(self.api.clone().into_client(), &resource);
        let mut object = objects.get(name).await?;
        object.metadata.finalizers.clone_from(&machine.metadata.finalizers);
        // The API server refuses the write if the object has changed meanwhile.
        object.metadata.resource_version.clone_from(&machine.metadata.resource_version);
        let written = objects.replace(name, &PostParams::default(), &object).await?;
        let written = serde_json::to_value(written).and_then(serde_json::from_value);
        written.map_err(kube::Error::SerdeError)
    }

    fn written(
        &self,
        name: &str,
        what: &str,
        written: Result<AzureFlexMachine, kube::Error>,
    ) -> Result<(), StoreError> {
        match written {
            Ok(machine) => {
                self.cache().insert(name.to_owned(), machine);
                Ok(())
            }
            Err(error) => {
                self.forget(name);
                Err(store_error(&format!("update {what} of AzureFlexMachine {name}"), &error))
            }
        }
    }
}

#[async_trait]
impl Store for KubeStore {
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let name = machine.name_any();
        let written = self.api.replace_status(&name, &PostParams::default(), machine).await;
        self.written(&name, "status", written)
    }

    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let name = machine.name_any();
        let is_released = !machine.finalizers().iter().any(|held| held == FINALIZER);
        // Counted before the machine's deletion. A failed write of the ledger does not prevent the deletion.
        if is_released
            && let Err(error) = self.ledger.update(|content| content.tally.count(machine)).await
        {
            warn!(machine = name, %error, "deleted machine not counted in the ledger");
        }
        let written = self.replace_finalizers(&name, machine).await;
        self.written(&name, "finalizers", written)
    }

    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let name = machine.name_any();
        self.forget(&name);
        match self.api.delete(&name, &exactly(machine.uid(), None)).await {
            Ok(_) => Ok(()),
            // The machine was deleted already, or another machine has its name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(store_error(&format!("delete AzureFlexMachine {name}"), &error)),
        }
    }
}
