//! Nodes for VMs whose join succeeded, and the kubelets' handling of pods.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::simulator::Simulator;
use bringup_testbed::kubelet::{Machine, StandInKubelet};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

use super::guests::Guests;

/// How often a kubelet renews its Lease.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// All kubelets of a test bed, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Kubelets {
    nodes: JoinHandle<()>,
    pods: JoinHandle<()>,
}

impl Kubelets {
    pub(crate) fn start(azure: Simulator, client: Client, guests: Arc<Guests>) -> Self {
        let registrar = Registrar {
            kubelet: StandInKubelet::new(client.clone()),
            nodes: Api::all(client.clone()),
            azure,
            guests,
            registered: BTreeSet::new(),
        };
        Self { nodes: tokio::spawn(registrar.follow()), pods: tokio::spawn(keep_pods(client)) }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.nodes.abort();
        self.pods.abort();
    }
}

struct Registrar {
    kubelet: StandInKubelet,
    nodes: Api<Node>,
    azure: Simulator,
    guests: Arc<Guests>,
    /// Machines that have already registered: a kubelet registers only when it starts.
    registered: BTreeSet<String>,
}

impl Registrar {
    async fn follow(mut self) {
        let mut changes = self.azure.changes();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        let mut known: BTreeMap<String, Machine> = BTreeMap::new();
        let mut shown = None;
        loop {
            let joined = self.azure.with(|azure| Azure::nodes(azure));
            known.retain(|id, _| joined.iter().any(|vm| vm.provider_id == *id));
            for vm in &joined {
                if known.contains_key(&vm.provider_id) {
                    continue;
                }
                let registration = self.guests.registration(&vm.name);
                if let Some(machine) = registration.and_then(|read| read.machine(vm)) {
                    known.insert(vm.provider_id.clone(), machine);
                }
            }
            let machines: Vec<Machine> = known.values().cloned().collect();
            if shown.as_ref() != Some(&machines) {
                // A failed round is retried with the next heartbeat.
                shown = self.show(&machines).await.ok().map(|()| machines);
            }
            tokio::select! {
                () = self.azure.changed(&mut changes) => {}
                _ = heartbeat.tick() => shown = None,
            }
        }
    }

    async fn show(&mut self, machines: &[Machine]) -> Result<()> {
        let nodes = self.nodes.list_metadata(&ListParams::default()).await.context("list Nodes")?;
        let there: BTreeSet<String> = nodes.items.iter().map(kube::ResourceExt::name_any).collect();
        let live: Vec<Machine> = machines
            .iter()
            .filter(|one| there.contains(&one.name) || !self.registered.contains(&one.provider_id))
            .cloned()
            .collect();
        self.kubelet.sync(&live, Timestamp::now()).await.context("show machines as Nodes")?;
        self.registered = machines.iter().map(|one| one.provider_id.clone()).collect();
        Ok(())
    }
}

/// Pods on Nodes run at once, and end at once when they are deleted.
async fn keep_pods(client: Client) {
    let all: Api<Pod> = Api::all(client.clone());
    let mut events = pin!(watcher(all, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else {
            // If the API server has ended, the watch fails without waiting: other tasks must get a turn.
            tokio::task::yield_now().await;
            continue;
        };
        // A failed update is retried with the next change; a test that waits for it reports the failure.
        let _ = keep_pod(&client, &pod).await;
    }
}

async fn keep_pod(client: &Client, pod: &Pod) -> Result<(), kube::Error> {
    if pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) {
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if pod.metadata.deletion_timestamp.is_some() {
        pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
    } else if phase != Some("Running") {
        let status = json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": Timestamp::now() }],
        }});
        pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    }
    Ok(())
}
