//! The part of the cluster that one test uses: a class, a pool, and their claims, Nodes and VMs.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::journal::Recorded;
use bringup_end_to_end::SUBSCRIPTION;
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_end_to_end::test_bed::azure_states;
use bringup_objects::NodeClaim;
use bringup_objects::flex::AzureFlexNodeClass;
use bringup_testbed::wait::{objects, until};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

const POOL: &str = "karpenter.sh/nodepool";

/// A pool, and the class of the same name.
pub(crate) struct Pool {
    pub(crate) karpenter: Arc<RealKarpenter>,
    pub(crate) client: Client,
    pub(crate) name: &'static str,
}

/// Adds the fields of one object to another.
fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

impl Pool {
    /// Makes a pool of these sizes in a region. `class` and `disruption` are further fields.
    pub(crate) async fn make(
        karpenter: &Arc<RealKarpenter>,
        name: &'static str,
        region: &str,
        sizes: &[&str],
        class: Value,
        disruption: Value,
    ) -> Result<Self> {
        let pool =
            Self { karpenter: karpenter.clone(), client: karpenter.bed.client.clone(), name };
        let mut spec = json!({
            "subscriptionID": SUBSCRIPTION,
            "location": region,
            "resourceGroup": format!("rg-{name}"),
            "subnetID": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/{region}/subnets/nodes"),
        });
        merge(&mut spec, class);
        let class = json!({
            "apiVersion": "flex.aks.azure.com/v1alpha1",
            "kind": "AzureFlexNodeClass",
            "metadata": { "name": name },
            "spec": spec,
        });
        pool.create(class).await?;
        let reference =
            json!({ "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": name });
        pool.create(node_pool(name, &reference, sizes, disruption)).await?;
        Ok(pool)
    }

    /// Creates a cluster-scoped object.
    pub(crate) async fn create(&self, object: Value) -> Result<DynamicObject> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let version = text("apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, &text("kind"));
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        let what = format!("create the {} {}", text("kind"), object["metadata"]["name"]);
        let object = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await.context(what)
    }

    pub(crate) async fn change_class(&self, spec: &Value) -> Result<()> {
        let classes: Api<AzureFlexNodeClass> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({ "spec": spec }));
        classes
            .patch(self.name, &PatchParams::default(), &patch)
            .await
            .context("change the class")?;
        Ok(())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// The spec of a pod of this pool.
    pub(crate) fn pod_spec(&self, gpus: u32) -> Value {
        let mut resources = json!({ "requests": { "cpu": "1", "memory": "1Gi" } });
        if gpus > 0 {
            resources["limits"] = json!({ "nvidia.com/gpu": gpus.to_string() });
        }
        self.spec_with(&resources)
    }

