//! What the engine acts upon: Kubernetes and Azure, as far as machines need them.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_objects::flex::machine::{AzureFlexMachine, ClaimReference, Place};

use crate::claim::Claim;
use crate::machine::{Answer, Request};

/// Why a request to Kubernetes failed. The text names the action and the object.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object has changed since it was read: read again and decide again.
    #[error("another client changed the object first")]
    Conflict,
    /// Forbidden: nothing has happened, and nothing will until the permission is granted.
    #[error("{0}")]
    Denied(String),
    /// The request failed, or was not answered: it may have taken effect.
    #[error("{0}")]
    Failed(String),
}

/// Stores machines. Every write names the version that it is based on.
#[async_trait]
pub trait Store: Send + Sync {
    /// Writes the status of a machine.
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
    /// Writes the finalizers of a machine.
    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
    /// Requests the deletion of a machine, by its uid. One that no longer exists is no error.
    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
}

/// A claim as it was just read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentClaim {
    /// What decides about its machine.
    pub claim: Claim,
    /// Its resource version: it is deleted in this version or not at all.
    pub version: String,
}

/// The claims of machines.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Reads a claim; none: it no longer exists, or another one has its name.
    async fn read(&self, claim: &ClaimReference) -> Result<Option<CurrentClaim>, StoreError>;
    /// Creates the Event on a claim about the failure of its machine, once for each machine. If that
    /// fails, it is logged, and nothing else.
    async fn announce_failure(
        &self,
        claim: &ClaimReference,
        machine: &AzureFlexMachine,
        message: &str,
    );
    /// Deletes a claim in this version. One that no longer exists is no error.
    async fn delete(&self, claim: &ClaimReference, version: &str) -> Result<(), StoreError>;
}

/// Azure, as far as a machine needs it.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Sends a request, and does not wait for what takes long.
    async fn send(&self, request: Request, machine: &AzureFlexMachine, place: &Place) -> Answer;
}

/// What the guest bootstraps with. It holds secrets, so it is created when it is needed and stored
/// nowhere.
#[async_trait]
pub trait Bootstrap: Send + Sync {
    /// `CustomData`, in base64; or why there is none.
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String>;

    /// Why a machine at this place could never join, if that is certain. It is called before anything
    /// is created in Azure, and issues no token.
    async fn check(&self, _machine: &AzureFlexMachine, _place: &Place) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait]
impl<B: Bootstrap> Bootstrap for Arc<B> {
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String> {
        (**self).custom_data(machine).await
    }

    async fn check(&self, machine: &AzureFlexMachine, place: &Place) -> Result<(), String> {
        (**self).check(machine, place).await
    }
}
