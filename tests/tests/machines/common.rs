//! A management cluster, and machines in it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure::{Arm as Client_, Cloud};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::Controller;
use bringup_diagnosis::Signatures;
use bringup_diagnosis::signatures::SignatureFile;
use bringup_objects::report::definition;
use bringup_objects::{BootstrapReport, MANAGER};
use bringup_observe::Settings;
use bringup_runtime::health::Health;
use bringup_runtime::metrics::Metrics;
use bringup_testbed::{ControlPlane, CrdSet};
use bringup_world::stage::SimulatedClock;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(4);

/// The control plane that all tests here share.
pub(crate) async fn plane() -> Result<&'static ControlPlane> {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE.get_or_try_init(own_plane).await
}

/// A control plane for one test, which may change its definitions.
pub(crate) async fn own_plane() -> Result<ControlPlane> {
    let sets = [CrdSet::KarpenterAzure, CrdSet::ClusterApi, CrdSet::ClusterApiAzure];
    let plane = ControlPlane::builder().crds(sets).start().await?;
    plane.install_definitions([definition()]).await?;
    Ok(plane)
}

/// A namespace with a cluster, an Azure of its own, and mostly a controller.
pub(crate) struct Ground {
    pub(crate) client: Client,
    pub(crate) azure: Simulator,
    pub(crate) namespace: String,
    /// The version of Machines.
    pub(crate) version: &'static str,
    /// Of the observer.
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    task: Option<JoinHandle<()>>,
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural)
}

impl Ground {
    pub(crate) async fn new(name: &str, text: &str) -> Result<Self> {
        Self::paced(name, text, Pace::Real).await
    }

    /// The same with a clock that moves otherwise, from now on.
    pub(crate) async fn paced(name: &str, text: &str, pace: Pace) -> Result<Self> {
        Self::made(plane().await?, name, text, pace, "v1beta2").await?.observed()
    }

    /// The same on a control plane of its own, where Machines are served in a version.
    pub(crate) async fn on(
        plane: &ControlPlane,
        name: &str,
        text: &str,
        version: &'static str,
    ) -> Result<Self> {
        Self::made(plane, name, text, Pace::Real, version).await?.observed()
    }

    /// The same, with a running observer.
    pub(crate) fn observed(self) -> Result<Self> {
        let client = self.client.clone();
        self.observed_as(client)
    }

    /// The same, with an observer that has the rights of this client.
    pub(crate) fn observed_as(mut self, client: Client) -> Result<Self> {
        let name = &self.namespace;
        let clock = Arc::new(SimulatedClock(self.azure.clone()));
        let arm = Client_::new(
            Cloud::Public.endpoint(),
            Arc::new(AnyToken("observer")),
            Arc::new(InProcess::new(self.azure.clone())),
            clock.clone(),
        );
        let mut settings = Settings::new(&format!("bringup-{name}"), "test-0");
        settings.machines = true;
        settings.scopes = bringup_world::scopes();
        // Allowed to be read by its operator, and not by Azure.
        settings.scopes.insert("11111111-0000-0000-0000-000000000000".parse()?);
        settings.only_namespace = Some(name.to_owned());
        settings.signatures = signatures()?;
        let controller = Controller::new(settings, client, arm, clock);
        self.health = controller.health().clone();
        self.metrics = controller.metrics().clone();
        self.task = Some(tokio::spawn(async move { controller.observe().await }));
        Ok(self)
    }

    /// Another controller takes the place of the first.
    pub(crate) fn observed_again(mut self, client: Client) -> Result<Self> {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.observed_as(client)
    }

    /// Whether the controller has ended, which it never should.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The same, without an observer.
    pub(crate) async fn unobserved(name: &str, text: &str) -> Result<Self> {
        Self::made(plane().await?, name, text, Pace::Real, "v1beta2").await
    }