    fn spec_with(&self, resources: &Value) -> Value {
        json!({
            "nodeSelector": { "workload": self.name },
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "none", "resources": resources }],
        })
    }

    /// Makes a pod that only a node of this pool can run.
    pub(crate) async fn pod(&self, name: &str, gpus: u32) -> Result<()> {
        self.create_pod(name, self.pod_spec(gpus)).await
    }

    /// Makes a pod that fills most of an ordinary node.
    pub(crate) async fn large_pod(&self, name: &str) -> Result<()> {
        self.create_pod(name, self.spec_with(&json!({ "requests": { "cpu": "5" } }))).await
    }

    async fn create_pod(&self, name: &str, spec: Value) -> Result<()> {
        let pod = json!({ "metadata": { "name": name }, "spec": spec });
        let pod: Pod = serde_json::from_value(pod)?;
        self.pods().create(&PostParams::default(), &pod).await.context("make a pod")?;
        Ok(())
    }

    /// Waits until a pod runs, and returns its Node.
    pub(crate) async fn running(&self, pod: &str) -> Result<Node> {
        let is_on = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let config = Config::default().fields(&format!("metadata.name={pod}"));
        let what = format!("the pod {pod} to run");
        let found = self.until(self.pods(), config, &what, |pods: &[Pod]| {
            pods.iter().any(|pod| is_on(pod).is_some())
        });
        let name = found.await?.first().and_then(is_on).context("the pod is on a node")?;
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.get(&name).await.with_context(|| format!("get the Node {name}"))
    }

    /// Waits until objects are as wanted.
    pub(crate) async fn until<K>(
        &self,
        api: Api<K>,
        config: Config,
        what: &str,
        are: impl Fn(&[K]) -> bool,
    ) -> Result<Vec<K>>
    where
        K: kube::Resource<DynamicType = ()>
            + Clone
            + serde::Serialize
            + serde::de::DeserializeOwned
            + std::fmt::Debug
            + Send
            + 'static,
    {
        let what = format!("{what} (pool {})", self.name);
        Ok(until(what, objects(api, config), |all| are(all)).await?)
    }

    /// Waits until the claims of this pool are as wanted.
    pub(crate) async fn claims_until(
        &self,
        what: &str,
        are: impl Fn(&[NodeClaim]) -> bool,
    ) -> Result<Vec<NodeClaim>> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let mine = Config::default().labels(&format!("{POOL}={}", self.name));
        self.until(claims, mine, what, are).await
    }

    /// Waits until the Nodes of this pool are as wanted.
    pub(crate) async fn nodes_until(
        &self,
        what: &str,
        are: impl Fn(&[Node]) -> bool,
    ) -> Result<Vec<Node>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mine = Config::default().labels(&format!("{POOL}={}", self.name));
        self.until(nodes, mine, what, are).await
    }

    /// Waits until nothing is left: neither claims nor Nodes, and nothing in Azure.
    pub(crate) async fn empty(&self) -> Result<()> {
        self.claims_until("no claims", <[NodeClaim]>::is_empty).await?;
        self.nodes_until("no Nodes", <[Node]>::is_empty).await?;
        self.azure_until("nothing in Azure", |pool| pool.held().is_empty()).await
    }

    /// Waits until Azure is as wanted.
    pub(crate) async fn azure_until(&self, what: &str, is: impl Fn(&Self) -> bool) -> Result<()> {
        let what = format!("{what} (pool {})", self.name);
        let held = azure_states(&self.karpenter.bed.azure, |azure| self.held_in(azure));
        until(what, held, |_| is(self)).await?;
        Ok(())
    }

    /// The kinds and names of this pool's resources in Azure.
    pub(crate) fn held(&self) -> Vec<String> {
        self.karpenter.bed.azure.with(|azure| self.held_in(azure))
    }

    fn held_in(&self, azure: &mut Azure) -> Vec<String> {
        let group = format!("/resourcegroups/rg-{}/", self.name);
        let all = azure.resources();
        let mine = all.iter().filter(|one| one.id.to_ascii_lowercase().contains(&group));
        let names = mine.map(|one| one.id.split('/').skip(7).collect::<Vec<_>>().join("/"));
        names.collect()
    }

    /// Requests to Azure in the resource group of this pool, of one kind of operation.
    fn requests<T>(&self, operation: &str, read: impl Fn(&Recorded) -> T) -> Vec<T> {
        let group = format!("/resourcegroups/rg-{}/", self.name);
        self.karpenter.bed.azure.with(|azure| {
            let all = azure.journal().requests().iter().filter(|request| {
                request.operation == operation && request.path.to_ascii_lowercase().contains(&group)
            });
            all.map(read).collect()
        })
    }

    /// The times of the requests for VMs of this pool.
    pub(crate) fn attempts(&self) -> Vec<Timestamp> {
        self.requests("PutVm", |request| request.at)
    }

    /// How many requests for VMs of this pool Azure refused.
    pub(crate) fn refusals(&self) -> usize {
        let refused = self.requests("PutVm", |request| request.status == Some(409));
        refused.into_iter().filter(|refused| *refused).count()
    }

    /// The resources for which an operation was requested.
    pub(crate) fn requested(&self, operation: &str) -> BTreeSet<String> {
        let paths = self.requests(operation, |request| {
            request.path.split('?').next().unwrap_or_default().to_owned()
        });
        paths.into_iter().collect()
    }

    /// Whether each VM was requested once. Karpenter decides how many VMs there are: on a busy computer
    /// it sometimes creates two claims for one pod.
    pub(crate) fn each_vm_was_asked_for_once(&self) -> bool {
        self.attempts().len() == self.requested("PutVm").len()
    }
}

pub(crate) fn node_pool(name: &str, class: &Value, sizes: &[&str], disruption: Value) -> Value {
    let mut requirements = vec![
        json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] }),
    ];
    if !sizes.is_empty() {
        requirements.push(
            json!({ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": sizes }),
        );
    }
    let mut rules = json!({ "budgets": [{ "nodes": "100%" }], "consolidateAfter": "Never" });
    merge(&mut rules, disruption);
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "disruption": rules,
            "template": {
                "metadata": { "labels": { "workload": name } },
                "spec": { "nodeClassRef": class, "requirements": requirements, "expireAfter": "Never" },
            },
        },
    })
}

/// The value of a Node's label, empty if the label is missing.
pub(crate) fn label<'a>(node: &'a Node, name: &str) -> &'a str {
    node.labels().get(name).map_or("", String::as_str)
}

/// The largest number of attempts within one minute.
pub(crate) fn most_a_minute(attempts: &[Timestamp]) -> usize {
    let within = |from: &Timestamp| {
        let of_minute = attempts.iter().filter(|at| {
            *at >= from && from.duration_until(**at) < jiff::SignedDuration::from_mins(1)
        });
        of_minute.count()
    };
    attempts.iter().map(within).max().unwrap_or_default()
}
