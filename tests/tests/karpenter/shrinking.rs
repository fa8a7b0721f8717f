//! Nodes that Karpenter deletes.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::NAMESPACE;
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_objects::report::BootstrapReport;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::pool::Pool;
use crate::regions::{BAD, CHANGING, ORDINARY, SHRINKING};

pub(crate) async fn a_node_of_a_class_that_has_changed_is_replaced(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let pool =
        Pool::make(&karpenter, "changing", CHANGING, &[ORDINARY], json!({}), json!({})).await?;
    let labels = json!({ "app": "changing" });
    let set = json!({
        "metadata": { "name": "changing" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pool.pod_spec(0) },
        },
    });
    let sets: Api<ReplicaSet> = Api::namespaced(pool.client.clone(), "default");
    sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
    let on = |pods: &[Pod]| -> Option<String> {
        let going = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        pods.iter().filter(going).find_map(|pod| pod.spec.as_ref()?.node_name.clone())
    };
    let mine = || Config::default().labels("app=changing");
    let pods = pool.until(pool.pods(), mine(), "a pod that runs", |pods| on(pods).is_some());
    let old = on(&pods.await?).context("the pod is on a node")?;

    pool.change_class(&json!({ "osDiskSizeGB": 256 })).await?;
    let moved = |pods: &[Pod]| on(pods).is_some_and(|node| node != old);
    let pods = pool.until(pool.pods(), mine(), "a pod on another node", moved).await?;
    let new = on(&pods).context("the pod is on a node")?;
    let only_new =
        |nodes: &[Node]| nodes.len() == 1 && nodes.iter().all(|node| node.name_any() == new);
    pool.nodes_until("the new Node alone", only_new).await?;
    let whole = |pool: &Pool| {
        let held = pool.held();
        held.len() == 3 && held.iter().all(|name| name.contains(&new))
    };
    pool.azure_until("the new VM with its NIC and disk alone", whole).await?;
    ensure!(pool.each_vm_was_asked_for_once(), "{:?}", pool.attempts());
    Ok(())
}

pub(crate) async fn an_unneeded_node_is_deleted_with_its_vm_nic_and_disk(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let at_once = json!({ "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s" });
    let pool =
        Pool::make(&karpenter, "shrinking", SHRINKING, &[ORDINARY], json!({}), at_once).await?;
    pool.pod("shrinking-pod", 0).await?;
    let node = pool.running("shrinking-pod").await?.name_any();
    let held = pool.held();
    for resource in [
        format!("disks/{node}-osdisk"),
        format!("networkInterfaces/{node}-nic"),
        format!("virtualMachines/{node}"),
    ] {
        ensure!(held.contains(&resource), "{held:?}");
    }
    pool.pods().delete("shrinking-pod", &DeleteParams::default()).await?;
    pool.empty().await?;
    ensure!(pool.each_vm_was_asked_for_once(), "{:?}", pool.attempts());
    Ok(())
}

pub(crate) async fn a_bad_image_ends_in_a_report_and_leaves_nothing(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let pool = Pool::make(&karpenter, "bad", BAD, &[ORDINARY], json!({}), json!({})).await?;
    pool.pod("bad-pod", 0).await?;
    let reports: Api<BootstrapReport> = Api::namespaced(pool.client.clone(), NAMESPACE);
    let of_pool = |report: &&BootstrapReport| {
        report.spec.target_ref.name.starts_with("bad-") && report.cause().is_some()
    };
    let told = |reports: &[BootstrapReport]| reports.iter().any(|one| of_pool(&one));
    let reports = pool.until(reports, Config::default(), "a report", told).await?;
    let report = reports.iter().find(of_pool).context("the report is there")?;
    ensure!(report.cause() == Some("KernelMismatch"), "{:?}", report.spec);
    // No more requests are sent, and nothing is left of the attempts.
    pool.pods().delete("bad-pod", &DeleteParams::default()).await?;
    pool.empty().await?;
    Ok(())
}
