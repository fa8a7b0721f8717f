//! Nodes for VMs: the stand-in kubelet follows the VMs that join in the simulated Azure.

use std::collections::BTreeMap;

use bringup_azure_sim::azure::{Azure, JoinedNode};
use bringup_azure_sim::simulator::Simulator;
use bringup_testbed::kubelet::{Machine, Readiness, SigningRequest, StandInKubelet};
use k8s_openapi::api::core::v1::Taint;
use kube::Client;
use tokio::task::JoinHandle;

/// Creates and deletes Nodes for the VMs that have joined, until this value is dropped.
#[derive(Debug)]
pub(crate) struct NodeFollower(JoinHandle<()>);

impl NodeFollower {
    /// Follows all VMs whose names begin with `prefix`.
    pub(crate) fn start(azure: Simulator, client: Client, prefix: &str) -> Self {
        Self(tokio::spawn(follow(azure, StandInKubelet::new(client).only(prefix))))
    }
}

impl Drop for NodeFollower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn follow(azure: Simulator, kubelet: StandInKubelet) {
    let mut changes = azure.changes();
    let mut shown: Option<(Vec<Machine>, jiff::SignedDuration)> = None;
    loop {
        let machines: Vec<Machine> =
            azure.with(|azure| Azure::nodes(azure)).iter().filter_map(machine).collect();
        let jumped = azure.clock().jumped();
        let wanted = Some((machines, jumped));
        if wanted != shown
            && let Some((machines, _)) = &wanted
        {
            // A failed round is retried at the next step, because no machines are recorded as synced.
            let synced = kubelet.sync(machines, azure.clock().now()).await.is_ok();
            shown = if synced { wanted } else { None };
        }
        azure.changed(&mut changes).await;
    }
}

/// The machine for a VM that has joined. Karpenter's tags become labels of the Node, and a Node that
/// Karpenter expects registers with Karpenter's taint.
fn machine(node: &JoinedNode) -> Option<Machine> {
    let zone =
        node.zone.as_ref().map_or_else(|| "0".to_owned(), |zone| format!("{}-{zone}", node.region));
    let mut labels = BTreeMap::from([
        ("node.kubernetes.io/instance-type".to_owned(), node.size.clone()),
        ("topology.kubernetes.io/region".to_owned(), node.region.clone()),
        ("topology.kubernetes.io/zone".to_owned(), zone),
    ]);
    let pool = node.tags.get("karpenter.sh_nodepool");
    if let Some(pool) = pool {
        labels.insert("karpenter.sh/nodepool".to_owned(), pool.clone());
    }
    let unregistered = Taint {
        key: "karpenter.sh/unregistered".to_owned(),
        effect: "NoExecute".to_owned(),
        ..Taint::default()
    };
    Some(Machine {
        name: node.name.clone(),
        provider_id: node.provider_id.clone(),
        internal_ip: node.internal_ip.parse().ok()?,
        labels,
        taints: pool.map(|_| unregistered).into_iter().collect(),
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        ready: Readiness::Ready,
        csr: SigningRequest::Approve,
    })
}
