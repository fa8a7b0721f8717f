//! The engine's interfaces to Kubernetes and Azure.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_objects::flex::machine::{AzureFlexMachine, ClaimReference, Place};

use crate::claim::Claim;
use crate::machine::{Answer, Request};

/// Why a request to Kubernetes failed. The text contains the action and the object.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object has changed since it was read: read again and decide again.
    #[error("another client changed the object first")]
    Conflict,
    /// The request is forbidden: nothing has changed, and nothing will until the permission is granted.
    #[error("{0}")]
    Denied(String),
    /// The request failed, or was not answered: it may have taken effect.
    #[error("{0}")]
    Failed(String),
}

/// Stores machines. Every write names the version on which it is based.
#[async_trait]
pub trait Store: Send + Sync {
    /// Writes the status of a machine.
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
    /// Writes the finalizers of a machine.
    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
    /// Requests the deletion of a machine, by its uid. A machine that no longer exists is no error.
    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError>;
}

/// A claim that was just read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentClaim {
    /// The fields that decide about its machine.
    pub claim: Claim,
    /// The claim's resource version: a deletion requires this version.
    pub version: String,
}

/// Reads and deletes the claims of machines.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Reads a claim; none if it no longer exists, or if another claim has its name.
    async fn read(&self, claim: &ClaimReference) -> Result<Option<CurrentClaim>, StoreError>;
    /// Creates the Event on a claim about the failure of its machine, once for each machine. An error is only
    /// logged.
    async fn announce_failure(
        &self,
        claim: &ClaimReference,
        machine: &AzureFlexMachine,
        message: &str,
    );
    /// Deletes a claim in this version. A claim that no longer exists is no error.
    async fn delete(&self, claim: &ClaimReference, version: &str) -> Result<(), StoreError>;
}

/// Sends requests about machines to Azure.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Sends a request, and does not wait for its operation.
    async fn send(&self, request: Request, machine: &AzureFlexMachine, place: &Place) -> Answer;
}

/// Creates the data with which the guest bootstraps. The data contains secrets, so it is created when needed
/// and never stored.
#[async_trait]
pub trait Bootstrap: Send + Sync {
    /// `CustomData` in base64, or why it could not be created.
    async fn custom_data(&self, machine: &AzureFlexMachine) -> Result<String, String>;

    /// Why a machine at this place could never join, if that is certain. The engine calls this function
    /// before it creates anything in Azure. Issues no token.
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
