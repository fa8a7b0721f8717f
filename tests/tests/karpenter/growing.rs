//! Nodes that Karpenter adds.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_objects::NodeClaim;
use bringup_objects::condition::find;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::pool::{Pool, label, node_pool};
use crate::regions::{GPU, ORDINARY, PLAIN, SLOW, WITHOUT_QUOTA};

const SIZE: &str = "node.kubernetes.io/instance-type";

pub(crate) fn is(claim: &NodeClaim, condition: &str) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    find(conditions, condition).is_some_and(|one| one.status == "True")
}

fn provider_id(claim: &NodeClaim) -> Option<&str> {
    claim.status.as_ref()?.provider_id.as_deref()
}

pub(crate) async fn a_pending_pod_gets_a_node_of_the_cheapest_size_that_fits(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let pool = Pool::make(&karpenter, "plain", PLAIN, &[], json!({}), json!({})).await?;
    // The pods come one after the other: together they would share a node.
    pool.pod("plain-small", 0).await?;
    let small = pool.running("plain-small").await?;
    pool.pod("plain-gpu", 1).await?;
    let large = pool.running("plain-gpu").await?;
    ensure!(label(&small, SIZE) == ORDINARY, "a small pod is on {}", label(&small, SIZE));
    ensure!(label(&large, SIZE) == GPU, "a pod with a GPU is on {}", label(&large, SIZE));

    // Each pod has one node, initialized and known to Karpenter; no VM was requested twice.
    let all_initialized =
        |claims: &[NodeClaim]| claims.len() >= 2 && claims.iter().all(|one| is(one, "Initialized"));
    let claims = pool.claims_until("two claims that are initialized", all_initialized).await?;
    ensure!(pool.each_vm_was_asked_for_once(), "{:?}", pool.attempts());
    for node in [&small, &large] {
        let spec = node.spec.clone().unwrap_or_default();
        let id = spec.provider_id.unwrap_or_default();
        ensure!(id.starts_with("azure-flex:///subscriptions/"), "{id}");
        let claim = claims.iter().find(|claim| provider_id(claim) == Some(&id));
        let claim = claim.with_context(|| format!("no claim for {id}"))?;
        // A Node has the name of its VM: the claim's name and a suffix that no other cluster has.
        let (name, stem) = (node.name_any(), format!("{}-", claim.name_any()));
        ensure!(name.strip_prefix(&stem).is_some_and(|suffix| suffix.len() == 8), "{name}");
        let taints = spec.taints.unwrap_or_default();
        ensure!(taints.iter().all(|taint| !taint.key.starts_with("karpenter.sh/")), "{taints:?}");
    }
    // A node that has joined needs no token any more.
    let secrets: Api<Secret> = Api::namespaced(pool.client.clone(), "kube-system");
    let what = "no token of this pool";
    let config =
        kube::runtime::watcher::Config::default().fields("type=bootstrap.kubernetes.io/token");
    pool.until(secrets, config, what, |secrets: &[Secret]| {
        !secrets.iter().any(|secret| {
            let text = secret.data.as_ref().and_then(|data| data.get("description"));
            text.is_some_and(|text| String::from_utf8_lossy(&text.0).contains("plain-"))
        })
    })
    .await?;
    Ok(())
}

pub(crate) async fn a_quota_on_one_size_moves_the_pod_to_another(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let sizes = [ORDINARY, GPU];
    let pool = Pool::make(&karpenter, "quota", WITHOUT_QUOTA, &sizes, json!({}), json!({})).await?;
    pool.pod("quota-small", 0).await?;
    let node = pool.running("quota-small").await?;
    ensure!(label(&node, SIZE) == GPU, "the pod is on {}", label(&node, SIZE));
    ensure!(pool.refusals() == 1, "the size without quota was asked for {} times", pool.refusals());
    Ok(())
}

pub(crate) async fn a_slow_vm_in_one_pool_does_not_delay_another_pool(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let slow = Pool::make(&karpenter, "slow", SLOW, &[ORDINARY], json!({}), json!({})).await?;
    slow.pod("slow-pod", 0).await?;
    let launched = |claims: &[NodeClaim]| claims.iter().any(|one| provider_id(one).is_some());
    slow.claims_until("a claim whose VM is accepted", launched).await?;
    let fast = Pool::make(&karpenter, "fast", PLAIN, &[ORDINARY], json!({}), json!({})).await?;
    fast.pod("fast-pod", 0).await?;
    fast.running("fast-pod").await?;
    let registered = slow.claims_until("claims", |_| true).await?;
    ensure!(!registered.iter().any(|one| is(one, "Registered")), "the slow VM was not slow");
    ensure!(slow.each_vm_was_asked_for_once(), "{:?}", slow.attempts());
    Ok(())
}

pub(crate) async fn objects_of_another_karpenter_are_left_alone(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let ours = Pool::make(&karpenter, "ours", PLAIN, &[ORDINARY], json!({}), json!({})).await?;
    let class = json!({ "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "theirs" });
    let theirs = json!({
        "apiVersion": "karpenter.azure.com/v1beta1",
        "kind": "AKSNodeClass",
        "metadata": { "name": "theirs" },
        "spec": {},
    });
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": "theirs-1", "labels": { "karpenter.sh/nodepool": "theirs" } },
        "spec": {
            "nodeClassRef": class,
            "requirements": [{ "key": SIZE, "operator": "In", "values": [ORDINARY] }],
        },
    });
    let mut foreign = Vec::new();
    for object in [theirs, node_pool("theirs", &class, &[], json!({})), claim] {
        foreign.push(ours.create(object).await?);
    }
    // A pod that only the foreign pool could serve, and then one of our pool: once Karpenter has served
    // the second pod, it has seen the first.
    let lost = json!({
        "metadata": { "name": "theirs-pod" },
        "spec": {
            "nodeSelector": { "workload": "theirs" },
            "containers": [{ "name": "main", "image": "none" }],
        },
    });
    let lost: Pod = serde_json::from_value(lost)?;
    ours.pods().create(&kube::api::PostParams::default(), &lost).await?;
    ours.pod("ours-pod", 0).await?;
    ours.running("ours-pod").await?;

    for object in foreign {
        let types = object.types.clone().context("it has a kind")?;
        let kind = GroupVersionKind::try_from(types)?;
        let api: Api<DynamicObject> =
            Api::all_with(ours.client.clone(), &ApiResource::from_gvk(&kind));
        let now = api.get(&object.name_any()).await?;
        let told = || format!("{} was touched: {:?}", kind.kind, now.managed_fields());
        // bringup writes its observations to all claims; Karpenter must write nothing at all.
        let is_same = now.resource_version() == object.resource_version();
        let observed = kind.kind == "NodeClaim" && now.finalizers().is_empty();
        let by_karpenter =
            now.managed_fields().iter().any(|one| one.manager.as_deref() == Some("karpenter"));
        ensure!((is_same || observed) && !by_karpenter, told());
    }
    let claims: Api<NodeClaim> = Api::all(ours.client.clone());
    let theirs = ListParams::default().labels("karpenter.sh/nodepool=theirs");
    let claims = claims.list(&theirs).await?;
    ensure!(claims.items.len() == 1, "{} claims of their pool", claims.items.len());
    let on = ours.pods().get("theirs-pod").await?.spec.and_then(|spec| spec.node_name);
    ensure!(on.is_none(), "their pod is on {on:?}");
    Ok(())
}
