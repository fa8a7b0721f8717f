//! What the nodes of a pool are like.

#![allow(unreachable_pub, reason = "the derived schema repeats the types out of sight")]

use std::collections::BTreeMap;

use bringup_contract::Open;
use bringup_contract::flex::CapacityType;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What the nodes of a pool are like. Fields marked in the documentation make nodes drift when
/// they change.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flex.aks.azure.com",
    version = "v1alpha1",
    kind = "AzureFlexNodeClass",
    plural = "azureflexnodeclasses",
    status = "FlexNodeClassStatus",
    shortname = "afnc",
    shortname = "afncs",
    category = "karpenter",
    category = "nap",
    derive = "PartialEq",
    derive = "Default",
    cel,
    doc = "What nodes on single Azure VMs are like: where they run, from which image, on which disk.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Location","type":"string","jsonPath":".spec.location","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(has(self.imageReference) && has(self.imageID))").message("imageReference and imageID exclude each other").field_path(".imageID"),
    validation = Rule::new("!has(self.allocateNodePublicIP) || !self.allocateNodePublicIP").message("allocateNodePublicIP is not supported: nodes get no public address").field_path(".allocateNodePublicIP"),
)]
pub struct FlexNodeClassSpec {
    /// The subscription, by its UUID.
    #[serde(rename = "subscriptionID")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')").message("subscriptionID must be a UUID"))]
    pub subscription_id: String,
    /// The region, as `eastus2` or `East US 2`.
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9 ]+$') && self.size() <= 64").message("location must be a region such as eastus2"))]
    pub location: String,
    /// The resource group of VMs, NICs and disks. It must exist.
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[-A-Za-z0-9_.()]{0,89}[-A-Za-z0-9_()]$')").message("resourceGroup must have 1 to 90 letters, digits, -, _, ., ( or ), and not end with a dot"))]
    pub resource_group: String,
    /// The subnet, by its ARM id, in the same region.
    #[serde(rename = "subnetID")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+$')").message("subnetID must be the ARM id of a subnet: /subscriptions/../resourceGroups/../providers/Microsoft.Network/virtualNetworks/../subnets/.."))]
    pub subnet_id: String,
    /// An image of the marketplace. Without it and without `imageID`: Ubuntu HPC 22.04.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_reference: Option<ImageReference>,
    /// An image of a gallery, of a community gallery, or a managed image, by its id.
    #[serde(rename = "imageID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^(?i)/(subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Compute/(images|galleries)/|CommunityGalleries/|SharedGalleries/).+$')").message("imageID must be the id of an image or of a gallery image"))]
    pub image_id: Option<String>,
    /// How the VM starts. Sent as it is: without it Azure may choose Trusted Launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self == 'Standard'").message("securityType must be Standard"))]
    pub security_type: Option<String>,
    /// The size of the OS disk in GiB; 128 by default.
    #[serde(rename = "osDiskSizeGB", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 30 && self <= 4095").message("osDiskSizeGB must be from 30 to 4095"))]
    pub os_disk_size_gb: Option<i32>,
    /// Users that may log in over SSH. Without any, a key pair is made whose private half is thrown away.
    #[serde(rename = "sshPublicKeys", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 4096)))]
    #[x_kube(validation = Rule::new("self.all(key, key.matches('^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$'))").message("sshPublicKeys must be public keys of OpenSSH"))]
    pub ssh_public_keys: Vec<String>,
    /// Not supported.
    #[serde(rename = "allocateNodePublicIP", default, skip_serializing_if = "Option::is_none")]
    pub allocate_node_public_ip: Option<bool>,
    /// The most pods that a node runs; 110 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 10 && self <= 250").message("maxPodsPerNode must be from 10 to 250"))]
    pub max_pods_per_node: Option<i32>,
    /// Tags on everything that is made, beside our own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.size() <= 40").message("tags must not be more than 40"))]
    #[x_kube(validation = Rule::new("self.all(name, name.size() > 0 && name.size() <= 512 && !name.matches('[<>%&?/\\\\\\\\]') && !name.lowerAscii().startsWith('bringup-'))").message("tags must have names of 1 to 512 characters without <>%&\\\\?/ that do not begin with bringup-"))]
    #[x_kube(validation = Rule::new("self.all(name, self[name].size() <= 256)").message("tags must have values of at most 256 characters"))]
    pub tags: BTreeMap<String, String>,
    /// The version of kubelet; that of the cluster by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^v?1\\\\.[0-9]{1,2}\\\\.[0-9]{1,3}$')").message("kubernetesVersion must be a version such as 1.34.2"))]
    pub kubernetes_version: Option<String>,
    /// How long a VM may take to join once Azure has accepted it; 15m by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('3m') && duration(self) <= duration('60m')").message("bootTimeout must be from 3m to 60m"))]
    pub boot_timeout: Option<String>,
    /// How long Azure may take to accept a VM; 5m by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('3m') && duration(self) <= duration('60m')").message("launchTimeout must be from 3m to 60m"))]
    pub launch_timeout: Option<String>,
    /// Whether Azure keeps the serial console: `Managed` (default) or `Disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self in ['Managed', 'Disabled']").message("bootDiagnostics must be Managed or Disabled"))]
    pub boot_diagnostics: Option<String>,
    /// Keeps asking for scarce capacity, within limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunting: Option<Hunting>,
    /// `on-demand` (default) or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 32))]
    #[x_kube(validation = Rule::new("self in ['on-demand', 'spot']").message("capacityType must be on-demand or spot"))]
    pub capacity_type: Option<Open<CapacityType>>,
    /// The zones that may be used; none: the region decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9), inner(length(max = 8)))]
    #[x_kube(validation = Rule::new("self.all(zone, zone.matches('^[1-9]$'))").message("zones must be numbers such as \"1\""))]
    pub zones: Vec<String>,
}

/// A part of the name of an image; that it is empty is said by its own rule.
const IMAGE_PART: &str = "^[A-Za-z0-9._-]*$";

/// An image of the marketplace.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.publisher != '' && self.offer != '' && self.sku != '' && (!has(self.version) || self.version != '')").message("imageReference must name publisher, offer, sku and version"))]
pub struct ImageReference {
    /// Who publishes it.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub publisher: String,
    /// Its offer.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub offer: String,
    /// Its plan.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub sku: String,
    /// Its version; `latest` by default, which is resolved at each launch and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("pattern" = IMAGE_PART))]
    pub version: Option<String>,
}

/// How scarce capacity is asked for.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunting {
    /// Whether to.
    pub enabled: bool,
    /// At most so many attempts an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 1 && self <= 120").message("hunting.maxAttemptsPerHour must be from 1 to 120"))]
    pub max_attempts_per_hour: Option<i32>,
}

/// What is known of a class.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlexNodeClassStatus {
    /// `ValidationSucceeded`, `AzureAccess`, `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
