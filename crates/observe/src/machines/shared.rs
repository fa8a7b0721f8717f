//! Objects shared by many Machines: Cluster, AzureCluster, AzureMachinePool. Only the fields that a decision
//! needs are stored.

use std::collections::HashMap;

use bringup_objects::cluster_api::{
    AzureCluster, AzureClusterSpec, AzureMachinePool, CLUSTER_LABEL, Cluster,
    InfrastructureReference, is_paused,
};
use jiff::Timestamp;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use tracing::info;

use super::Named;
use super::records::{InfraRecord, MachineRecord, failed_since};
use crate::shape::CLUSTER;

/// The kind that holds the subscription and resource group of a cluster.
pub(super) const AZURE_CLUSTER: &str = "AzureCluster";
/// The kind of a scale set.
pub(super) const POOL: &str = "AzureMachinePool";

/// The records of all shared objects.
#[derive(Debug, Default)]
pub struct SharedObjects {
    clusters: HashMap<Named, ClusterRecord>,
    azure_clusters: HashMap<Named, AzureClusterRecord>,
    pools: HashMap<Named, PoolRecord>,
}

/// A kind of object that many Machines share.
pub trait SharedObject: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope> {
    /// The kind's name in the Kubernetes API.
    const KIND: &'static str;
    /// The fields that are stored.
    type Record: PartialEq;

    /// The fields of one object that are stored.
    fn record(self) -> Self::Record;

    /// The stored records of this kind.
    fn of_kind(all: &mut SharedObjects) -> &mut HashMap<Named, Self::Record>;

    /// Whether a Machine with this infrastructure machine shares this object.
    fn affects(
        all: &SharedObjects,
        this: &Named,
        machine: &MachineRecord,
        infra: Option<&InfraRecord>,
    ) -> bool;

    /// Logs a change that an operator needs to know.
    fn log_change(_this: &Named, _before: Option<&Self::Record>, _now: &Self::Record) {}
}

/// The fields of a Cluster.
#[derive(Debug, PartialEq, Eq)]
pub struct ClusterRecord {
    pub(super) is_paused: bool,
    /// The host of its API server.
    pub(super) host: Option<String>,
    infrastructure: Option<InfrastructureReference>,
}

/// The fields of an AzureCluster.
#[derive(Debug, PartialEq, Eq)]
pub struct AzureClusterRecord {
    /// The name of the AzureCluster's Cluster, from a label; if absent, the Cluster has the same name.
    cluster: Option<String>,
    pub(super) spec: AzureClusterSpec,
}

/// The fields of an AzureMachinePool.
#[derive(Debug, PartialEq, Eq)]
pub struct PoolRecord {
    /// Whether instances of the scale set are VMs of their own (flexible orchestration).
    pub(super) is_flexible: bool,
    /// The instances' operating system, in lower case.
    pub(super) os: Option<String>,
    pub(super) size: Option<String>,
    pub(super) region: Option<String>,
    /// The time of the failure that the provider reports.
    pub(super) failed_since: Option<Timestamp>,
}

impl SharedObject for Cluster {
    const KIND: &'static str = CLUSTER;
    type Record = ClusterRecord;

    fn record(self) -> ClusterRecord {
        ClusterRecord {
            is_paused: self.spec.paused || is_paused(&self.metadata),
            host: Some(self.spec.control_plane_endpoint.host).filter(|host| !host.is_empty()),
            infrastructure: self.spec.infrastructure_ref,
        }
    }

    fn of_kind(all: &mut SharedObjects) -> &mut HashMap<Named, ClusterRecord> {
        &mut all.clusters
    }

    fn affects(
        _: &SharedObjects,
        this: &Named,
        machine: &MachineRecord,
        _: Option<&InfraRecord>,
    ) -> bool {
        machine.cluster == this.1
    }

    fn log_change(
        (namespace, cluster): &Named,
        before: Option<&ClusterRecord>,
        now: &ClusterRecord,
    ) {
        match (before.is_some_and(|before| before.is_paused), now.is_paused) {
            (false, true) => {
                info!(
                    namespace,
                    cluster, "Cluster paused: its Machines are observed and not written to"
                );
            }
            (true, false) => {
                info!(namespace, cluster, "Cluster no longer paused: writing to its Machines");
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl SharedObject for AzureCluster {
    const KIND: &'static str = AZURE_CLUSTER;
    type Record = AzureClusterRecord;

    fn record(self) -> AzureClusterRecord {
        let cluster = self.metadata.labels.and_then(|mut all| all.remove(CLUSTER_LABEL));
        AzureClusterRecord { cluster, spec: self.spec }
    }

    fn of_kind(all: &mut SharedObjects) -> &mut HashMap<Named, AzureClusterRecord> {
        &mut all.azure_clusters
    }

    fn affects(
        all: &SharedObjects,
        this: &Named,
        machine: &MachineRecord,
        _: Option<&InfraRecord>,
    ) -> bool {
        all.site_named(&this.0, &machine.cluster).is_some_and(|(named, _)| named == this)
    }
}

impl SharedObject for AzureMachinePool {
    const KIND: &'static str = POOL;
    type Record = PoolRecord;

    fn record(self) -> PoolRecord {
        let template = self.spec.template;
        PoolRecord {
            is_flexible: self.spec.orchestration_mode.as_deref() == Some("Flexible"),
            os: template.os_disk.os_type.map(|os| os.to_lowercase()),
            size: template.vm_size,
            region: self.spec.location,
            failed_since: failed_since(&self.status.conditions),
        }
    }

    fn of_kind(all: &mut SharedObjects) -> &mut HashMap<Named, PoolRecord> {
        &mut all.pools
    }

    fn affects(
        _: &SharedObjects,
        this: &Named,
        _: &MachineRecord,
        infra: Option<&InfraRecord>,
    ) -> bool {
        infra.is_some_and(|infra| infra.pool.as_ref() == Some(&this.1))
    }
}

impl SharedObjects {
    pub(super) fn cluster(&self, namespace: &str, name: &str) -> Option<&ClusterRecord> {
        self.clusters.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The subscription, resource group and location of a Cluster.
    pub(super) fn site(&self, namespace: &str, cluster: &str) -> Option<&AzureClusterSpec> {
        self.site_named(namespace, cluster).map(|(_, site)| &site.spec)
    }

    /// The AzureCluster to which the Cluster refers, or else the one with the Cluster's name.
    fn site_named(&self, namespace: &str, cluster: &str) -> Option<(&Named, &AzureClusterRecord)> {
        let known = self.cluster(namespace, cluster);
        if let Some(reference) = known.and_then(|known| known.infrastructure.as_ref()) {
            let is_ours = reference.kind == AZURE_CLUSTER;
            let name = (namespace.to_owned(), reference.name.clone());
            return is_ours.then(|| self.azure_clusters.get_key_value(&name)).flatten();
        }
        self.azure_clusters.iter().find(|((within, name), site)| {
            within == namespace && site.cluster.as_ref().unwrap_or(name) == cluster
        })
    }

    /// The pool to which an infrastructure machine belongs.
    pub(super) fn pool(&self, namespace: &str, infra: Option<&InfraRecord>) -> Option<&PoolRecord> {
        let name = infra?.pool.clone()?;
        self.pools.get(&(namespace.to_owned(), name))
    }
}
