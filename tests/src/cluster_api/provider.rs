//! Stand-ins for the providers of Cluster API: the Azure provider, which creates VMs in the simulated Azure,
//! and the kubeadm provider, which provides a control plane and user data for all Machines.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bringup_azure_sim::simulator::Simulator;
use bringup_objects::cluster_api::NODE_BOOTSTRAP_SUCCEEDED;
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::SUBSCRIPTION;
use crate::arm::{Arm, cluster_api_vm};
use crate::nodes::NodeFollower;

/// Prevents the deletion of an AzureMachine before its VM is deleted.
const FINALIZER: &str = "azuremachine.infrastructure.cluster.x-k8s.io";

/// The workload cluster that the providers are responsible for.
pub struct WorkloadCluster {
    /// A client with all permissions.
    pub client: Client,
    /// The Azure in which VMs are created.
    pub azure: Simulator,
    /// The namespace of the cluster's objects.
    pub namespace: String,
    /// The name of the cluster, which is the prefix of all its machine names.
    pub name: String,
    /// The port of the workload cluster's API server.
    pub port: u16,
    /// The outcomes of the machines, in the order in which their VMs are created: the value of the tag
    /// `case`, which rules of the scenario match. Further VMs have no such tag.
    pub outcomes: Vec<&'static str>,
}

/// The running providers of one cluster, which stop when this value is dropped.
pub struct StandInProvider {
    task: JoinHandle<()>,
    error: watch::Receiver<String>,
    _nodes: NodeFollower,
}

impl Drop for StandInProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    AzureCluster,
    AzureMachine,
    KubeadmConfig,
    KubeadmControlPlane,
}

impl Kind {
    const ALL: [Self; 4] =
        [Self::AzureCluster, Self::AzureMachine, Self::KubeadmConfig, Self::KubeadmControlPlane];

    fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::AzureCluster => ("infrastructure", "v1beta1", "AzureCluster"),
            Self::AzureMachine => ("infrastructure", "v1beta1", "AzureMachine"),
            Self::KubeadmConfig => ("bootstrap", "v1beta2", "KubeadmConfig"),
            Self::KubeadmControlPlane => ("controlplane", "v1beta2", "KubeadmControlPlane"),
        };
        let group = format!("{group}.cluster.x-k8s.io");
        ApiResource::from_gvk(&GroupVersionKind::gvk(&group, version, kind))
    }
}

impl StandInProvider {
    /// Starts the providers, and the kubelets of machines that join.
    pub fn start(cluster: WorkloadCluster) -> Self {
        let prefix = format!("{}-", cluster.name);
        let nodes = NodeFollower::start(cluster.azure.clone(), cluster.client.clone(), &prefix);
        let (send, error) = watch::channel(String::new());
        let task = tokio::spawn(async move {
            if let Err(error) = provide(&cluster).await {
                send.send_replace(format!("{error:#}"));
            }
        });
        Self { task, error, _nodes: nodes }
    }

    /// Waits until the providers fail, and returns the error.
    pub async fn failure(&self) -> String {
        let mut error = self.error.clone();
        match error.wait_for(|error| !error.is_empty()).await {
            Ok(why) => why.clone(),
            Err(_) => "they have ended".to_owned(),
        }
    }
}

type Seen = (Kind, watcher::Result<Event<DynamicObject>>);

async fn provide(cluster: &WorkloadCluster) -> Result<()> {
    let watched = Kind::ALL.map(|kind| -> BoxStream<'static, Seen> {
        let events = watcher(cluster.api(kind), watcher::Config::default());
        events.map(move |event| (kind, event)).boxed()
    });
    let mut events = select_all(watched);
    let mut made = BTreeSet::new();
    while let Some((kind, event)) = events.next().await {
        let Ok(Event::InitApply(object) | Event::Apply(object)) = event else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut present = Some(object);
        while let Some(object) = present.take() {
            let done = cluster.reconcile(kind, &object, &mut made).await;
            match done {
                Ok(()) => {}
                // Another client has changed the object meanwhile.
                Err(error) if is_stale(&error) => {
                    present = cluster.api(kind).get_opt(&object.name_any()).await?;
                }
                Err(error) => {
                    return Err(error.context(format!("{kind:?} {}", object.name_any())));
                }
            }
        }
    }
    Ok(())
}

fn is_stale(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if [404, 409].contains(&status.code))
}

