//! One VM that is to exist: the intent, written before anything is asked of Azure, and how far it
//! has come. It holds no token and no key.

#![allow(unreachable_pub, reason = "the derived schema repeats the types out of sight")]

use std::collections::BTreeMap;

use bringup_contract::Open;
use bringup_contract::flex::{CapacityType, FailureCause, FailureClass};
use bringup_contract::open::describe_words;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The name of an object in Kubernetes.
const NAME: &str = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";

/// The desired VM. It is immutable.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flex.aks.azure.com",
    version = "v1alpha1",
    kind = "AzureFlexMachine",
    plural = "azureflexmachines",
    status = "FlexMachineStatus",
    shortname = "afm",
    category = "bringup",
    derive = "PartialEq",
    derive = "Default",
    doc = "AzureFlexMachine is a single Azure VM that becomes a node. bringup creates its VM, NIC and disk, and deletes them together with the object.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Size","type":"string","jsonPath":".spec.vmSize"}"#,
    printcolumn = r#"{"name":"Location","type":"string","jsonPath":".status.location"}"#,
    printcolumn = r#"{"name":"Claim","type":"string","jsonPath":".spec.claimRef.name"}"#,
    printcolumn = r#"{"name":"Cause","type":"string","jsonPath":".status.failure.cause"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable: create another AzureFlexMachine"))]
pub struct FlexMachineSpec {
    /// The name of the AzureFlexNodeClass of the VM.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub node_class: String,
    /// The size of the VM, such as `Standard_D8s_v5`.
    #[schemars(length(min = 1, max = 64), extend("pattern" = "^[A-Za-z0-9_-]+$"))]
    pub vm_size: String,
    /// The availability zone of the VM, such as `1`. If it is not set, Azure chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1), extend("pattern" = "^[1-9]$"))]
    pub zone: Option<String>,
    /// The capacity type of the VM: `on-demand` or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 9, "pattern" = "^(on-demand|spot)$"))]
    pub capacity_type: Option<Open<CapacityType>>,
    /// The NodeClaim that the VM belongs to. If it is not set, the VM becomes a node without a NodeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimReference>,
    /// The NodePool of the NodeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub node_pool: Option<String>,
    /// Labels of the Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node, as `key=value:effect`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub taints: Vec<String>,
}

impl FlexMachineSpec {
    /// Whether Azure may evict the VM.
    pub fn is_spot(&self) -> bool {
        self.capacity_type == Some(CapacityType::Spot.into())
    }
}

/// The NodeClaim that a machine belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReference {
    /// The name of the NodeClaim.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub name: String,
    /// The UID of the NodeClaim. A later NodeClaim of the same name has another UID.
    #[schemars(length(min = 1, max = 64), extend("pattern" = "^[A-Za-z0-9-]+$"))]
    pub uid: String,
}

/// The phase of a machine.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Phase {
    /// No Azure resource has been requested.
    #[default]
    Planned,
    /// The NIC has been requested.
    NicPut,
    /// The NIC exists.
    NicReady,
    /// The VM has been requested.
    VmPut,
    /// Azure has accepted the VM.
    VmAccepted,
    /// The VM runs.
    Running,
    /// The VM is being deleted.
    CleanVm,
    /// The NIC is being deleted.
    CleanNic,
    /// The disk is being deleted.
    CleanDisk,
    /// All Azure resources are deleted.
    Gone,
}

impl Phase {
    /// Whether everything is being removed, or has been.
    pub fn is_cleaning(self) -> bool {
        self >= Self::CleanVm
    }
}

