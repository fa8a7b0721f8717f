//! A management cluster, and Machines in it.

use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::clock::Pace;
use bringup_controller::Controller;
use bringup_diagnosis::Signatures;
use bringup_diagnosis::signatures::SignatureFile;
pub(crate) use bringup_end_to_end::SUBSCRIPTION;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::test_bed::{Builder, Observer};
use bringup_objects::{BootstrapReport, MANAGER};
use bringup_runtime::effect_hook::EffectHook;
use bringup_testbed::wait::{polled, until, until_object};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// A namespace with a Cluster and its Machines, and usually an observer.
pub(crate) struct ManagementCluster {
    bed: TestBed,
    pub(crate) namespace: String,
    /// The API version of Machines.
    pub(crate) version: &'static str,
    observer: Option<Observer>,
}

impl Deref for ManagementCluster {
    type Target = TestBed;

    fn deref(&self) -> &TestBed {
        &self.bed
    }
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural)
}

impl ManagementCluster {
    /// A cluster on the shared control plane, with an observer.
    pub(crate) async fn new(name: &str, scenario: &str) -> Result<Self> {
        Ok(Self::unobserved(name, scenario).await?.observed())
    }

    /// The same with a clock that only the test moves.
    pub(crate) async fn with_manual_clock(name: &str, scenario: &str) -> Result<Self> {
        let bed = TestBed::builder().named(name).scenario(scenario).pace(Pace::Manual);
        Ok(Self::on(bed).await?.observed())
    }

    /// The same without an observer, by the wall clock.
    pub(crate) async fn unobserved(name: &str, scenario: &str) -> Result<Self> {
        Self::on(TestBed::builder().named(name).scenario(scenario)).await
    }

    /// A cluster on a control plane of its own, whose definitions the test may change; without an
    /// observer.
    pub(crate) async fn own(name: &str, scenario: &str, pace: Pace) -> Result<Self> {
        let bed = TestBed::builder().named(name).own_control_plane();
        Self::on(bed.scenario(scenario).pace(pace)).await
    }

    /// A cluster on a test bed with these options, without an observer.
    pub(crate) async fn on(builder: Builder) -> Result<Self> {
        let mut bed = builder.machines().without_nodes().start().await?;
        // bringup's operator allows reads in this subscription, but Azure does not.
        bed.settings.scopes.insert("11111111-0000-0000-0000-000000000000".parse()?);
        bed.settings.signatures = signatures()?;
        let namespace = bed.name().to_owned();
        let cluster = Self { bed, namespace, version: "v1beta2", observer: None };
        cluster.make_cluster().await?;
        Ok(cluster)
    }

    /// The same, with Machines of this version.
    pub(crate) fn with_version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The same, with a running observer.
    pub(crate) fn observed(self) -> Self {
        let client = self.client.clone();
        self.observed_as(client)
    }

    /// The same, with an observer that has the rights of this client. It replaces the one before.
    pub(crate) fn observed_as(mut self, client: Client) -> Self {
        drop(self.observer.take());
        self.observer = Some(self.bed.observe_with(client, EffectHook::default()));
        self
    }

    pub(crate) fn controller(&self) -> Result<&Controller> {
        let observer = self.observer.as_ref().context("there is an observer")?;
        Ok(&observer.controller)
    }

    /// Whether the controller has ended, which must never happen.
    pub(crate) fn is_finished(&self) -> bool {
        self.observer.as_ref().is_none_or(Observer::is_finished)
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
        let found = until_object(api, name, what, |object| object.is_some_and(&is));
        found.await?.context("the object exists")
    }

    /// Lets time pass until a Machine has a verdict.
    pub(crate) async fn verdict(&self, name: &str) -> Result<DynamicObject> {
        self.until(self.machines(), name, "the Machine to be seen", |it| {
            condition(it, "BootstrapSucceeded").is_some()
        })
        .await?;
        // The first read is due 45 s after the VM exists, with a little more for each VM.
        self.azure.advance(Duration::from_secs(70));
        self.until(self.machines(), name, "a verdict", |it| {
            condition(it, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        })
        .await
    }

    /// Waits until the controller has read the VM of that name and processed the response.
    pub(crate) async fn until_looked(&self, vm: &str) -> Result<()> {
        let path = format!("/{vm}?");
        let is_read = |azure: &mut Azure| {
            let mut all = azure.journal().requests().iter();
            all.any(|one| one.method == "GET" && one.path.contains(&path))
        };
        self.azure_when(&format!("a read of {vm}"), is_read, |is_read| *is_read).await?;
        // The observer runs in the same thread and has received the response.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits until this many reports are announced: by then everything else is written.
    pub(crate) async fn announced(&self, many: usize) -> Result<Vec<BootstrapReport>> {
        let reports = polled(async || self.reports().await);
        let are = |all: &Vec<BootstrapReport>| {
            all.iter().filter(|report| report.is_announced()).count() == many
        };
        Ok(until(format!("{many} announced reports"), reports, are).await?)
    }

    /// The reports on the Machines of this cluster.
    pub(crate) async fn reports(&self) -> Result<Vec<BootstrapReport>> {
        let api: Api<BootstrapReport> = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(api.list(&ListParams::default()).await?.items)
    }
}

/// The signatures that the operators of this controller configure.
fn signatures() -> Result<Signatures> {
    let own = json!({ "id": "contoso.license", "literal": "license server says no", "cause": "ConfigRejected", "rank": 20, "reference": "https://wiki.contoso.example/license" });
    let file: SignatureFile = serde_json::from_value(json!({ "version": 1, "signatures": [own] }))?;
    Ok(Signatures::try_from(file)?)
}

pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one["type"] == kind)
}

/// Whether bringup has ever written to an object.
pub(crate) fn is_written(object: &DynamicObject) -> bool {
    let writers = object.metadata.managed_fields.as_deref().unwrap_or_default();
    writers.iter().any(|one| one.manager.as_deref() == Some(MANAGER))
}

/// The types of an object's conditions.
pub(crate) fn kinds(object: &DynamicObject) -> Vec<String> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| Some(one["type"].as_str()?.to_owned())).collect()
}
