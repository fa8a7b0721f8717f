//! Capacity that Azure does not have.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::NAMESPACE;
use bringup_end_to_end::real_karpenter::RealKarpenter;
use bringup_flex::backoff::Entry;
use bringup_objects::NodeClaim;
use bringup_objects::flex::LEDGER;
use bringup_provision::LedgerContent;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher::Config;
use serde_json::json;

use crate::pool::{Pool, label, most_a_minute};
use crate::regions::{H200, LATER, NEVER, ORDINARY, SCARCE};

/// The ledger's entry about refusals in a region, if any.
fn refused_in(objects: &[ConfigMap], region: &str) -> Option<Entry> {
    let content = LedgerContent::of(objects.first());
    let mark = format!("/{region}/");
    content.back_off.entries().find(|(key, _)| key.contains(&mark)).map(|(_, entry)| entry.clone())
}

/// Waits until the ledger's entry about a region is as wanted.
async fn remembered(
    pool: &Pool,
    region: &str,
    what: &str,
    is: impl Fn(&Entry) -> bool,
) -> Result<Entry> {
    let maps: Api<ConfigMap> = Api::namespaced(pool.client.clone(), NAMESPACE);
    let config = Config::default().fields(&format!("metadata.name={LEDGER}"));
    let found = pool.until(maps, config, what, |objects: &[ConfigMap]| {
        refused_in(objects, region).is_some_and(|entry| is(&entry))
    });
    refused_in(&found.await?, region).context("it is remembered")
}

pub(crate) async fn capacity_that_is_gone_is_asked_for_at_most_twice_a_minute(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let pool = Pool::make(&karpenter, "scarce", SCARCE, &[ORDINARY], json!({}), json!({})).await?;
    pool.pod("scarce-pod", 0).await?;
    let entry = remembered(&pool, SCARCE, "a no that is remembered", |_| true).await?;
    ensure!(entry.cause == "AllocationFailed", "{entry:?}");
    // The pod stays pending; only time shows that no request follows.
    let clock = karpenter.bed.azure.clock();
    clock.reach(entry.last + SignedDuration::from_mins(3)).await;
    let attempts = pool.attempts();
    ensure!(most_a_minute(&attempts) <= 2, "{attempts:?}");
    ensure!(attempts.len() <= 2, "it is asked for once an hour: {attempts:?}");
    // The claim is deleted, with all resources that were created for it.
    pool.claims_until("no claim", <[NodeClaim]>::is_empty).await?;
    pool.azure_until("nothing in Azure", |pool| pool.held().is_empty()).await?;
    let pod = pool.pods().get("scarce-pod").await?;
    ensure!(pod.spec.and_then(|spec| spec.node_name).is_none(), "there is no capacity");
    pool.pods().delete("scarce-pod", &DeleteParams::default()).await?;
    Ok(())
}

pub(crate) async fn hunting_takes_capacity_that_appears_in_one_region_and_waits_on_in_the_other(
    karpenter: Arc<RealKarpenter>,
) -> Result<()> {
    let hunting = || json!({ "hunting": { "enabled": true, "maxAttemptsPerHour": 12 } });
    let later = Pool::make(&karpenter, "later", LATER, &[H200], hunting(), json!({})).await?;
    let never = Pool::make(&karpenter, "never", NEVER, &[H200], hunting(), json!({})).await?;
    later.pod("later-pod", 8).await?;
    never.pod("never-pod", 8).await?;
    let first = remembered(&later, LATER, "a first no", |_| true).await?;
    remembered(&never, NEVER, "a first no", |_| true).await?;
    karpenter.bed.azure.with(|azure| azure.lift_capacity_limit(LATER, H200));

    let node = later.running("later-pod").await?;
    ensure!(label(&node, "topology.kubernetes.io/region") == LATER, "{:?}", node.metadata.labels);
    ensure!(later.attempts().len() == 2, "{:?}", later.attempts());
    // The second request was sent when its time had come, and not before.
    let second = later.attempts()[1];
    ensure!(second >= first.until, "asked at {second}, and not after {}", first.until);

    // In the other region the attempts continue as usual: the pause doubles, and no request is sent
    // within it.
    let again = |entry: &Entry| entry.times == 2 && entry.asking.is_none();
    let entry = remembered(&never, NEVER, "a second no", again).await?;
    ensure!(entry.last.duration_until(entry.until) == SignedDuration::from_mins(4), "{entry:?}");
    ensure!(never.attempts().len() == 2, "{:?}", never.attempts());
    let all = [later.attempts(), never.attempts()].concat();
    ensure!(most_a_minute(&all) <= 2, "{all:?}");
    never.pods().delete("never-pod", &DeleteParams::default()).await?;
    Ok(())
}
