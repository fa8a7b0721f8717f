//! A management cluster, and machines in it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure::{Arm as Client_, Cloud};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::doors::{AnyToken, InProcess};
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::{Controller, Settings};
use bringup_objects::BootstrapReport;
use bringup_objects::report::definition;
use bringup_testbed::{ControlPlane, CrdSet};
use bringup_world::arm::Arm;
use bringup_world::stage::SimulatedClock;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(1);

/// The control plane that all tests here share.
async fn plane() -> Result<&'static ControlPlane> {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = || async {
        let sets = [CrdSet::KarpenterAzure, CrdSet::ClusterApi, CrdSet::ClusterApiAzure];
        let plane = ControlPlane::builder().crds(sets).start().await?;
        plane.install_definitions([definition()]).await?;
        anyhow::Ok(plane)
    };
    PLANE.get_or_try_init(start).await
}

/// A namespace with a cluster, an Azure of its own, and a controller.
pub(crate) struct Ground {
    pub(crate) client: Client,
    pub(crate) azure: Simulator,
    pub(crate) namespace: String,
    task: JoinHandle<()>,
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural)
}

/// What a machine is to be.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) os: &'a str,
    /// The provider has said where the VM is.
    pub(crate) is_said: bool,
    pub(crate) console: bool,
}

impl<'a> Wanted<'a> {
    pub(crate) fn linux(name: &'a str) -> Self {
        Self { name, os: "Linux", is_said: true, console: true }
    }
}

impl Ground {
    pub(crate) async fn new(name: &str, text: &str) -> Result<Self> {
        let client = plane().await?.client();
        let scenario = scenario::parse(name, text)?;
        let azure = Simulator::new(scenario, Pace::Real, jiff::Timestamp::now());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for one in [name.to_owned(), format!("bringup-{name}")] {
            let namespace = json!({ "metadata": { "name": one } });
            namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        }
        let clock = Arc::new(SimulatedClock(azure.clone()));
        let arm = Client_::new(
            Cloud::Public.endpoint(),
            Arc::new(AnyToken("observer")),
            Arc::new(InProcess::new(azure.clone())),
            clock.clone(),
        );
        let mut settings = Settings::new(&format!("bringup-{name}"), "test-0");
        settings.machines = true;
        settings.only_namespace = Some(name.to_owned());
        let controller = Controller::new(settings, client.clone(), arm, clock);
        let task = tokio::spawn(async move { controller.observe().await });
        let ground = Self { client, azure, namespace: name.to_owned(), task };
        ground.make_cluster().await?;
        Ok(ground)
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = resource(group, version, kind);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) fn machines(&self) -> Api<DynamicObject> {
        self.api("cluster.x-k8s.io", "v1beta2", "Machine")
    }

    pub(crate) fn provided(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureMachine")
    }

