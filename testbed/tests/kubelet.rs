//! The stand-in kubelet with a real API server.

use std::{collections::BTreeMap, time::Duration};

use bringup_testbed::{
    ControlPlane,
    kubelet::{Machine, Readiness, SigningRequest, StandInKubelet},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    coordination::v1::Lease,
    core::v1::{Node, Pod, Taint},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::json;
use tokio::time::timeout;

/// A wait that can never succeed should fail with a message.
const LIMIT: Duration = Duration::from_mins(5);

#[tokio::test]
async fn a_machine_that_joins_gets_request_node_and_lease_until_it_leaves() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder().crds([]).start().await?;
    let cluster = Cluster::new(&control_plane.client());
    let kubelet = StandInKubelet::new(control_plane.client());
    let unregistered = taint("karpenter.sh/unregistered");
    let machine = Machine {
        labels: BTreeMap::from([("agentpool".to_owned(), "flex".to_owned())]),
        taints: vec![unregistered.clone()],
        ..machine("aks-1")
    };

    kubelet.join(&machine, at(0)).await?;
    let node = cluster.nodes.get("aks-1").await?;
    let spec = node.spec.clone().unwrap_or_default();
    assert_eq!(spec.provider_id.as_deref(), Some("azure:///vm/aks-1"));
    assert_eq!(spec.taints, Some(vec![unregistered]));
    assert_eq!(node.labels()["agentpool"], "flex");
    assert_eq!(node.labels()["kubernetes.io/hostname"], "aks-1");
    assert_eq!(ready(&node), ("True".to_owned(), at(0)));
    let addresses = node.status.clone().and_then(|status| status.addresses);
    let addresses = addresses.unwrap_or_default();
    assert!(addresses.iter().any(|it| it.type_ == "InternalIP" && it.address == "10.1.0.4"));

    let request = cluster.requests.get("node-csr-aks-1").await?;
    assert_eq!(request.spec.username.as_deref(), Some("system:bootstrap:testbed"));
    assert!(is_approved(&request));

    let lease = cluster.leases.get("aks-1").await?;
    assert_eq!(lease.owner_references()[0].uid, node.uid().unwrap());
    assert_eq!(renewed(&lease), Some(at(0)));
    kubelet.heartbeat("aks-1", at(10)).await?;
    assert_eq!(renewed(&cluster.leases.get("aks-1").await?), Some(at(10)));

    kubelet.join(&machine, at(20)).await?;
    let again = cluster.nodes.get("aks-1").await?;
    assert_eq!(again.uid(), node.uid(), "joining twice makes no second Node");

    kubelet.leave("aks-1").await?;
    cluster.assert_holds(&[], &[]).await?;
    kubelet.leave("aks-1").await?;
    Ok(())
}

#[tokio::test]
async fn syncing_makes_the_cluster_match_the_list() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder().crds([]).start().await?;
    let cluster = Cluster::new(&control_plane.client());
    let kubelet = StandInKubelet::new(control_plane.client());
    cluster.create_foreign_node("not-ours").await?;

    let waiting = Machine { csr: SigningRequest::Pending, ..machine("waiting") };
    let silent = Machine { csr: SigningRequest::None, ..machine("silent") };
    let all = [machine("steady"), waiting, silent];
    kubelet.sync(&all, at(0)).await?;
    cluster
        .assert_holds(&["not-ours", "silent", "steady"], &["node-csr-steady", "node-csr-waiting"])
        .await?;
    let request = cluster.requests.get("node-csr-waiting").await?;
    assert!(!is_approved(&request));

    // One request is approved, one machine loses its network, one is deleted.
    let broken =
        Machine { ready: Readiness::NotReady("no network".to_owned()), ..machine("steady") };
    let changed = [broken, machine("waiting")];
    kubelet.sync(&changed, at(10)).await?;
    cluster
        .assert_holds(&["not-ours", "steady", "waiting"], &["node-csr-steady", "node-csr-waiting"])
        .await?;
    let node = cluster.nodes.get("steady").await?;
    assert_eq!(ready(&node), ("False".to_owned(), at(10)));
    kubelet.sync(&changed, at(20)).await?;
    let node = cluster.nodes.get("steady").await?;
    assert_eq!(ready(&node), ("False".to_owned(), at(10)));
    assert_eq!(renewed(&cluster.leases.get("steady").await?), Some(at(20)));

    // Another machine with the name of a former one gets a new Node.
    let replaced = Machine { provider_id: "azure:///vm/steady-2".to_owned(), ..machine("steady") };
    kubelet.sync(&[replaced], at(30)).await?;
    let replacement = cluster.nodes.get("steady").await?;
    assert_ne!(replacement.uid(), node.uid());

    kubelet.sync(&[], at(40)).await?;
    cluster.assert_holds(&["not-ours"], &[]).await?;
    Ok(())
}