impl WorkloadCluster {
    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource())
    }

    fn now(&self) -> Time {
        Time(self.azure.clock().now())
    }

    async fn reconcile(
        &self,
        kind: Kind,
        object: &DynamicObject,
        made: &mut BTreeSet<String>,
    ) -> Result<()> {
        match kind {
            Kind::AzureCluster if object.data["status"]["ready"] != true => {
                let endpoint = json!({ "host": "127.0.0.1", "port": self.port });
                let spec = json!({ "spec": { "controlPlaneEndpoint": endpoint } });
                self.patch(kind, object, spec).await?;
                self.patch_status(kind, object, json!({
                    "ready": true,
                    "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": self.now() }],
                }))
                .await
            }
            Kind::KubeadmConfig if object.data["status"]["dataSecretName"].is_null() => {
                let secret = object.name_any();
                let status = json!({ "initialization": { "dataSecretCreated": true }, "dataSecretName": secret });
                self.patch_status(kind, object, status).await
            }
            Kind::KubeadmControlPlane if object.data["status"]["version"].is_null() => {
                let (replicas, version) =
                    (&object.data["spec"]["replicas"], &object.data["spec"]["version"]);
                self.patch_status(
                    kind,
                    object,
                    json!({
                        "initialization": { "controlPlaneInitialized": true },
                        "version": version, "replicas": replicas, "readyReplicas": replicas,
                        "availableReplicas": replicas, "upToDateReplicas": replicas,
                        "observedGeneration": object.metadata.generation,
                    }),
                )
                .await
            }
            Kind::AzureMachine if object.metadata.deletion_timestamp.is_some() => {
                self.unmake(object).await
            }
            Kind::AzureMachine => self.make(object, made).await,
            Kind::AzureCluster | Kind::KubeadmConfig | Kind::KubeadmControlPlane => Ok(()),
        }
    }

    /// Creates the VM of an AzureMachine that belongs to a Machine, and summarises its conditions in Ready,
    /// like the real provider.
    async fn make(&self, object: &DynamicObject, made: &mut BTreeSet<String>) -> Result<()> {
        let kind = Kind::AzureMachine;
        if !object.owner_references().iter().any(|owner| owner.kind == "Machine") {
            return Ok(());
        }
        if object.data["spec"]["providerID"].is_null() {
            let name = object.name_any();
            if !made.contains(&name) {
                self.put_vm(object, self.outcomes.get(made.len()).copied().unwrap_or_default())?;
                made.insert(name.clone());
            }
            let id = format!("azure://{}", self.vm(&name));
            let change =
                json!({ "metadata": { "finalizers": [FINALIZER] }, "spec": { "providerID": id } });
            return self.patch(kind, object, change).await;
        }
        let mut conditions =
            object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failure = conditions
            .iter()
            .find(|one| one["type"] == NODE_BOOTSTRAP_SUCCEEDED && one["status"] == "False");
        let mut ready =
            json!({ "type": "Ready", "status": "True", "lastTransitionTime": self.now() });
        if let Some(failure) = failure {
            ready["status"] = json!("False");
            for key in ["reason", "message", "severity"] {
                ready[key] = failure[key].clone();
            }
        }
        let present = conditions.iter().position(|one| one["type"] == "Ready");
        match present {
            Some(at) if conditions[at]["status"] == ready["status"] => return Ok(()),
            Some(at) => conditions[at] = ready,
            None => {
                let running = json!({ "type": "VMRunning", "status": "True", "lastTransitionTime": self.now() });
                conditions.extend([ready, running]);
            }
        }
        self.patch_status(kind, object, json!({ "ready": true, "conditions": conditions })).await
    }

    /// Deletes the VM, and removes the finalizer of its AzureMachine.
    async fn unmake(&self, object: &DynamicObject) -> Result<()> {
        let arm = Arm::new(self.azure.clone());
        let deleted = arm.delete(&self.vm(&object.name_any()))?;
        arm.finish(&deleted)?;
        let change = json!({ "metadata": { "finalizers": null } });
        self.patch(Kind::AzureMachine, object, change).await
    }

    fn providers(&self) -> String {
        format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{}/providers", self.name)
    }

    fn vm(&self, name: &str) -> String {
        format!("{}/Microsoft.Compute/virtualMachines/{name}", self.providers())
    }

    fn put_vm(&self, object: &DynamicObject, case: &str) -> Result<()> {
        let (name, spec) = (object.name_any(), &object.data["spec"]);
        let arm = Arm::new(self.azure.clone());
        let nic = arm.put_nic(&self.providers(), &format!("{name}-nic"))?;
        let mut vm = cluster_api_vm(&name, &nic);
        vm["tags"] = json!({ "case": case });
        let properties = &mut vm["properties"];
        properties["hardwareProfile"]["vmSize"] = spec["vmSize"].clone();
        let has_console = !spec["diagnostics"]["boot"].is_null();
        properties["diagnosticsProfile"]["bootDiagnostics"]["enabled"] = json!(has_console);
        arm.put(&self.vm(&name), &vm)?;
        for extension in spec["vmExtensions"].as_array().into_iter().flatten() {
            let wanted = extension["name"].as_str().context("an extension has a name")?;
            arm.put(
                &format!("{}/extensions/{wanted}", self.vm(&name)),
                &json!({
                    "name": wanted, "location": "eastus",
                    "properties": {
                        "publisher": extension["publisher"], "type": wanted,
                        "typeHandlerVersion": extension["version"], "settings": {},
                        "protectedSettings": extension["protectedSettings"],
                    },
                }),
            )?;
        }
        Ok(())
    }

    /// Updates an object, unless another client has changed it.
    async fn patch(&self, kind: Kind, object: &DynamicObject, mut change: Value) -> Result<()> {
        change["metadata"]["resourceVersion"] = json!(object.metadata.resource_version);
        let patch = Patch::Merge(&change);
        self.api(kind).patch(&object.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Like [`Self::patch`], for the status of the object.
    async fn patch_status(&self, kind: Kind, object: &DynamicObject, status: Value) -> Result<()> {
        let version = json!({ "resourceVersion": object.metadata.resource_version });
        let change = json!({ "metadata": version, "status": status });
        let patch = Patch::Merge(&change);
        self.api(kind).patch_status(&object.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }
}
