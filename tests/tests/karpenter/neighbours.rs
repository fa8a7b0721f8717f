//! Two Karpenters in one cluster.

use std::sync::Arc;

use anyhow::{Result, ensure};
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_objects::NodeClaim;
use bringup_objects::flex::AzureFlexMachine;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::growing::is;
use crate::pool::{Pool, node_pool};
use crate::regions::{ORDINARY, PLAIN};

/// Whether the provider ID of a claim has this scheme.
fn is_at(claim: &NodeClaim, scheme: &str) -> bool {
    let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
    id.is_some_and(|id| id.starts_with(scheme))
}

pub(crate) async fn two_karpenters_make_nodes_of_their_own_classes_and_leave_each_others_alone(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    karpenter.start_another_karpenter()?;
    let ours = Pool::make(&karpenter, "ours", PLAIN, &[ORDINARY], json!({}), json!({})).await?;
    let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "theirs" });
    let theirs = Pool { karpenter: karpenter.clone(), client: ours.client.clone(), name: "theirs" };
    theirs
        .create(json!({
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": { "name": "theirs" },
            "spec": {},
        }))
        .await?;
    theirs.create(node_pool("theirs", &class, &[], json!({}))).await?;
    let pod = json!({
        "metadata": { "name": "theirs-pod" },
        "spec": {
            "nodeSelector": { "karpenter.sh/nodepool": "theirs" },
            "containers": [{ "name": "main", "image": "none", "resources": { "requests": { "cpu": "1" } } }],
        },
    });
    let pod: Pod = serde_json::from_value(pod)?;
    theirs.pods().create(&PostParams::default(), &pod).await?;
    ours.pod("ours-pod", 0).await?;
    ours.running("ours-pod").await?;
    let launched = |claims: &[NodeClaim]| claims.iter().any(|claim| is(claim, "Launched"));
    let of_theirs =
        theirs.claims_until("a claim that the other Karpenter launched", launched).await?;
    let joined = |claims: &[NodeClaim]| claims.iter().any(|claim| is(claim, "Registered"));
    let of_ours = ours.claims_until("our claim with its node", joined).await?;
    ensure!(
        of_theirs.len() == 1 && of_ours.len() == 1,
        "{} and {}",
        of_theirs.len(),
        of_ours.len()
    );
    ensure!(is_at(&of_theirs[0], "kwok://") && is_at(&of_ours[0], "azure-flex://"));
    // Our provider got a request for one machine, and Azure for its VM.
    let machines: Api<AzureFlexMachine> = Api::all(ours.client.clone());
    let made: Vec<String> = machines
        .list(&ListParams::default())
        .await?
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    ensure!(made == [of_ours[0].name_any()], "{made:?}");
    ensure!(ours.attempts().len() == 1 && theirs.attempts().is_empty());

    // The deletion of their claims leaves ours alone.
    theirs.pods().delete("theirs-pod", &DeleteParams::default().grace_period(0)).await?;
    let pools: Api<bringup_objects::NodePool> = Api::all(ours.client.clone());
    pools.delete("theirs", &DeleteParams::default()).await?;
    theirs.claims_until("the end of their claims", <[NodeClaim]>::is_empty).await?;
    let kept = ours.claims_until("our claim", |claims: &[NodeClaim]| !claims.is_empty()).await?;
    ensure!(kept[0].uid() == of_ours[0].uid() && kept[0].metadata.deletion_timestamp.is_none());
    Ok(())
}
