//! The effect of Karpenter's writes on a condition that bringup sets on a real `NodeClaim`.
//!
//! Karpenter patches a claim's status with a JSON merge patch, which replaces the whole list of conditions
//! with
//! Karpenter's own list.

use bringup_testbed::{ControlPlane, CrdSet};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

#[tokio::test]
async fn a_stale_merge_patch_of_status_removes_a_condition_it_does_not_contain()
-> anyhow::Result<()> {
    let claims = node_claims().await?;
    let claim = launched_claim(&claims, "stale").await?;
    let karpenters_view = conditions(&claim);

    let claim = apply_verdict(&claims, "stale").await?;
    assert_eq!(types(&claim), ["Launched", "BootstrapSucceeded"]);

    let claim = merge_status(&claims, "stale", karpenters_view).await?;
    assert_eq!(types(&claim), ["Launched"]);
    Ok(())
}

#[tokio::test]
async fn a_merge_patch_of_status_keeps_a_condition_it_contains() -> anyhow::Result<()> {
    let claims = node_claims().await?;
    launched_claim(&claims, "fresh").await?;
    let claim = apply_verdict(&claims, "fresh").await?;

    let mut karpenters_view = conditions(&claim);
    karpenters_view.push(condition("Registered", "False"));
    let claim = merge_status(&claims, "fresh", karpenters_view).await?;
    assert_eq!(types(&claim), ["Launched", "BootstrapSucceeded", "Registered"]);
    Ok(())
}

async fn node_claims() -> anyhow::Result<Api<DynamicObject>> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = || ControlPlane::builder().crds([CrdSet::KarpenterAzure]).start();
    let control_plane = SHARED.get_or_try_init(start).await?;
    let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
    Ok(Api::all_with(control_plane.client(), &ApiResource::from_gvk(&kind)))
}

/// A NodeClaim in the state in which Karpenter leaves it after the request for a VM.
async fn launched_claim(claims: &Api<DynamicObject>, name: &str) -> anyhow::Result<DynamicObject> {
    let claim: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {
            "nodeClassRef": {
                "group": "karpenter.azure.com",
                "kind": "AKSNodeClass",
                "name": "default",
            },
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ],
        },
    }))?;
    claims.create(&PostParams::default(), &claim).await?;
    merge_status(claims, name, vec![condition("Launched", "True")]).await
}

async fn apply_verdict(claims: &Api<DynamicObject>, name: &str) -> anyhow::Result<DynamicObject> {
    let verdict = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "status": {"conditions": [condition("BootstrapSucceeded", "False")]},
    });
    let params = PatchParams::apply("bringup");
    Ok(claims.patch_status(name, &params, &Patch::Apply(verdict)).await?)
}

async fn merge_status(
    claims: &Api<DynamicObject>,
    name: &str,
    conditions: Vec<Value>,
) -> anyhow::Result<DynamicObject> {
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let params =
        PatchParams { field_manager: Some("karpenter".to_owned()), ..PatchParams::default() };
    Ok(claims.patch_status(name, &params, &patch).await?)
}

fn condition(type_: &str, status: &str) -> Value {
    json!({
        "type": type_,
        "status": status,
        "reason": type_,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn conditions(claim: &DynamicObject) -> Vec<Value> {
    let conditions = claim.data["status"]["conditions"].as_array();
    conditions.cloned().unwrap_or_default()
}

fn types(claim: &DynamicObject) -> Vec<String> {
    conditions(claim)
        .iter()
        .filter_map(|condition| Some(condition["type"].as_str()?.to_owned()))
        .collect()
}