    /// The same on a control plane of its own, with a clock of its own, without an observer.
    pub(crate) async fn made(
        plane: &ControlPlane,
        name: &str,
        text: &str,
        pace: Pace,
        version: &'static str,
    ) -> Result<Self> {
        let client = plane.client();
        let mut scenario = scenario::parse(name, text)?;
        // The API server goes by the wall's clock: it has to be about the same time there.
        scenario.start = jiff::Timestamp::now();
        let azure = Simulator::new(scenario, pace, jiff::Timestamp::now());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for one in [name.to_owned(), format!("bringup-{name}")] {
            let namespace = json!({ "metadata": { "name": one } });
            namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        }
        let (health, metrics, namespace) = (Health::default(), Metrics::default(), name.to_owned());
        let ground = Self { client, azure, namespace, version, health, metrics, task: None };
        ground.make_cluster().await?;
        Ok(ground)
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = resource(group, version, kind);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) fn machines(&self) -> Api<DynamicObject> {
        self.api("cluster.x-k8s.io", self.version, "Machine")
    }

    pub(crate) fn provided(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureMachine")
    }

    pub(crate) fn pooled(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureMachinePoolMachine")
    }

    pub(crate) fn pools(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureMachinePool")
    }

    pub(crate) fn clusters(&self) -> Api<DynamicObject> {
        self.api("cluster.x-k8s.io", "v1beta2", "Cluster")
    }

    pub(crate) fn azure_clusters(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "AzureCluster")
    }

    async fn make_cluster(&self) -> Result<()> {
        let group = format!("rg-{}", self.namespace);
        let cluster = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "metadata": { "name": "prod", "labels": { "cluster.x-k8s.io/cluster-name": "prod" } },
            "spec": { "resourceGroup": group, "subscriptionID": SUBSCRIPTION, "location": "eastus",
                      "controlPlaneEndpoint": { "host": "prod.example", "port": 6443 } },
        });
        let cluster = serde_json::from_value(cluster)?;
        self.azure_clusters().create(&PostParams::default(), &cluster).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "prod" },
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "prod" },
                      "controlPlaneEndpoint": { "host": "prod.example", "port": 6443 } },
        });
        let cluster = serde_json::from_value(cluster)?;
        self.clusters().create(&PostParams::default(), &cluster).await?;
        Ok(())
    }

    /// A pool of the provider, which is a scale set.
    pub(crate) async fn make_pool(&self, name: &str, mode: &str) -> Result<()> {
        let template = json!({ "vmSize": "Standard_D4s_v5", "osDisk": { "osType": "Linux", "diskSizeGB": 128 } });
        let pool = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachinePool",
            "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "prod" } },
            "spec": { "location": "eastus", "orchestrationMode": mode, "template": template },
        });
        self.pools().create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
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

    /// Waits until the VM of that name was read, and what was read has been thought about.
    pub(crate) async fn until_looked(&self, vm: &str) {
        let mut changes = self.azure.changes();
        let is_read = || {
            self.azure.with(|azure| {
                let mut all = azure.journal().requests().iter();
                all.any(|one| one.method == "GET" && one.path.contains(&format!("/{vm}?")))
            })
        };
        while !is_read() {
            self.azure.changed(&mut changes).await;
        }
        // The caller is in the same thread and has its answer.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until so many reports have been announced: by then everything else has been written.
    pub(crate) async fn announced(&self, many: usize) -> Result<Vec<BootstrapReport>> {
        let wait = async {
            loop {
                let reports = self.reports().await?;
                if reports.iter().filter(|report| report.is_announced()).count() == many {
                    return Ok(reports);
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(FOREVER, wait).await.context("waited in vain for reports")?
    }

    pub(crate) async fn reports(&self) -> Result<Vec<BootstrapReport>> {
        let api: Api<BootstrapReport> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(api.list(&ListParams::default()).await?.items)
    }
}

/// Lines for operators of this controller only.
fn signatures() -> Result<Signatures> {
    let own = json!({ "id": "contoso.license", "literal": "license server says no", "cause": "ConfigRejected", "rank": 20, "reference": "https://wiki.contoso.example/license" });
    let file: SignatureFile = serde_json::from_value(json!({ "version": 1, "signatures": [own] }))?;
    Ok(Signatures::try_from(file)?)
}

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one["type"] == kind)
}

/// Whether we have ever written to an object.
pub(crate) fn is_written(object: &DynamicObject) -> bool {
    let writers = object.metadata.managed_fields.as_deref().unwrap_or_default();
    writers.iter().any(|one| one.manager.as_deref() == Some(MANAGER))
}

/// The names of an object's conditions.
pub(crate) fn kinds(object: &DynamicObject) -> Vec<String> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| Some(one["type"].as_str()?.to_owned())).collect()
}
