//! Nodes on single VMs in any region: the class that says what they are like, and the machine that
//! says what is to exist and how far it has come.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub mod class;
pub mod machine;

pub use class::{AzureFlexNodeClass, FlexNodeClassSpec, FlexNodeClassStatus};
pub use machine::{AzureFlexMachine, FlexMachineSpec, FlexMachineStatus};

/// The group of both.
pub const GROUP: &str = "flex.aks.azure.com";
/// Keeps a class until its claims are gone, and a machine until Azure holds nothing of it.
pub const FINALIZER: &str = "flex.aks.azure.com/termination";

/// The `ConfigMap` that keeps what outlives machines: back-off, receipt, last sweep.
pub const LEDGER: &str = "bringup-flex";
/// Where the API server looks for bootstrap tokens.
pub const TOKENS_NAMESPACE: &str = "kube-system";

/// The definitions of both, for installation and tests.
pub fn definitions() -> [CustomResourceDefinition; 2] {
    [AzureFlexNodeClass::crd(), AzureFlexMachine::crd()]
}
