//! A stand-in for Karpenter and its Azure provider, in the mode in which the provider creates the Custom
//! Script extension: the stand-in makes the same changes in ARM and to the NodeClaim, and uses only
//! information that they have.

use anyhow::{Context as _, Result};
use bringup_azure_sim::simulator::Simulator;
use jiff::Timestamp;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::SUBSCRIPTION;
use crate::arm::{Arm, Response};
use crate::order::Order;

const GROUP: &str = "MC_rg1_aks1_eastus";
/// The length at which Karpenter cuts its message about a failure, before the exit code.
const EVENT_CUT: usize = 500;

/// Acts as Karpenter and its Azure provider, step by step as the test requests.
#[derive(Clone)]
pub struct StandInKarpenter {
    client: Client,
    arm: Arm,
    azure: Simulator,
    class: String,
}

impl StandInKarpenter {
    /// A stand-in whose claims refer to a class of this kind.
    pub fn new(client: Client, azure: Simulator, class: &str) -> Self {
        Self { client, arm: Arm::new(azure.clone()), azure, class: class.to_owned() }
    }

    /// The path of the VM for a claim.
    pub fn vm_path(claim: &str) -> String {
        path("Microsoft.Compute/virtualMachines", claim)
    }

    /// Creates a NodePool with its class.
    pub async fn create_pool(&self, name: &str) -> Result<()> {
        if self.class == "AKSNodeClass" {
            let class = json!({
                "apiVersion": "karpenter.azure.com/v1beta1",
                "kind": "AKSNodeClass",
                "metadata": { "name": name },
                "spec": { "imageFamily": "AzureLinux" },
            });
            self.create(&class).await?;
        }
        let pool = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": { "name": name },
            "spec": { "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.azure.com", "kind": self.class, "name": name },
                "requirements": [linux()],
            } } },
        });
        self.create(&pool).await
    }

    /// Creates a NodeClaim, its NIC and its VM, and sets the condition `Launched`.
    pub async fn launch(&self, claim: &str, pool: &str, image_version: &str) -> Result<()> {
        self.launch_as(claim, pool, &Order::of(image_version)).await
    }

    /// Like [`Self::launch`], for a VM with these properties.
    pub async fn launch_as(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        self.claim(claim, Some(pool)).await?;
        self.make(claim, pool, order).await
    }

    /// Creates the NIC and the VM of an existing claim, and sets the condition `Launched`.
    pub async fn make(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        let name = format!("aks-{claim}");
        self.arm.put(&path("Microsoft.Network/networkInterfaces", claim), &Order::nic(pool))?;
        let nic = path("Microsoft.Network/networkInterfaces", claim);
        let accepted = self.arm.put(&Self::vm_path(claim), &order.vm(&name, pool, &nic))?;
        self.accepted(claim, &Self::vm_path(claim), &order.image()).await?;
        self.arm.finish(&accepted).map(drop)
    }

    /// Creates a NodeClaim, and requests a machine for it from AKS.
    pub async fn launch_machine(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        self.claim(claim, Some(pool)).await?;
        let machine = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg1/providers/Microsoft.ContainerService/managedClusters/aks1/agentPools/{pool}/machines/{claim}"
        );
        let response =
            self.arm.put(&format!("{machine}?api-version=2025-09-02-preview"), &order.machine())?;
        let annotations = json!({ "metadata": { "annotations": { "karpenter.azure.com/aks-machine-resource-id": machine } } });
        self.claims()
            .patch(claim, &PatchParams::default(), &Patch::Merge(annotations))
            .await
            .context("annotate the NodeClaim")?;
        let vm = response.body["properties"]["resourceId"].as_str().unwrap_or_default().to_owned();
        self.accepted(claim, &vm, &order.image()).await
    }

    /// Creates a NodeClaim without a pool, whose VM Azure refuses: the claim's status contains the error.
    pub async fn launch_standalone(&self, claim: &str, error: &str) -> Result<()> {
        self.claim(claim, None).await?;
        self.patch_status(
            claim,
            &json!({ "conditions": [{
            "type": "Launched", "status": "Unknown", "reason": "CreateInstanceFailed",
            "message": error.chars().take(1200).collect::<String>(),
            "lastTransitionTime": self.second(),
        }] }),
        )
        .await
    }

    /// Creates only a NodeClaim.
    pub async fn claim(&self, claim: &str, pool: Option<&str>) -> Result<()> {
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": claim },
            "spec": {
                "nodeClassRef": { "group": "karpenter.azure.com", "kind": self.class, "name": pool.unwrap_or("default") },
                "requirements": [linux()],
            },
        });
        if let Some(pool) = pool {
            object["metadata"]["labels"] = json!({
                "karpenter.sh/nodepool": pool,
                "karpenter.sh/capacity-type": "on-demand",
                "node.kubernetes.io/instance-type": "Standard_D4s_v5",
                "topology.kubernetes.io/zone": "eastus-1",
            });
        }
        self.create(&object).await
    }

    /// Writes to a claim's status that its VM was accepted.
    pub async fn accepted(&self, claim: &str, vm: &str, image: &str) -> Result<()> {
        let place = vm.replacen(GROUP, &GROUP.to_ascii_lowercase(), 1);
        self.patch_status(
            claim,
            &json!({
                "providerID": format!("azure://{place}"),
                "imageID": image,
                "conditions": self.conditions(),
            }),
        )
        .await
    }

    /// Creates the Custom Script extension and follows it to its end. Returns ARM's error, if any.
    pub fn bootstrap(&self, claim: &str) -> Result<Option<Value>> {
        let started = self.start_script(claim, &Order::default())?;
        let ended = self.arm.finish(&started)?;
        Ok(ended.get("error").cloned())
    }

    /// Like [`Self::bootstrap`], for a VM with these properties.
    pub fn bootstrap_as(&self, claim: &str, order: &Order) -> Result<Option<Value>> {
        let started = self.start_script(claim, order)?;
        let ended = self.arm.finish(&started)?;
        Ok(ended.get("error").cloned())
    }

    /// Like [`Self::bootstrap_as`], for a VM whose bootstrap is a real program.
    pub async fn bootstrap_for_real(&self, claim: &str, order: &Order) -> Result<Option<Value>> {
        let started = self.start_script(claim, order)?;
        let ended = self.arm.follow(&started).await?;
        Ok(ended.get("error").cloned())
    }

    /// Creates the Custom Script extension, and does not wait for it.
    pub fn start_script(&self, claim: &str, order: &Order) -> Result<Response> {
        let name =
            if order.windows { "windows-cse-agent-karpenter" } else { "cse-agent-karpenter" };
        let extension = format!("{}/extensions/{name}", Self::vm_path(claim));
        self.arm.put(&extension, &order.extension())
    }

    /// Reports the failure like Karpenter: an Event with the first 500 characters.
    pub async fn report_failure(&self, claim: &str, error: &Value) -> Result<()> {
        let object = self.claims().get(claim).await.context("read the NodeClaim")?;
        let now = self.azure.clock().now();
        let note: String =
            format!("Failed to register: {}", sdk_text(error)).chars().take(EVENT_CUT).collect();
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": format!("{claim}.{:x}", now.as_microsecond()), "namespace": "default" },
            "eventTime": micro(now),
            "type": "Warning",
            "reason": "AsyncProvisioningError",
            "action": "Provision",
            "note": note,
            "reportingController": "karpenter",
            "reportingInstance": "karpenter-0",
            "regarding": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim, "uid": object.uid() },
        });
        self.create_in(Some("default"), &event).await
    }

    /// Registers the claim's Node: the status is patched from a fresh copy, so that the changes of other
    /// writers stay.
    pub async fn register(&self, claim: &str) -> Result<()> {
        let mut conditions = self.conditions_of(claim).await?;
        let now = self.second();
        for condition in &mut conditions {
            if ["Registered", "Initialized", "Ready"]
                .contains(&condition["type"].as_str().unwrap_or_default())
            {
                *condition = json!({
                    "type": condition["type"], "status": "True", "reason": condition["type"],
                    "message": "", "lastTransitionTime": now,
                });
            }
        }
        let status = json!({ "nodeName": format!("aks-{claim}"), "conditions": conditions });
        self.patch_status(claim, &status).await
    }

    /// Patches the status from a stale copy, as Karpenter's main write does: the changes of other writers are
    /// lost.
    pub async fn overwrite(&self, claim: &str) -> Result<()> {
        let theirs = ["Launched", "Registered", "Initialized", "Ready"];
        let mut conditions = self.conditions_of(claim).await?;
        conditions
            .retain(|condition| theirs.contains(&condition["type"].as_str().unwrap_or_default()));
        self.patch_status(claim, &json!({ "conditions": conditions })).await
    }

    async fn conditions_of(&self, claim: &str) -> Result<Vec<Value>> {
        let object = self.claims().get(claim).await.context("read the NodeClaim")?;
        Ok(object.data["status"]["conditions"].as_array().cloned().unwrap_or_default())
    }

    /// Launches a claim whose script fails, and reports that.
    pub async fn fail(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        self.launch_as(claim, pool, order).await?;
        let error = self.bootstrap_as(claim, order)?.context("the script should fail")?;
        self.report_failure(claim, &error).await
    }

    /// Deletes the VM and then the claim, as Karpenter does after a failure.
    pub async fn clean_up(&self, claim: &str) -> Result<()> {
        self.delete_vm(claim)?;
        self.delete_claim(claim).await
    }

    /// Deletes the VM, and waits for the end of the operation.
    pub fn delete_vm(&self, claim: &str) -> Result<()> {
        let deleted = self.arm.delete(&format!("{}?forceDeletion=true", Self::vm_path(claim)))?;
        self.arm.finish(&deleted).map(drop)
    }

    /// Deletes the claim.
    pub async fn delete_claim(&self, claim: &str) -> Result<()> {
        self.claims()
            .delete(claim, &DeleteParams::default())
            .await
            .context("delete the NodeClaim")?;
        Ok(())
    }

    /// Karpenter's conditions for a claim whose VM was accepted and whose Node has not been seen.
    fn conditions(&self) -> Value {
        let now = self.second();
        let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now });
        json!([
            condition("Launched", "True", "Launched", ""),
            condition("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster"),
            condition(
                "Initialized",
                "Unknown",
                "AwaitingReconciliation",
                "object is awaiting reconciliation"
            ),
            condition(
                "Ready",
                "Unknown",
                "ReconcilingDependents",
                "Registered=Unknown, Initialized=Unknown"
            ),
        ])
    }

    /// The current time in the format of conditions.
    fn second(&self) -> String {
        self.azure.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn claims(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource("karpenter.sh/v1", "NodeClaim"))
    }

    async fn patch_status(&self, claim: &str, status: &Value) -> Result<()> {
        let parameters =
            PatchParams { field_manager: Some("karpenter".to_owned()), ..PatchParams::default() };
        self.claims()
            .patch_status(claim, &parameters, &Patch::Merge(json!({ "status": status })))
            .await
            .with_context(|| format!("patch the status of NodeClaim {claim}"))?;
        Ok(())
    }

    async fn create(&self, object: &Value) -> Result<()> {
        self.create_in(None, object).await
    }

    async fn create_in(&self, namespace: Option<&str>, object: &Value) -> Result<()> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let kind = resource(text("apiVersion"), text("kind"));
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let object = serde_json::from_value(object.clone()).context("read the object")?;
        api.create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("create {} {}", kind.kind, object.name_any()))?;
        Ok(())
    }
}

/// An error in the format of Azure's Go SDK: the request and a frame come first, so that the exit code is
/// after the text that Karpenter preserves.
fn sdk_text(error: &Value) -> String {
    let rule = "-".repeat(80);
    let address = format!(
        "https://management.azure.com/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/operations/11111111-1111-1111-1111-111111111111"
    );
    let code = error["code"].as_str().unwrap_or_default();
    format!("GET {address}\n{rule}\nRESPONSE 200: 200 OK\nERROR CODE: {code}\n{rule}\n{error:#}")
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind == "AKSNodeClass" {
        "aksnodeclasses".clone_into(&mut resource.plural);
    }
    resource
}

fn path(kind: &str, claim: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{kind}/aks-{claim}")
}

fn linux() -> Value {
    json!({ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] })
}

fn micro(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
