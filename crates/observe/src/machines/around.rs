//! What stands around Machines, each for many of them: their Cluster, where that is in Azure, and the
//! pool of which they are instances. Only what is looked at is kept.

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
use super::facts::{Behind, Facts, failed_since};
use crate::shape::CLUSTER;

/// Where a cluster is in Azure.
pub(super) const AZURE_CLUSTER: &str = "AzureCluster";
/// A scale set, as the provider has it.
pub(super) const POOL: &str = "AzureMachinePool";

/// What is kept of everything around Machines.
#[derive(Debug, Default)]
pub struct Surroundings {
    clusters: HashMap<Named, AnyCluster>,
    azure_clusters: HashMap<Named, Site>,
    pools: HashMap<Named, Pool>,
}

/// A kind of object that stands around Machines.
pub trait Around: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope> {
    /// As Kubernetes calls it.
    const KIND: &'static str;
    /// What is kept of it.
    type Kept: PartialEq;

    /// What is kept of one.
    fn kept(self) -> Self::Kept;

    /// Where all of them are kept.
    fn shelf(all: &mut Surroundings) -> &mut HashMap<Named, Self::Kept>;

    /// Whether this one is around a Machine, with what is behind that.
    fn concerns(all: &Surroundings, this: &Named, machine: &Facts, behind: Option<&Behind>)
    -> bool;

    /// Says what an operator would want to know of a change.
    fn tell(_this: &Named, _before: Option<&Self::Kept>, _now: &Self::Kept) {}
}

/// A Cluster.
#[derive(Debug, PartialEq, Eq)]
pub struct AnyCluster {
    pub(super) is_paused: bool,
    /// The host of its API server.
    pub(super) host: Option<String>,
    infrastructure: Option<InfrastructureReference>,
}

/// Where a cluster is in Azure.
#[derive(Debug, PartialEq, Eq)]
pub struct Site {
    /// The name of its Cluster, from its label; if absent, the Cluster has the same name.
    cluster: Option<String>,
    pub(super) spec: AzureClusterSpec,
}

/// A scale set.
#[derive(Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its instances are VMs of their own.
    pub(super) is_flexible: bool,
    /// Their system, in small letters.
    pub(super) os: Option<String>,
    pub(super) size: Option<String>,
    pub(super) region: Option<String>,
    /// Since when the provider says that something has failed.
    pub(super) failed_since: Option<Timestamp>,
}

impl Around for Cluster {
    const KIND: &'static str = CLUSTER;
    type Kept = AnyCluster;

    fn kept(self) -> AnyCluster {
        AnyCluster {
            is_paused: self.spec.paused || is_paused(&self.metadata),
            host: Some(self.spec.control_plane_endpoint.host).filter(|host| !host.is_empty()),
            infrastructure: self.spec.infrastructure_ref,
        }
    }

    fn shelf(all: &mut Surroundings) -> &mut HashMap<Named, AnyCluster> {
        &mut all.clusters
    }

    fn concerns(_: &Surroundings, this: &Named, machine: &Facts, _: Option<&Behind>) -> bool {
        machine.cluster == this.1
    }

    fn tell((namespace, cluster): &Named, before: Option<&AnyCluster>, now: &AnyCluster) {
        match (before.is_some_and(|before| before.is_paused), now.is_paused) {
            (false, true) => {
                info!(namespace, cluster, "is paused: its machines are observed, not written to");
            }
            (true, false) => info!(namespace, cluster, "goes on: its machines are written to"),
            (true, true) | (false, false) => {}
        }
    }
}

impl Around for AzureCluster {
    const KIND: &'static str = AZURE_CLUSTER;
    type Kept = Site;

    fn kept(self) -> Site {
        let cluster = self.metadata.labels.and_then(|mut all| all.remove(CLUSTER_LABEL));
        Site { cluster, spec: self.spec }
    }

    fn shelf(all: &mut Surroundings) -> &mut HashMap<Named, Site> {
        &mut all.azure_clusters
    }

    fn concerns(all: &Surroundings, this: &Named, machine: &Facts, _: Option<&Behind>) -> bool {
        all.site_named(&this.0, &machine.cluster).is_some_and(|(named, _)| named == this)
    }
}

impl Around for AzureMachinePool {
    const KIND: &'static str = POOL;
    type Kept = Pool;

    fn kept(self) -> Pool {
        let template = self.spec.template;
        Pool {
            is_flexible: self.spec.orchestration_mode.as_deref() == Some("Flexible"),
            os: template.os_disk.os_type.map(|os| os.to_lowercase()),
            size: template.vm_size,
            region: self.spec.location,
            failed_since: failed_since(&self.status.conditions),
        }
    }

    fn shelf(all: &mut Surroundings) -> &mut HashMap<Named, Pool> {
        &mut all.pools
    }

    fn concerns(_: &Surroundings, this: &Named, _: &Facts, behind: Option<&Behind>) -> bool {
        behind.is_some_and(|behind| behind.pool.as_ref() == Some(&this.1))
    }
}

impl Surroundings {
    /// A Cluster by its name.
    pub(super) fn cluster(&self, namespace: &str, name: &str) -> Option<&AnyCluster> {
        self.clusters.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Where a Cluster is in Azure.
    pub(super) fn site(&self, namespace: &str, cluster: &str) -> Option<&AzureClusterSpec> {
        self.site_named(namespace, cluster).map(|(_, site)| &site.spec)
    }

    /// The one that the Cluster names. As long as it names none, the one that bears its name.
    fn site_named(&self, namespace: &str, cluster: &str) -> Option<(&Named, &Site)> {
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

    /// The pool of which this is an instance.
    pub(super) fn pool(&self, namespace: &str, behind: Option<&Behind>) -> Option<&Pool> {
        let name = behind?.pool.clone()?;
        self.pools.get(&(namespace.to_owned(), name))
    }
}
