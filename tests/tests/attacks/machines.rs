//! Machines of a tenant, and NodeClaims beside them.

use anyhow::{Context as _, Result};
use bringup_azure_sim::fault::FaultRule;
use bringup_end_to_end::arm::cluster_api_vm;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::{SUBSCRIPTION, TestBed};
use bringup_objects::NodeClaim;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, find};
use bringup_testbed::wait::until_object;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::TENANT;

const CORE: &str = "cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
/// The age at which the first read of a Machine's VM is due at once.
const DUE: SignedDuration = SignedDuration::from_mins(2);
pub(super) const POOL: &str = "neighbours";
/// An image whose script fails in the scenario.
const IMAGE: &str = "202601.27.0";

/// A fault that gives a fixed response to requests whose path contains `path`.
pub(super) fn answer(method: &str, path: &str, status: u16, headers: &Value, body: &str) -> Value {
    json!({
        "on": { "method": method, "pathContains": path },
        "fault": { "answer": { "status": status, "headers": headers, "body": body } },
    })
}

/// Makes Azure apply this fault from now on.
pub(super) fn arm(bed: &TestBed, fault: Value) -> Result<()> {
    let fault: FaultRule = serde_json::from_value(fault)?;
    bed.azure.with(|azure| azure.arm_fault(fault));
    Ok(())
}

fn api(bed: &TestBed, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    let plural = format!("{}s", kind.kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
    Api::namespaced_with(bed.client.clone(), TENANT, &resource)
}

pub(super) fn machines(bed: &TestBed) -> Api<DynamicObject> {
    api(bed, CORE, "v1beta2", "Machine")
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<()> {
    let what = format!("create {}", object["kind"]);
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await.context(what)?;
    Ok(())
}

/// Creates a cluster whose VMs are in this subscription.
pub(super) async fn create_cluster(bed: &TestBed, name: &str, subscription: &str) -> Result<()> {
    let endpoint = json!({ "host": "prod.example", "port": 6443 });
    create(
        &api(bed, INFRASTRUCTURE, "v1beta1", "AzureCluster"),
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "AzureCluster",
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": name } },
            "spec": { "resourceGroup": format!("rg-{name}"), "subscriptionID": subscription,
                      "location": "eastus", "controlPlaneEndpoint": endpoint },
        }),
    )
    .await?;
    create(&api(bed, CORE, "v1beta2", "Cluster"), json!({
        "apiVersion": format!("{CORE}/v1beta2"), "kind": "Cluster",
        "metadata": { "name": name },
        "spec": { "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "AzureCluster", "name": name },
                  "controlPlaneEndpoint": endpoint },
    })).await
}

/// Creates a VM as the provider does, and returns its id and its `vmId`.
pub(super) fn put_vm(bed: &TestBed, name: &str) -> Result<(String, String)> {
    let base = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-prod/providers");
    let arm = bed.arm();
    let nic = arm.put_nic(&base, &format!("{name}-nic"))?;
    let id = format!("{base}/Microsoft.Compute/virtualMachines/{name}");
    let made = arm.put(&id, &cluster_api_vm(name, &nic))?;
    arm.finish(&made)?;
    let vm = arm.get(&id)?.body["properties"]["vmId"].as_str().context("a vmId")?.to_owned();
    Ok((id, vm))
}

/// Creates a Machine of a cluster, and the provider's object behind it. By its status, the VM has existed
/// long enough for a first read.
pub(super) async fn create_capi_machine(
    bed: &TestBed,
    name: &str,
    cluster: &str,
    id: Option<&str>,
) -> Result<()> {
    let provider_id = id.map(|id| format!("azure://{id}"));
    let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster });
    let disk = json!({ "osType": "Linux", "diskSizeGB": 128 });
    create(&api(bed, INFRASTRUCTURE, "v1beta1", "AzureMachine"), json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "AzureMachine",
        "metadata": { "name": name, "labels": labels },
        "spec": { "vmSize": "Standard_D4s_v5", "sshPublicKey": "", "providerID": provider_id, "osDisk": disk },
    })).await?;
    create(&machines(bed), json!({
        "apiVersion": format!("{CORE}/v1beta2"), "kind": "Machine",
        "metadata": { "name": name, "labels": labels },
        "spec": { "clusterName": cluster, "providerID": provider_id,
                  "bootstrap": { "dataSecretName": "never-read" },
                  "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "AzureMachine", "name": name } },
    })).await?;
    let since = Time(jiff::Timestamp::now().saturating_sub(DUE)?);
    let status = json!({ "status": {
        "initialization": { "infrastructureProvisioned": true },
        "conditions": [{ "type": "InfrastructureReady", "status": "True", "reason": "Ready",
                         "message": "", "lastTransitionTime": since }] } });
    machines(bed).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Waits until a condition of a Machine is as wanted.
pub(super) async fn condition_on_machine(
    bed: &TestBed,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool + Send + Sync,
) -> Result<Value> {
    let told = |object: &DynamicObject| -> Option<Value> {
        let all = object.data.pointer("/status/conditions")?.as_array()?;
        let own = all.iter().find(|one| one["type"] == BOOTSTRAP_SUCCEEDED && is(one));
        own.cloned()
    };
    let is_told = |object: Option<&DynamicObject>| object.and_then(&told).is_some();
    let machine = until_object(machines(bed), name, &format!("{what} on {name}"), is_told).await?;
    machine.as_ref().and_then(told).context("it has the condition")
}

pub(super) fn condition(claim: &NodeClaim) -> Option<&Condition> {
    find(claim.status.as_ref().map_or(&[], |status| &status.conditions), BOOTSTRAP_SUCCEEDED)
}

/// Creates a NodeClaim whose script fails. Karpenter reports the failure after `before` has run.
pub(super) async fn fail(
    bed: &TestBed,
    name: &str,
    before: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (karpenter, order) = (&bed.karpenter, Order::of(IMAGE));
    karpenter.launch_as(name, POOL, &order).await?;
    let error = karpenter.bootstrap_as(name, &order)?.context("the script should fail")?;
    before()?;
    karpenter.report_failure(name, &error).await
}

/// Creates an innocent NodeClaim whose script fails, and checks that its verdict is right.
pub(super) async fn neighbour(bed: &TestBed, name: &str) -> Result<()> {
    fail(bed, name, || Ok(())).await?;
    verdict(bed, name).await
}

/// Waits for the right verdict on a NodeClaim whose script has failed.
pub(super) async fn verdict(bed: &TestBed, name: &str) -> Result<()> {
    let claims: Api<NodeClaim> = Api::all(bed.client.clone());
    let is_told = |claim: Option<&NodeClaim>| {
        claim.and_then(condition).is_some_and(|one| one.status == "False")
    };
    let told = until_object(claims, name, &format!("a verdict on {name}"), is_told).await?;
    let reason = told.as_ref().and_then(condition).map(|one| one.reason.clone());
    anyhow::ensure!(reason.as_deref() == Some("BinaryMissing"), "{name}: {reason:?}");
    Ok(())
}