    async fn make_cluster(&self) -> Result<()> {
        let group = format!("rg-{}", self.namespace);
        let cluster = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "metadata": { "name": "prod", "labels": { "cluster.x-k8s.io/cluster-name": "prod" } },
            "spec": { "resourceGroup": group, "subscriptionID": SUBSCRIPTION, "location": "eastus",
                      "controlPlaneEndpoint": { "host": "prod.example", "port": 6443 } },
        });
        let api = self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureCluster");
        api.create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "prod" },
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "prod" },
                      "controlPlaneEndpoint": { "host": "prod.example", "port": 6443 } },
        });
        let api = self.api("cluster.x-k8s.io", "v1beta2", "Cluster");
        api.create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
        Ok(())
    }

    /// A Machine with what the provider has behind it, and its VM.
    pub(crate) async fn launch(&self, wanted: Wanted<'_>) -> Result<()> {
        let Wanted { name, os, is_said, .. } = wanted;
        let vm = bringup_objects::cluster_api::vm_name(name, os == "Windows");
        self.put_vm(&vm, wanted)?;
        let id = format!(
            "azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/rg-{}/providers/Microsoft.Compute/virtualMachines/{vm}",
            self.namespace
        );
        let id = is_said.then_some(id);
        let provided = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachine",
            "metadata": { "name": name },
            "spec": { "vmSize": "Standard_D4s_v5", "sshPublicKey": "", "providerID": id,
                      "osDisk": { "osType": os, "diskSizeGB": 128 } },
        });
        let provided = serde_json::from_value(provided)?;
        let made = self.provided().create(&PostParams::default(), &provided).await;
        made.context("create the AzureMachine")?;
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::now());
        let theirs = json!({ "status": { "ready": is_said, "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": now },
            { "type": "VMRunning", "status": "True", "lastTransitionTime": now },
        ] } });
        let patch = Patch::Merge(&theirs);
        self.provided().patch_status(name, &PatchParams::default(), &patch).await?;
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "prod" } },
            "spec": { "clusterName": "prod", "providerID": id,
                      "bootstrap": { "dataSecretName": "never-read" },
                      "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachine", "name": name } },
        });
        let machine = serde_json::from_value(machine)?;
        let made = self.machines().create(&PostParams::default(), &machine).await;
        made.context("create the Machine")?;
        if is_said {
            let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true },
                "conditions": [{ "type": "InfrastructureReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": now }] } });
            let patch = Patch::Merge(&status);
            self.machines().patch_status(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    fn put_vm(&self, vm: &str, wanted: Wanted<'_>) -> Result<()> {
        let group = format!("rg-{}", self.namespace);
        let base = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers");
        let arm = Arm::new(self.azure.clone());
        let nic = format!("{base}/Microsoft.Network/networkInterfaces/{vm}-nic");
        let subnet = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"
        );
        arm.put(&format!("{nic}?api-version=2024-05-01"), &json!({
            "location": "eastus",
            "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": subnet } } }] },
        }))?;
        let windows = wanted.os == "Windows";
        let mut profile = json!({ "computerName": vm, "adminUsername": "capi", "customData": "I2Nsb3VkLWNvbmZpZwo=" });
        if windows {
            profile["adminPassword"] = json!("x-Y-9-long-enough");
            profile["windowsConfiguration"] = json!({});
        } else {
            profile["linuxConfiguration"] = json!({ "disablePasswordAuthentication": true, "ssh": { "publicKeys": [{ "path": "/home/capi/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" }] } });
        }
        arm.put(&format!("{base}/Microsoft.Compute/virtualMachines/{vm}?api-version=2024-11-01"), &json!({
            "location": "eastus",
            "properties": {
                "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
                "storageProfile": {
                    "imageReference": { "publisher": "cncf-upstream", "offer": "capi", "sku": "ubuntu-2404", "version": "1.34.2" },
                    "osDisk": { "name": format!("{vm}-osdisk"), "createOption": "FromImage", "osType": wanted.os },
                },
                "osProfile": profile,
                "networkProfile": { "networkInterfaces": [{ "id": nic }] },
                "diagnosticsProfile": { "bootDiagnostics": { "enabled": wanted.console } },
            },
        }))?;
        Ok(())
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(
        &self,
        api: Api<DynamicObject>,
        name: &str,
        what: &str,
        is: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let condition = |object: Option<&DynamicObject>| object.is_some_and(&is);
        let found = tokio::time::timeout(FOREVER, await_condition(api, name, condition)).await;
        found.with_context(|| format!("waited in vain for {what}"))??.context("it is there")
    }

    /// Lets time pass until a Machine has a verdict.
    pub(crate) async fn verdict(&self, name: &str) -> Result<DynamicObject> {
        self.until(self.machines(), name, "the Machine to be seen", |it| {
            condition(it, "BootstrapSucceeded").is_some()
        })
        .await?;
        // The first look is due 45 s after the VM is there, with a little more for each.
        self.azure.advance(Duration::from_secs(70));
        self.until(self.machines(), name, "a verdict", |it| {
            condition(it, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        })
        .await
    }

    pub(crate) async fn reports(&self) -> Result<Vec<BootstrapReport>> {
        let api: Api<BootstrapReport> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(api.list(&ListParams::default()).await?.items)
    }
}

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one["type"] == kind)
}

/// The names of an object's conditions.
pub(crate) fn kinds(object: &DynamicObject) -> Vec<String> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| Some(one["type"].as_str()?.to_owned())).collect()
}
