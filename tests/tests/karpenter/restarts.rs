//! bringup or Karpenter is killed and started again, at each moment of a machine's life.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_objects::NodeClaim;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::growing::is;
use crate::pool::Pool;
use crate::regions::{ORDINARY, PLAIN};

#[derive(Debug, Clone, Copy)]
enum Who {
    Bringup,
    Karpenter,
}

/// What has just happened to the latest machine.
#[derive(Debug, Clone, Copy)]
enum Moment {
    ClaimMade,
    NicAsked,
    VmAsked,
    Launched,
    NodeThere,
}

/// The kills while machines are created: one machine for each.
const COMING: [(Who, Moment); 10] = [
    (Who::Bringup, Moment::ClaimMade),
    (Who::Karpenter, Moment::ClaimMade),
    (Who::Bringup, Moment::NicAsked),
    (Who::Karpenter, Moment::NicAsked),
    (Who::Bringup, Moment::VmAsked),
    (Who::Karpenter, Moment::VmAsked),
    (Who::Bringup, Moment::Launched),
    (Who::Karpenter, Moment::Launched),
    (Who::Bringup, Moment::NodeThere),
    (Who::Karpenter, Moment::NodeThere),
];

async fn restart(karpenter: &RealKarpenter, who: Who) -> Result<()> {
    match who {
        Who::Bringup => {
            karpenter.kill_controller();
            karpenter.start_controller().await
        }
        Who::Karpenter => {
            karpenter.kill_karpenter();
            karpenter.start_karpenter()
        }
    }
}

/// Waits until the last of `count` machines has reached a moment.
async fn reach(pool: &Pool, moment: Moment, count: usize) -> Result<()> {
    let what = format!("{moment:?} of machine {count}");
    match moment {
        Moment::ClaimMade => {
            pool.claims_until(&what, |claims: &[NodeClaim]| claims.len() >= count).await?;
        }
        Moment::NicAsked => {
            pool.azure_until(&what, |pool| pool.requested("PutNic").len() >= count).await?;
        }
        Moment::VmAsked => {
            pool.azure_until(&what, |pool| pool.requested("PutVm").len() >= count).await?;
        }
        Moment::Launched => {
            let launched = |claims: &[NodeClaim]| {
                claims.iter().filter(|claim| is(claim, "Launched")).count() >= count
            };
            pool.claims_until(&what, launched).await?;
        }
        Moment::NodeThere => {
            pool.nodes_until(&what, |nodes: &[Node]| nodes.len() >= count).await?;
        }
    }
    Ok(())
}

pub(crate) async fn a_kill_of_bringup_or_karpenter_at_any_moment_loses_nothing_and_makes_nothing_twice(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let at_once = json!({ "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s" });
    let pool = Pool::make(&karpenter, "killed", PLAIN, &[ORDINARY], json!({}), at_once).await?;
    for (index, (who, moment)) in COMING.into_iter().enumerate() {
        // Two such pods do not fit on one node.
        pool.large_pod(&format!("killed-{index}")).await?;
        reach(&pool, moment, index + 1).await?;
        restart(&karpenter, who).await?;
    }
    let mut nodes = BTreeSet::new();
    for index in 0..COMING.len() {
        nodes.insert(pool.running(&format!("killed-{index}")).await?.name_any());
    }
    ensure!(nodes.len() == COMING.len(), "{nodes:?}");
    ensure!(pool.each_vm_was_asked_for_once(), "{:?}", pool.attempts());
    // Karpenter deletes a node that it created without need.
    pool.claims_until("a claim for each pod", |claims: &[NodeClaim]| claims.len() == COMING.len())
        .await?;
    pool.azure_until("VM, NIC and disk of each", |pool| pool.held().len() == 3 * COMING.len())
        .await?;

    for index in 0..COMING.len() {
        pool.pods().delete(&format!("killed-{index}"), &DeleteParams::default()).await?;
    }
    let is_going = |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_some();
    let going = |claims: &[NodeClaim]| claims.iter().any(is_going);
    pool.claims_until("a claim that goes", going).await?;
    restart(&karpenter, Who::Karpenter).await?;
    pool.azure_until("a VM that goes", |pool| !pool.requested("DeleteVm").is_empty()).await?;
    restart(&karpenter, Who::Bringup).await?;
    let some_left = |pool: &Pool| pool.held().len() < 2 * COMING.len();
    pool.azure_until("half of them gone", some_left).await?;
    restart(&karpenter, Who::Bringup).await?;
    restart(&karpenter, Who::Karpenter).await?;
    pool.empty().await
}
