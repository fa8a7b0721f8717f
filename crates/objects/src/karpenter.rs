//! What is looked at of Karpenter's objects.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The label that names a claim's pool.
pub const POOL_LABEL: &str = "karpenter.sh/nodepool";
/// The label that says spot or on-demand.
pub const CAPACITY_LABEL: &str = "karpenter.sh/capacity-type";
/// The annotation with which the Azure provider names an AKS machine.
pub const MACHINE_ANNOTATION: &str = "karpenter.azure.com/aks-machine-resource-id";

/// What a claim asks for.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    status = "NodeClaimStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// The class that provisions it.
    #[serde(default)]
    pub node_class_ref: NodeClassReference,
}

/// Which class provisions a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeClassReference {
    /// Its API group.
    #[serde(default)]
    pub group: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// How far a claim has come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The VM.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The image that the VM boots from.
    #[serde(rename = "imageID", default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// The conditions of all writers.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// What a pool asks for; nothing of it matters here.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    schema = "disabled"
)]
pub struct NodePoolSpec {}

impl NodeClaim {
    /// Lets go of what is not looked at.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let meta = &mut self.metadata;
        meta.managed_fields = None;
        meta.finalizers = None;
        if let Some(annotations) = &mut meta.annotations {
            annotations.retain(|name, _| name == MACHINE_ANNOTATION);
        }
        if let Some(labels) = &mut meta.labels {
            let kept = [POOL_LABEL, CAPACITY_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, REGION_LABEL];
            labels.retain(|name, _| kept.contains(&name.as_str()) || name == "kubernetes.io/os");
        }
        self
    }
}

/// The label of the VM's size.
pub const INSTANCE_TYPE_LABEL: &str = "node.kubernetes.io/instance-type";
/// The label of its zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// The label of its region.
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
