//! A stand-in for the kubelets of machines that are only simulated.
//!
//! What others know of a kubelet is what it writes to the API server: a request
//! for a certificate, a Node, a Lease. The stand-in writes the same, and removes
//! it when the machine goes, as the cloud's controllers would.

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

/// Plays the kubelets of all machines it is told about.
///
/// # Guarantees
///
/// - It remembers nothing: every call looks at what is there, and may be
///   repeated after a crash.
/// - [`sync`](Self::sync) removes only what a stand-in has made, which carries a
///   label that says so.
///
/// # Assumptions
///
/// - The client may do everything, impersonation included, and the group
///   `system:bootstrappers` may create certificate signing requests. A
///   [`ControlPlane`](crate::ControlPlane) is set up for both.
#[derive(Clone)]
pub struct StandInKubelet {
    nodes: Api<Node>,
    leases: Api<Lease>,
    requests: Requests,
    prefix: String,
}

impl StandInKubelet {
    /// A stand-in that acts through `client`.
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), LEASE_NAMESPACE),
            requests: Requests::new(client),
            prefix: String::new(),
        }
    }

    /// The same for machines whose names begin with `prefix` alone: several that share an API
    /// server leave each other's machines alone.
    #[must_use]
    pub fn only(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Makes what a kubelet makes when its machine joins, as far as it gets:
    /// see [`SigningRequest`]. A Node that is there already is left as it is.
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

    /// Removes all that belongs to the machine `name`, if anything is there.
    pub async fn leave(&self, name: &str) -> Result<()> {
        // The Lease goes first: `sync` does not look for it, so it must not be left alone.
        delete(&self.leases, name).await?;
        delete(&self.nodes, name).await?;
        self.requests.delete(name).await
    }

    /// Makes the cluster match the list: machines that are new join, those that
    /// are gone leave, the others report their state and that they are alive.
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
        // Strategic, so that the conditions of others stay.
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

/// Deletes the object if it is there.
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