/// The observed state of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FlexMachineStatus {
    /// The phase of the machine.
    pub phase: Phase,
    /// The number of the attempt to create the VM, from 1.
    #[schemars(extend("format" = "int32"))]
    pub attempt: u32,
    /// The location and configuration of the VM, resolved from its class when the attempt was planned.
    /// A later change of the class does not affect it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The Azure region, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The provider ID of the VM. It is set before the VM is requested.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The vmId that Azure assigned to the VM. A later VM of the same name has another vmId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
    /// The current or last Azure call of this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// The time at which the VM was last requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_attempt_at: Option<Time>,
    /// The time until which Azure reserves the NIC for the requested VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_reserved_until: Option<Time>,
    /// The time at which the first attempt was planned. Retries do not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// The time at which Azure accepted the VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Time>,
    /// The time at which the creation of the VM was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// The time at which the deletion of the machine was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_requested_at: Option<Time>,
    /// The failure of this attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The earliest time of the next attempt, which begins after all Azure resources of this attempt are
    /// deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// The conditions of the machine. `Ready` is True if the VM runs. It is False with reason
    /// `ForeignResource` if a resource with one of the machine's names has another owner; bringup does
    /// not change such a resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The resolved location and configuration of a VM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The subscription of the VM.
    #[serde(rename = "subscriptionID")]
    pub subscription_id: String,
    /// The resource group of VM, NIC and disk.
    pub resource_group: String,
    /// The Azure region of the VM.
    pub location: String,
    /// The ARM ID of the subnet.
    #[serde(rename = "subnetID")]
    pub subnet_id: String,
    /// The UID of the machine, which is a tag of all its Azure resources and proves ownership. If it is
    /// absent (machines of earlier versions), cluster tag, machine tag and vmId prove ownership.
    #[serde(rename = "machineUID", default, skip_serializing_if = "Option::is_none")]
    pub machine_uid: Option<String>,
    /// The name of the VM.
    pub vm: String,
    /// The name of the NIC.
    pub nic: String,
    /// The name of the OS disk.
    pub disk: String,
    /// The image of the VM, with its version.
    pub image: Image,
    /// The size of the OS disk in GiB.
    #[serde(rename = "osDiskSizeGB")]
    pub os_disk_size_gb: i32,
    /// Whether Azure stores the serial console log (boot diagnostics).
    pub boot_diagnostics: bool,
    /// The SSH public keys that may log in.
    #[serde(rename = "sshPublicKeys")]
    pub ssh_public_keys: Vec<String>,
    /// Additional tags of the Azure resources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The time within which the VM must join the cluster, in seconds.
    pub boot_timeout_seconds: i64,
    /// The time within which Azure must accept the VM, in seconds.
    #[serde(default)]
    pub launch_timeout_seconds: i64,
    /// The maximum number of pods on the Node.
    #[serde(default)]
    pub max_pods: i32,
    /// The version of the kubelet. If it is not set, the version of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Whether bringup keeps requesting a VM after Azure has refused it for lack of capacity.
    #[serde(default)]
    pub hunting: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Image {
    /// A marketplace image.
    Marketplace {
        /// The publisher of the image.
        publisher: String,
        /// The offer of the image.
        offer: String,
        /// The SKU of the image.
        sku: String,
        /// The version of the image.
        version: String,
    },
    /// The ID of a managed image or a gallery image.
    Id(String),
}

impl Default for Image {
    fn default() -> Self {
        Self::Id(String::new())
    }
}

/// A call to Azure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Call {
    /// The time of the decision to make the call. It is stored before the call is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The URL of the asynchronous Azure operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_url: Option<String>,
    /// The last error, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The earliest time of the next request of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// The number of consecutive failures.
    #[schemars(extend("format" = "int32"))]
    pub failures: u32,
}

/// The failure of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The class of the failure, which decides what happens next.
    #[schemars(transform = describe_words::<FailureClass>)]
    pub class: Open<FailureClass>,
    /// The cause of the failure, in one word.
    #[schemars(transform = describe_words::<FailureCause>)]
    pub cause: Open<FailureCause>,
    /// The error code of Azure Resource Manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm_code: Option<String>,
    /// The error message of Azure, shortened.
    pub message: String,
}