#[tokio::test]
async fn controllers_sign_the_request_and_schedule_pods_to_the_node() -> anyhow::Result<()> {
    let control_plane =
        ControlPlane::builder().crds([]).with_controller_manager().with_scheduler().start().await?;
    let client = control_plane.client();
    let kubelet = StandInKubelet::new(client.clone());
    kubelet.join(&machine("aks-1"), Timestamp::now()).await?;

    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let signed = |request: Option<&CertificateSigningRequest>| {
        let status = request.and_then(|request| request.status.as_ref());
        status.is_some_and(|status| status.certificate.is_some())
    };
    timeout(LIMIT, await_condition(requests, "node-csr-aks-1", signed)).await??;

    let pods: Api<Pod> = Api::namespaced(client, "default");
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "pod"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let scheduled = |pod: Option<&Pod>| {
        let spec = pod.and_then(|pod| pod.spec.as_ref());
        spec.is_some_and(|spec| spec.node_name.as_deref() == Some("aks-1"))
    };
    timeout(LIMIT, await_condition(pods, "pod", scheduled)).await??;
    Ok(())
}

/// The objects that the stand-in writes.
struct Cluster {
    nodes: Api<Node>,
    leases: Api<Lease>,
    requests: Api<CertificateSigningRequest>,
}

impl Cluster {
    fn new(client: &Client) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), "kube-node-lease"),
            requests: Api::all(client.clone()),
        }
    }

    async fn create_foreign_node(&self, name: &str) -> anyhow::Result<()> {
        let node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        self.nodes.create(&PostParams::default(), &node).await?;
        Ok(())
    }

    /// Every node of the stand-in has a Lease, and no other node has one.
    async fn assert_holds(&self, nodes: &[&str], requests: &[&str]) -> anyhow::Result<()> {
        let all = ListParams::default();
        assert_eq!(names(&self.nodes.list(&all).await?.items), nodes);
        assert_eq!(names(&self.requests.list(&all).await?.items), requests);
        let leased: Vec<&str> = nodes.iter().copied().filter(|it| *it != "not-ours").collect();
        assert_eq!(names(&self.leases.list(&all).await?.items), leased);
        Ok(())
    }
}

fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        provider_id: format!("azure:///vm/{name}"),
        internal_ip: [10, 1, 0, 4].into(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        ready: Readiness::Ready,
        csr: SigningRequest::Approve,
    }
}

fn taint(key: &str) -> Taint {
    Taint { key: key.to_owned(), effect: "NoExecute".to_owned(), ..Taint::default() }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000 + seconds)
}

/// The status of the `Ready` condition, and its last transition.
fn ready(node: &Node) -> (String, Timestamp) {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    let ready = conditions.and_then(|all| all.iter().find(|it| it.type_ == "Ready"));
    let ready = ready.expect("every Node says whether it is ready");
    let since = ready.last_transition_time.as_ref();
    (ready.status.clone(), since.expect("and since when").0)
}

fn renewed(lease: &Lease) -> Option<Timestamp> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?;
    Some(renewed.0)
}

fn is_approved(request: &CertificateSigningRequest) -> bool {
    let conditions = request.status.as_ref().and_then(|it| it.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Approved"))
}
