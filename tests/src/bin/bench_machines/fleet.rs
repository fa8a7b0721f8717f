//! A large management cluster: Machines with Nodes that came up an hour ago, with their objects of the Azure
//! provider, as large as real objects.

use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The number of concurrent requests.
const PARALLEL_REQUESTS: usize = 32;
/// The namespace of the Machines.
const NAMESPACE: &str = "default";
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
const GROUP: &str = "cluster.x-k8s.io";
const PROVIDER: &str = "infrastructure.cluster.x-k8s.io";

/// Creates this many Machines, each with its `AzureMachine`.
pub(crate) async fn fill(client: &Client, many: usize) -> Result<()> {
    let machines = api(client, GROUP, "v1beta2", "Machine");
    let provided = api(client, PROVIDER, "v1beta1", "AzureMachine");
    let since = (Timestamp::now() - SignedDuration::from_hours(1))
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let (machines, provided, since) = (&machines, &provided, since.as_str());
    let one = |nth: usize| async move {
        let name = format!("prod-md-0-7f9c4d8b6-{nth:05}");
        make(machines, &name, &machine(&name), &machine_status(&name, since)).await?;
        make(provided, &name, &azure_machine(&name), &azure_status(since)).await
    };
    stream::iter((0..many).map(one)).buffer_unordered(PARALLEL_REQUESTS).try_collect().await
}

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), NAMESPACE, &kind)
}

async fn make(api: &Api<DynamicObject>, name: &str, object: &Value, status: &Value) -> Result<()> {
    let object = serde_json::from_value(object.clone()).context("read the object")?;
    api.create(&PostParams::default(), &object).await.context("create an object")?;
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch).await.context("patch a status")?;
    Ok(())
}

fn labels() -> Value {
    json!({
        "cluster.x-k8s.io/cluster-name": "prod",
        "cluster.x-k8s.io/deployment-name": "prod-md-0",
        "cluster.x-k8s.io/set-name": "prod-md-0-7f9c4d8b6",
        "machine-template-hash": "7f9c4d8b6",
        "topology.cluster.x-k8s.io/deployment-name": "md-0",
        "topology.cluster.x-k8s.io/owned": "",
    })
}

fn id(name: &str) -> String {
    format!(
        "azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/rg-prod/providers/Microsoft.Compute/virtualMachines/{name}"
    )
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "controller": true,
        "blockOwnerDeletion": true, "uid": "8a5e5c0e-4b0e-4c57-9a53-3f1f5b8f2f11",
    }])
}

fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "labels": labels(),
            "annotations": { "cluster.x-k8s.io/cloned-from-name": "prod-md-0", "cluster.x-k8s.io/cloned-from-groupkind": "AzureMachineTemplate.infrastructure.cluster.x-k8s.io" },
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": owner("MachineSet", "prod-md-0-7f9c4d8b6"),
        },
        "spec": {
            "clusterName": "prod",
            "version": "v1.34.2",
            "providerID": id(name),
            "bootstrap": {
                "configRef": { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name },
                "dataSecretName": name,
            },
            "infrastructureRef": { "apiGroup": PROVIDER, "kind": "AzureMachine", "name": name },
        },
    })
}

fn machine_status(name: &str, since: &str) -> Value {
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1, "lastTransitionTime": since });
    let kinds = [
        "Available",
        "Ready",
        "UpToDate",
        "BootstrapConfigReady",
        "InfrastructureReady",
        "NodeHealthy",
        "NodeReady",
        "NodeReadyCondition",
        "HealthCheckSucceeded",
    ];
    json!({
        "phase": "Running",
        "nodeRef": { "name": name },
        "initialization": { "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true },
        "addresses": [{ "type": "InternalDNS", "address": name }, { "type": "InternalIP", "address": "10.1.0.4" }],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "8a5e5c0e-4b0e-4c57-9a53-3f1f5b8f2f12", "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.8.0-1030-azure", "kubeProxyVersion": "", "kubeletVersion": "v1.34.2", "machineID": "8a5e5c0e4b0e4c579a533f1f5b8f2f12",
            "operatingSystem": "linux", "osImage": "Ubuntu 24.04.3 LTS", "systemUUID": "8a5e5c0e-4b0e-4c57-9a53-3f1f5b8f2f13",
        },
        "conditions": kinds.map(condition).to_vec(),
    })
}

fn azure_machine(name: &str) -> Value {
    let gallery = json!({ "gallery": "ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019", "name": "capi-ubun2-2404", "version": "1.34.2" });
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "AzureMachine",
        "metadata": {
            "name": name,
            "labels": labels(),
            "annotations": { "cluster.x-k8s.io/cloned-from-name": "prod-md-0", "cluster.x-k8s.io/cloned-from-groupkind": "AzureMachineTemplate.infrastructure.cluster.x-k8s.io" },
            "finalizers": ["azuremachine.infrastructure.cluster.x-k8s.io"],
            "ownerReferences": owner("Machine", name),
        },
        "spec": {
            "providerID": id(name),
            "vmSize": "Standard_D4s_v5",
            "identity": "None",
            "failureDomain": "1",
            "image": { "computeGallery": gallery },
            "osDisk": { "osType": "Linux", "diskSizeGB": 128, "cachingType": "None", "managedDisk": { "storageAccountType": "Premium_LRS" } },
            "networkInterfaces": [{ "privateIPConfigs": 1, "subnetName": "prod-node-subnet" }],
            "diagnostics": { "boot": { "storageAccountType": "Managed" } },
            "disableVMBootstrapExtension": true,
            "sshPublicKey": "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUE9PQ==",
        },
    })
}

fn azure_status(since: &str) -> Value {
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": since });
    let kinds = ["Ready", "VMRunning", "VMIdentitiesReady", "NetworkInterfaceReady", "DisksReady"];
    json!({
        "ready": true,
        "vmState": "Succeeded",
        "addresses": [{ "type": "InternalDNS", "address": "a" }, { "type": "InternalIP", "address": "10.1.0.4" }],
        "conditions": kinds.map(condition).to_vec(),
    })
}
