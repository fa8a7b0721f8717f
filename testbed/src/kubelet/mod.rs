//! A stand-in for the kubelets of simulated machines.
//!
//! Other components know a kubelet by its objects in the API server: a certificate signing request, a Node, a
//! Lease. The stand-in writes the same objects, and deletes them when the machine is deleted, as a cloud
//! controller would.

mod machine;
mod objects;
mod plan;
mod requests;

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

pub use machine::{Machine, Readiness, SigningRequest};

use crate::{Error, Result};
use objects::{LEASE_NAMESPACE, MARK};
use plan::{Observed, Step};
use requests::Requests;

/// Acts as the kubelets of all simulated machines.
///
/// # Guarantees
///
/// - It has no state: every call reads the existing objects, and may be repeated after a crash.
/// - [`sync`](Self::sync) deletes only objects that a stand-in has created and labelled.
///
/// # Assumptions
///
/// - The client has all permissions, including impersonation, and the group `system:bootstrappers` may create
///   certificate signing requests. A [`ControlPlane`](crate::ControlPlane) is set up for both.
#[derive(Clone)]
pub struct StandInKubelet {
    nodes: Api<Node>,
    leases: Api<Lease>,
    requests: Requests,
    prefix: String,
}

impl StandInKubelet {
    /// A stand-in that uses `client`.
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), LEASE_NAMESPACE),
            requests: Requests::new(client),
            prefix: String::new(),
        }
    }

    /// Limits the stand-in to machines whose names begin with `prefix`, so that several stand-ins can share
    /// an API server.
    #[must_use]
    pub fn only(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Creates the objects of a kubelet whose machine joins, up to the state in [`SigningRequest`]. An
    /// existing Node stays unchanged.
    pub async fn join(&self, machine: &Machine, now: Timestamp) -> Result<()> {
        self.requests.bring_to(machine, now).await?;
        if machine.csr == SigningRequest::Pending {
            return Ok(());
        }
        let node = self.register(machine, now).await?;
        self.hold_lease(&node, now).await
    }

    /// Renews the Lease of the Node `name`, as a kubelet does every ten seconds.
    pub async fn heartbeat(&self, name: &str, now: Timestamp) -> Result<()> {
        let renewal = json!({"spec": {"renewTime": MicroTime(now)}});
        self.leases
            .patch(name, &manager(), &Patch::Merge(renewal))
            .await
            .map(|_lease| ())
            .map_err(Error::api(format!("renew the Lease of {name}")))
    }

    /// Deletes all objects of the machine `name`, if there are any.
    pub async fn leave(&self, name: &str) -> Result<()> {
        // The Lease is deleted first: `sync` does not look for Leases, so a Lease must not be left over
        // alone.
        delete(&self.leases, name).await?;
        delete(&self.nodes, name).await?;
        self.requests.delete(name).await
    }

    /// Makes the cluster match the list: new machines join, machines missing from the list leave, the others
    /// report their state and renew their Leases.
    pub async fn sync(&self, machines: &[Machine], now: Timestamp) -> Result<()> {
        let observed = self.observe().await?;
        for step in plan::plan(&observed, machines) {
            match step {
                Step::Leave(name) => self.leave(&name).await?,
                Step::Join(machine) => self.join(machine, now).await?,
                Step::Report(machine, node) => self.report(machine, node, now).await?,
            }
        }
        Ok(())
    }

    async fn observe(&self) -> Result<Observed> {
        let nodes = self
            .nodes
            .list(&ListParams::default().labels(MARK))
            .await
            .map_err(Error::api("list the Nodes of stand-in kubelets"))?
            .items;
        let requests = self.requests.list().await?;
        let is_ours = |name: Option<&String>| name.is_some_and(|name| name.contains(&self.prefix));
        Ok(Observed {
            nodes: nodes.into_iter().filter(|node| is_ours(node.metadata.name.as_ref())).collect(),
            requests: requests
                .into_iter()
                .filter(|request| is_ours(request.metadata.name.as_ref()))
                .collect(),
        })
    }

    async fn register(&self, machine: &Machine, now: Timestamp) -> Result<Node> {
        let name = machine.name.as_str();
        let node = objects::node(machine, now);
        let created = match self.nodes.create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.nodes.get(name).await
            }
            result => result,
        };
        created.map_err(Error::api(format!("create the Node {name}")))
    }

    async fn hold_lease(&self, node: &Node, now: Timestamp) -> Result<()> {
        let lease = objects::lease(node, now);
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        self.leases
            .patch(name, &manager().force(), &Patch::Apply(&lease))
            .await
            .map(|_lease| ())
            .map_err(Error::api(format!("hold the Lease of {name}")))
    }

    async fn report(&self, machine: &Machine, node: &Node, now: Timestamp) -> Result<()> {
        self.requests.bring_to(machine, now).await?;

        let name = machine.name.as_str();
        let labels = json!({"metadata": {"labels": objects::labels(machine)}});
        self.nodes
            .patch(name, &manager(), &Patch::Merge(labels))
            .await
            .map_err(Error::api(format!("label the Node {name}")))?;

        let previous = node.status.as_ref().and_then(|it| it.conditions.as_deref());
        let status = objects::node_status(machine, previous.unwrap_or_default(), now);
        // A strategic merge patch, so that the conditions of other writers stay.
        let status = Patch::Strategic(json!({"status": status}));
        self.nodes
            .patch_status(name, &manager(), &status)
            .await
            .map_err(Error::api(format!("report the status of the Node {name}")))?;

        self.hold_lease(node, now).await
    }
}

fn manager() -> PatchParams {
    PatchParams::apply("kubelet")
}

/// Deletes the object if it exists.
async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        result => result
            .map(|_deleted| ())
            .map_err(Error::api(format!("delete {}/{name}", api.resource_url()))),
    }
}
