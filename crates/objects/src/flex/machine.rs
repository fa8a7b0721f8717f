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

/// A VM that is to exist. On its own it gives a node; with a claim, the claim's.
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
    doc = "A single Azure VM that is to be a node: what is wanted, what was asked of Azure, and how far it has come.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Size","type":"string","jsonPath":".spec.vmSize"}"#,
    printcolumn = r#"{"name":"Location","type":"string","jsonPath":".status.location"}"#,
    printcolumn = r#"{"name":"Claim","type":"string","jsonPath":".spec.claimRef.name"}"#,
    printcolumn = r#"{"name":"Cause","type":"string","jsonPath":".status.failure.cause"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("a machine is never changed: make another"))]
pub struct FlexMachineSpec {
    /// The class that says what it is like.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub node_class: String,
    /// Its size, such as `Standard_D8s_v5`.
    #[schemars(length(min = 1, max = 64), extend("pattern" = "^[A-Za-z0-9_-]+$"))]
    pub vm_size: String,
    /// Its zone, as a number; none: the region decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1), extend("pattern" = "^[1-9]$"))]
    pub zone: Option<String>,
    /// How Azure sells the VM: `on-demand` or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 9, "pattern" = "^(on-demand|spot)$"))]
    pub capacity_type: Option<Open<CapacityType>>,
    /// The claim that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimReference>,
    /// The pool of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub node_pool: Option<String>,
    /// Labels of its Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub labels: BTreeMap<String, String>,
    /// Taints of its Node, as `key=value:effect`.
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

/// The claim that a machine is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253), extend("pattern" = NAME))]
    pub name: String,
    /// Its uid, which a claim of the same name made later does not share.
    #[schemars(length(min = 1, max = 64), extend("pattern" = "^[A-Za-z0-9-]+$"))]
    pub uid: String,
}

/// How far a machine has come.
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
    /// Nothing has been asked of Azure.
    #[default]
    Planned,
    /// The NIC is asked for.
    NicPut,
    /// The NIC is there.
    NicReady,
    /// The VM is asked for.
    VmPut,
    /// Azure has accepted the VM.
    VmAccepted,
    /// The VM is there.
    Running,
    /// The VM is being removed.
    CleanVm,
    /// The NIC is being removed.
    CleanNic,
    /// The disk is being removed.
    CleanDisk,
    /// Azure holds nothing of it.
    Gone,
}

impl Phase {
    /// Whether everything is being removed, or has been.
    pub fn is_cleaning(self) -> bool {
        self >= Self::CleanVm
    }
}

/// What is known of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FlexMachineStatus {
    /// How far it has come.
    pub phase: Phase,
    /// Which attempt, from 1.
    #[schemars(extend("format" = "int32"))]
    pub attempt: u32,
    /// Where it is, as resolved from its class when it was planned. A class that changes later
    /// changes nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The region, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The VM as Kubernetes names it; known before the VM is asked for.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The VM's own id, which one of the same name made later does not share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
    /// The call that is under way, or was the last in this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// When the VM was asked for, last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_attempt_at: Option<Time>,
    /// Until when Azure keeps the NIC for the VM that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_reserved_until: Option<Time>,
    /// When the first attempt was planned; kept over retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// When Azure accepted the VM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Time>,
    /// When the VM was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// When it was to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_requested_at: Option<Time>,
    /// What made this attempt fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When the next attempt may begin, once Azure holds nothing of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// `Ready`: the VM runs. False with reason `ForeignResource`: a resource under one of the
    /// machine's names belongs to something else, and is left alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Where a machine is and what it is made of, resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The subscription.
    #[serde(rename = "subscriptionID")]
    pub subscription_id: String,
    /// The resource group.
    pub resource_group: String,
    /// The region.
    pub location: String,
    /// The subnet.
    #[serde(rename = "subnetID")]
    pub subnet_id: String,
    /// The machine's uid, in the tags of everything that is made for it. Absent where the machine was
    /// planned before there was this tag: then cluster tag, machine tag and vmId prove ownership.
    #[serde(rename = "machineUID", default, skip_serializing_if = "Option::is_none")]
    pub machine_uid: Option<String>,
    /// The name of the VM.
    pub vm: String,
    /// The name of the NIC.
    pub nic: String,
    /// The name of the OS disk.
    pub disk: String,
    /// The image, with its version.
    pub image: Image,
    /// The size of the OS disk in GiB.
    #[serde(rename = "osDiskSizeGB")]
    pub os_disk_size_gb: i32,
    /// Whether Azure keeps the serial console.
    pub boot_diagnostics: bool,
    /// The public keys of those who may log in.
    #[serde(rename = "sshPublicKeys")]
    pub ssh_public_keys: Vec<String>,
    /// Tags beside our own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// How long it may take to join.
    pub boot_timeout_seconds: i64,
    /// How long Azure may take to accept it.
    #[serde(default)]
    pub launch_timeout_seconds: i64,
    /// The most pods of its Node.
    #[serde(default)]
    pub max_pods: i32,
    /// The version of its kubelet; none: the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// How scarce capacity is asked for.
    #[serde(default)]
    pub hunting: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Image {
    /// Of the marketplace.
    Marketplace {
        /// Who publishes it.
        publisher: String,
        /// Its offer.
        offer: String,
        /// Its plan.
        sku: String,
        /// Its version.
        version: String,
    },
    /// By its id.
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
    /// When it was decided on; stored before it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Where Azure tells how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_url: Option<String>,
    /// The last error, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Not to be made, or asked about, before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// How often it has failed in a row.
    #[schemars(extend("format" = "int32"))]
    pub failures: u32,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What kind of failure it is.
    #[schemars(transform = describe_words::<FailureClass>)]
    pub class: Open<FailureClass>,
    /// Why the attempt failed, in one word.
    #[schemars(transform = describe_words::<FailureCause>)]
    pub cause: Open<FailureCause>,
    /// ARM's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm_code: Option<String>,
    /// ARM's words, cut.
    pub message: String,
}
