//! A large cluster: NodeClaims with Nodes that came up an hour ago, as large as real objects.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The number of concurrent requests.
const PARALLEL_REQUESTS: usize = 32;
/// The number of images that a kubelet reports for its machine.
const IMAGES: usize = 25;

/// The name of a NodeClaim; the name of its Node is `aks-` and this name.
pub(crate) fn name(nth: usize) -> String {
    format!("fleet-{nth:05}")
}

/// Creates this many NodeClaims and Nodes; returns how long that took.
pub(crate) async fn fill(client: &Client, many: usize) -> Result<Duration> {
    let began = Instant::now();
    let claims = api(client, "karpenter.sh", "NodeClaim");
    let nodes = api(client, "", "Node");
    let up_since = (Timestamp::now() - SignedDuration::from_hours(1))
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let (claims, nodes, up_since) = (&claims, &nodes, up_since.as_str());
    let one = |nth: usize| async move {
        let name = name(nth);
        create(claims, &claim(&name)).await?;
        let status = Patch::Merge(json!({ "status": status(&name, up_since) }));
        claims
            .patch_status(&name, &PatchParams::default(), &status)
            .await
            .with_context(|| format!("patch the status of {name}"))?;
        create(nodes, &node(&name, up_since)).await
    };
    stream::iter((0..many).map(one))
        .buffer_unordered(PARALLEL_REQUESTS)
        .try_collect::<()>()
        .await?;
    Ok(began.elapsed())
}

fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::all_with(client.clone(), &kind)
}

async fn create(api: &Api<DynamicObject>, object: &Value) -> Result<()> {
    let object = serde_json::from_value(object.clone()).context("read the object")?;
    api.create(&PostParams::default(), &object).await.context("create an object")?;
    Ok(())
}

fn labels() -> Value {
    json!({
        "beta.kubernetes.io/arch": "amd64",
        "karpenter.azure.com/aksnodeclass": "default",
        "karpenter.azure.com/sku-cpu": "4",
        "karpenter.azure.com/sku-family": "D",
        "karpenter.azure.com/sku-memory": "16384",
        "karpenter.azure.com/sku-version": "5",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/nodepool": "default",
        "kubernetes.azure.com/cluster": "MC_rg1_aks1_eastus",
        "kubernetes.azure.com/os-sku": "AzureLinux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "Standard_D4s_v5",
        "topology.kubernetes.io/region": "eastus",
        "topology.kubernetes.io/zone": "eastus-1",
    })
}

fn claim(name: &str) -> Value {
    let any =
        |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": labels(),
            "annotations": { "karpenter.sh/nodepool-hash": "10295480234523452345", "karpenter.sh/nodepool-hash-version": "v3" },
        },
        "spec": {
            "nodeClassRef": { "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default" },
            "requirements": [
                any("kubernetes.io/os", &["linux"]),
                any("kubernetes.io/arch", &["amd64"]),
                any("karpenter.sh/capacity-type", &["on-demand"]),
                any("node.kubernetes.io/instance-type", &["Standard_D4s_v5", "Standard_D4as_v5", "Standard_D8s_v5", "Standard_D8as_v5", "Standard_E4s_v5", "Standard_E8s_v5"]),
            ],
            "resources": { "requests": { "cpu": "3", "memory": "9Gi", "pods": "30" } },
        },
    })
}

fn status(name: &str, since: &str) -> Value {
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": since });
    let kinds = ["Launched", "Registered", "Initialized", "ConsistentStateFound", "Ready"];
    json!({
        "providerID": format!("azure://{}", StandInKarpenter::vm_path(name)),
        "nodeName": format!("aks-{name}"),
        "imageID": "/CommunityGalleries/AKSAzureLinux/images/V3gen2/versions/202601.13.0",
        "capacity": { "cpu": "4", "memory": "16Gi", "pods": "250", "ephemeral-storage": "128G" },
        "allocatable": { "cpu": "3860m", "memory": "12Gi", "pods": "250", "ephemeral-storage": "128G" },
        "conditions": kinds.map(condition).to_vec(),
    })
}

fn node(name: &str, since: &str) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "KubeletReady", "message": "the kubelet says so",
            "lastHeartbeatTime": since, "lastTransitionTime": since,
        })
    };
    let image = |nth: usize| {
        json!({
            "names": [format!("mcr.microsoft.com/oss/kubernetes/component-{nth}@sha256:{nth:064x}"), format!("mcr.microsoft.com/oss/kubernetes/component-{nth}:v1.33.{nth}")],
            "sizeBytes": 50_000_000 + nth,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": format!("aks-{name}"), "labels": labels(), "annotations": { "node.alpha.kubernetes.io/ttl": "0" } },
        "spec": { "providerID": format!("azure://{}", StandInKarpenter::vm_path(name)) },
        "status": {
            "capacity": { "cpu": "4", "memory": "16Gi", "pods": "250" },
            "allocatable": { "cpu": "3860m", "memory": "12Gi", "pods": "250" },
            "addresses": [{ "type": "InternalIP", "address": "10.1.0.4" }, { "type": "Hostname", "address": format!("aks-{name}") }],
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False"), condition("Ready", "True")],
            "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
        },
    })
}
