//! What the nodes of a pool are like.

#![allow(unreachable_pub, reason = "the derived schema repeats the types out of sight")]

use std::collections::BTreeMap;

use bringup_contract::Open;
use bringup_contract::flex::CapacityType;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The desired configuration of the VMs and their nodes. docs/flex.md lists the fields whose change
/// makes Karpenter replace nodes (drift).
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
    doc = "AzureFlexNodeClass describes nodes that run on single Azure VMs: their region, network, image and disk. A NodePool of Karpenter refers to it in spec.template.spec.nodeClassRef.",
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
    /// The UUID of the subscription in which the VMs are created.
    #[serde(rename = "subscriptionID")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')").message("subscriptionID must be a UUID"))]
    pub subscription_id: String,
    /// The Azure region of the VMs, such as `eastus2` or `East US 2`.
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9 ]+$') && self.size() <= 64").message("location must be a region such as eastus2"))]
    pub location: String,
    /// The resource group in which VMs, NICs and disks are created. It must exist.
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[-A-Za-z0-9_.()]{0,89}[-A-Za-z0-9_()]$')").message("resourceGroup must have 1 to 90 letters, digits, -, _, ., ( or ), and not end with a dot"))]
    pub resource_group: String,
    /// The ARM ID of the subnet of the VMs. The subnet must be in the same region.
    #[serde(rename = "subnetID")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+$')").message("subnetID must be the ARM id of a subnet: /subscriptions/../resourceGroups/../providers/Microsoft.Network/virtualNetworks/../subnets/.."))]
    pub subnet_id: String,
    /// The marketplace image of the VMs. Excludes `imageID`. If neither is set, the VMs run Ubuntu HPC
    /// 22.04.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_reference: Option<ImageReference>,
    /// The ID of a managed image, or of an image in a gallery, a shared gallery or a community gallery.
    /// Excludes `imageReference`.
    #[serde(rename = "imageID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^(?i)/(subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Compute/(images|galleries)/|CommunityGalleries/|SharedGalleries/).+$')").message("imageID must be the id of an image or of a gallery image"))]
    pub image_id: Option<String>,
    /// The security type of the VMs: `Standard`. If it is not set, Azure chooses, and may choose Trusted
    /// Launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self == 'Standard'").message("securityType must be Standard"))]
    pub security_type: Option<String>,
    /// The size of the OS disk in GiB. Default: 128.
    #[serde(rename = "osDiskSizeGB", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 30 && self <= 4095").message("osDiskSizeGB must be from 30 to 4095"))]
    pub os_disk_size_gb: Option<i32>,
    /// The SSH public keys that may log in to the nodes. If the list is empty, SSH login is impossible:
    /// bringup generates a key pair and discards the private key.
    #[serde(rename = "sshPublicKeys", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 4096)))]
    #[x_kube(validation = Rule::new("self.all(key, key.matches('^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$'))").message("sshPublicKeys must be public keys of OpenSSH"))]
    pub ssh_public_keys: Vec<String>,
    /// Not supported: must be false or not set, because nodes get no public IP address.
    #[serde(rename = "allocateNodePublicIP", default, skip_serializing_if = "Option::is_none")]
    pub allocate_node_public_ip: Option<bool>,
    /// The maximum number of pods on a node. Default: 110.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 10 && self <= 250").message("maxPodsPerNode must be from 10 to 250"))]
    pub max_pods_per_node: Option<i32>,
    /// Additional tags for all Azure resources of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.size() <= 40").message("tags must not be more than 40"))]
    #[x_kube(validation = Rule::new("self.all(name, name.size() > 0 && name.size() <= 512 && !name.matches('[<>%&?/\\\\\\\\]') && !name.lowerAscii().startsWith('bringup-'))").message("tags must have names of 1 to 512 characters without <>%&\\\\?/ that do not begin with bringup-"))]
    #[x_kube(validation = Rule::new("self.all(name, self[name].size() <= 256)").message("tags must have values of at most 256 characters"))]
    pub tags: BTreeMap<String, String>,
    /// The version of the kubelet, such as `1.34.2`. Default: the version of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^v?1\\\\.[0-9]{1,2}\\\\.[0-9]{1,3}$')").message("kubernetesVersion must be a version such as 1.34.2"))]
    pub kubernetes_version: Option<String>,
    /// The time within which a VM must join the cluster after Azure has accepted it. Default: 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('3m') && duration(self) <= duration('60m')").message("bootTimeout must be from 3m to 60m"))]
    pub boot_timeout: Option<String>,
    /// The time within which Azure must accept a VM. Default: 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('3m') && duration(self) <= duration('60m')").message("launchTimeout must be from 3m to 60m"))]
    pub launch_timeout: Option<String>,
    /// Whether Azure stores the serial console log of the VMs (boot diagnostics): `Managed` (default) or
    /// `Disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self in ['Managed', 'Disabled']").message("bootDiagnostics must be Managed or Disabled"))]
    pub boot_diagnostics: Option<String>,
    /// Repeated requests for scarce capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunting: Option<Hunting>,
    /// The capacity type of the VMs: `on-demand` (default) or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 32))]
    #[x_kube(validation = Rule::new("self in ['on-demand', 'spot']").message("capacityType must be on-demand or spot"))]
    pub capacity_type: Option<Open<CapacityType>>,
    /// The availability zones in which VMs may be created. If the list is empty, Azure chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9), inner(length(max = 8)))]
    #[x_kube(validation = Rule::new("self.all(zone, zone.matches('^[1-9]$'))").message("zones must be numbers such as \"1\""))]
    pub zones: Vec<String>,
}

/// A part of the name of an image; that it is empty is said by its own rule.
const IMAGE_PART: &str = "^[A-Za-z0-9._-]*$";

/// A marketplace image.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.publisher != '' && self.offer != '' && self.sku != '' && (!has(self.version) || self.version != '')").message("imageReference must name publisher, offer, sku and version"))]
pub struct ImageReference {
    /// The publisher of the image.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub publisher: String,
    /// The offer of the image.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub offer: String,
    /// The SKU of the image.
    #[schemars(length(max = 128), extend("pattern" = IMAGE_PART))]
    pub sku: String,
    /// The version of the image. Default: `latest`, which is resolved to a version at each launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("pattern" = IMAGE_PART))]
    pub version: Option<String>,
}

/// Repeated requests for scarce capacity.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunting {
    /// Whether bringup keeps requesting a VM after Azure has refused it for lack of capacity.
    pub enabled: bool,
    /// The maximum number of attempts per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 1 && self <= 120").message("hunting.maxAttemptsPerHour must be from 1 to 120"))]
    pub max_attempts_per_hour: Option<i32>,
}

/// The observed state of a class.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlexNodeClassStatus {
    /// The conditions of the class: `ValidationSucceeded`, `AzureAccess` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
