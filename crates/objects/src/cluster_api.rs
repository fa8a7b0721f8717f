//! What is looked at of Cluster API's objects, and of its Azure provider's.
//!
//! They are read by what they say, not by one version: Machines are served in two, and the conditions
//! of the provider have a shape that is on its way out.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// Cluster API's own group.
pub const GROUP: &str = "cluster.x-k8s.io";
/// The group of its infrastructure providers.
pub const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
/// The label that names a machine's cluster.
pub const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// The label that names a machine's deployment.
pub const DEPLOYMENT_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// The label of machines of the control plane.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Our condition on the provider's objects.
pub const NODE_BOOTSTRAP_SUCCEEDED: &str = "NodeBootstrapSucceeded";
/// Whether another machine would help.
pub const REPLACEMENT_USEFUL: &str = "bringup.dev/ReplacementUseful";
/// The annotation of objects that controllers must not write to for a while.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The label that names the pool of an `AzureMachinePoolMachine`.
pub const POOL_LABEL: &str = "azuremachinepool.infrastructure.cluster.x-k8s.io/machine-pool";
/// How many conditions a Machine may have.
pub const MOST_CONDITIONS: usize = 32;

/// A condition in either shape.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnyCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Error, Warning or Info; in the old shape, with False.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// For which version of what was asked for; in the new shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl AnyCondition {
    /// When it became so.
    pub fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.as_ref().map(|time| time.0)
    }

    /// In the shape that we write.
    pub fn plain(&self) -> Condition {
        Condition {
            type_: self.kind.clone(),
            status: self.status.clone(),
            reason: self.reason.clone().unwrap_or_default(),
            message: self.message.clone().unwrap_or_default(),
            last_transition_time: self
                .last_transition_time
                .clone()
                .unwrap_or(Time(Timestamp::UNIX_EPOCH)),
            observed_generation: self.observed_generation,
        }
    }
}

/// The condition of a type.
pub fn any<'a>(conditions: &'a [AnyCondition], kind: &str) -> Option<&'a AnyCondition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Whether an object has the annotation [`PAUSED`].
pub fn is_paused(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().is_some_and(|all| all.contains_key(PAUSED))
}

/// A Cluster.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Cluster {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: ClusterSpec,
}

/// What a Cluster asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Controllers must not write to what belongs to it.
    pub paused: bool,
    /// Where its API server is.
    pub control_plane_endpoint: Endpoint,
    /// The provider's object.
    pub infrastructure_ref: Option<InfrastructureReference>,
}

/// A Machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: MachineSpec,
    /// How far it has come.
    pub status: MachineStatus,
}

/// What a Machine asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineSpec {
    /// Its cluster.
    pub cluster_name: String,
    /// The provider's object.
    pub infrastructure_ref: InfrastructureReference,
    /// What it is made from.
    pub bootstrap: Bootstrap,
    /// The VM.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
}

/// What a Machine is made from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootstrap {
    /// The Secret with its user data, once that is there. It is never read.
    pub data_secret_name: Option<String>,
}

/// Which object of the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct InfrastructureReference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// How far a Machine has come.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    /// Its Node, once that is there.
    pub node_ref: Option<NodeReference>,
    /// The conditions of all writers.
    pub conditions: Vec<AnyCondition>,
    /// The old way to say that the VM is there.
    pub infrastructure_ready: bool,
    /// The new way.
    pub initialization: Option<Initialization>,
}

/// Which Node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NodeReference {
    /// Its name.
    pub name: String,
}

/// What has been made of a Machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Initialization {
    /// The VM is there.
    pub infrastructure_provisioned: bool,
}

/// An `AzureMachine` or `AzureMachinePoolMachine`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AzureMachine {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: AzureMachineSpec,
    /// How far it has come.
    pub status: AzureMachineStatus,
}

/// What the provider's object asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureMachineSpec {
    /// The VM.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Its disk, which tells the system.
    pub os_disk: OsDisk,
    /// Its size.
    pub vm_size: Option<String>,
    /// Its zone.
    pub failure_domain: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OsDisk {
    /// Linux or Windows.
    pub os_type: Option<String>,
}

/// How far the provider's object has come.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AzureMachineStatus {
    /// The conditions of all writers.
    pub conditions: Vec<AnyCondition>,
}

/// An `AzureMachinePool`: a scale set, whose instances are `AzureMachinePoolMachine`s.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AzureMachinePool {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: AzureMachinePoolSpec,
    /// How far it has come.
    pub status: AzureMachineStatus,
}

/// What a pool asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureMachinePoolSpec {
    /// Its region.
    pub location: Option<String>,
    /// Uniform or Flexible.
    pub orchestration_mode: Option<String>,
    /// What its instances are made of.
    pub template: AzureMachinePoolTemplate,
}

/// What the instances of a pool are made of.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureMachinePoolTemplate {
    /// Their disk, which tells the system.
    pub os_disk: OsDisk,
    /// Their size.
    pub vm_size: Option<String>,
}

/// An `AzureCluster`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AzureCluster {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: AzureClusterSpec,
}

/// Where a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AzureClusterSpec {
    /// Its resource group.
    pub resource_group: String,
    /// Its subscription.
    #[serde(rename = "subscriptionID")]
    pub subscription_id: String,
    /// Its region.
    pub location: String,
    /// Where its API server is.
    pub control_plane_endpoint: Endpoint,
}

/// Where an API server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Its host: a name or an address.
    pub host: String,
}

/// They are served in several versions, so the caller names the version.
macro_rules! served_somewhere {
    ($($object:ty),+) => { $(
        impl Resource for $object {
            type DynamicType = ApiResource;
            type Scope = DynamicResourceScope;

            fn kind(resource: &ApiResource) -> Cow<'_, str> {
                resource.kind.as_str().into()
            }

            fn group(resource: &ApiResource) -> Cow<'_, str> {
                resource.group.as_str().into()
            }

            fn version(resource: &ApiResource) -> Cow<'_, str> {
                resource.version.as_str().into()
            }

            fn api_version(resource: &ApiResource) -> Cow<'_, str> {
                resource.api_version.as_str().into()
            }

            fn plural(resource: &ApiResource) -> Cow<'_, str> {
                resource.plural.as_str().into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    )+ };
}

served_somewhere!(Cluster, Machine, AzureMachine, AzureMachinePool, AzureCluster);

/// The name of the VM of an `AzureMachine`: its own, but for Windows, which takes 15 letters.
pub fn vm_name(name: &str, is_windows: bool) -> String {
    if !is_windows || name.len() <= 15 || !name.is_ascii() {
        return name.to_owned();
    }
    let (start, end) = (&name[..9], &name[name.len() - 5..]);
    format!("{}-{end}", start.strip_suffix('-').unwrap_or(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_09_names_of_windows_are_cut_to_fifteen_letters() {
        for (name, wanted) in [
            ("capz-win-md-7f9c4-abcde", "capz-win-abcde"),
            ("my-cluster-md-win-fghij", "my-cluste-fghij"),
            ("fifteen-letters", "fifteen-letters"),
            ("sixteen-lettersx", "sixteen-l-tersx"),
            (&format!("{}-12345", "a".repeat(34)), "aaaaaaaaa-12345"),
        ] {
            assert_eq!(vm_name(name, true), wanted, "{name}");
            assert!(vm_name(name, true).len() <= 15);
            assert_eq!(vm_name(name, false), name);
        }
    }
}
