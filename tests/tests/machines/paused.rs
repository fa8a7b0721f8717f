//! Paused objects: the controller observes them and does not write to them.

use bringup_end_to_end::TestBed;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_objects::cluster_api::NODE_BOOTSTRAP_SUCCEEDED;
use bringup_objects::report::CollectorState;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition, is_written};
use crate::conditions::FAILS;
use crate::definitions::serve_kind_only;
use crate::launch::Wanted;

/// Longer than the time until the first read is due.
const FIRST_LOOK: Duration = Duration::from_secs(70);

async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) -> Result<()> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

fn status<'a>(object: &'a DynamicObject, kind: &str) -> &'a str {
    condition(object, kind).and_then(|it| it["status"].as_str()).unwrap_or_default()
}

/// Waits until a Machine and the object behind it have the same status.
async fn until_both(cluster: &ManagementCluster, name: &str, wanted: &str) -> Result<()> {
    let says = |it: &DynamicObject| status(it, "BootstrapSucceeded") == wanted;
    cluster.until(cluster.machines(), name, &format!("{name}: {wanted}"), says).await?;
    let says = |it: &DynamicObject| status(it, NODE_BOOTSTRAP_SUCCEEDED) == wanted;
    cluster.until(cluster.provided(), name, &format!("behind {name}: {wanted}"), says).await?;
    Ok(())
}

/// Observes a machine of a paused cluster, and then resumes the cluster.
async fn pause_and_go_on(cluster: ManagementCluster, clusters: Api<DynamicObject>) -> Result<()> {
    // The API server's clock runs on, and Azure's evidence must not be older than the Machine.
    cluster.azure.advance(Duration::from_mins(3));
    merge(&clusters, "prod", json!({ "spec": { "paused": true } })).await?;
    cluster.launch(Wanted::linux("worker-1")).await?;
    // A controller that starts now sees the Machine and the Cluster at the same time, in any order.
    let cluster = cluster.observed();
    cluster.azure.advance(FIRST_LOOK);
    let reports = cluster.announced(1).await?;
    let verdict = reports[0].status.as_ref().context("a status")?;
    assert_eq!(reports[0].cause(), Some("BootstrapTokenInvalid"));
    let held = verdict.collectors.iter().find(|it| it.name == "conditions").context("said")?;
    assert_eq!(held.state, CollectorState::Disabled);
    // The detail names the Cluster: it is paused, or the observer had not seen it before the first read.
    assert!(held.detail.starts_with("not written for now: Cluster prod "), "{}", held.detail);
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    assert!(events.iter().any(|it| it.reason.as_deref() == Some("BootstrapFailed")), "{events:?}");
    for api in [cluster.machines(), cluster.provided(), clusters.clone()] {
        for object in api.list(&ListParams::default()).await?.items {
            assert!(!is_written(&object), "{object:?}");
        }
    }

    // The clock stands still: code that waits for the clock would wait for ever.
    merge(&clusters, "prod", json!({ "spec": { "paused": false } })).await?;
    until_both(&cluster, "worker-1", "False").await?;
    assert!(!is_written(&clusters.get("prod").await?));
    Ok(())
}

#[tokio::test]
async fn a_paused_cluster_is_observed_and_written_to_only_after_it_is_resumed() -> Result<()> {
    let builder = TestBed::builder().named("paused").scenario(FAILS).pace(Pace::Manual);
    let cluster = ManagementCluster::on(builder).await?;
    let clusters = cluster.clusters();
    pause_and_go_on(cluster, clusters).await
}

#[tokio::test]
async fn a_paused_cluster_of_v1beta1_alone_is_not_written_to_either() -> Result<()> {
    let cluster = ManagementCluster::own("paused-older", FAILS, Pace::Manual).await?;
    serve_kind_only(&cluster.client, "Cluster", "v1beta1").await?;
    let clusters = cluster.api("cluster.x-k8s.io", "v1beta1", "Cluster");
    pause_and_go_on(cluster, clusters).await
}

#[tokio::test]
async fn objects_with_the_paused_annotation_are_not_written_to() -> Result<()> {
    let cluster = ManagementCluster::new("annotated", FAILS).await?;
    for name in ["whole", "half"] {
        cluster.launch(Wanted::linux(name)).await?;
        until_both(&cluster, name, "Unknown").await?;
    }
    let paused = |value: Value| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": value } } });
    merge(&cluster.machines(), "whole", paused(json!(""))).await?;
    merge(&cluster.provided(), "half", paused(json!(""))).await?;
    cluster.azure.advance(FIRST_LOOK);
    cluster.announced(2).await?;
    assert_said(&cluster, "whole", ["Unknown", "Unknown"]).await?;
    assert_said(&cluster, "half", ["False", "Unknown"]).await?;

    merge(&cluster.machines(), "whole", paused(Value::Null)).await?;
    merge(&cluster.provided(), "half", paused(Value::Null)).await?;
    for name in ["whole", "half"] {
        until_both(&cluster, name, "False").await?;
    }
    Ok(())
}

/// Checks the statuses of a Machine and of the object behind it.
async fn assert_said(cluster: &ManagementCluster, name: &str, wanted: [&str; 2]) -> Result<()> {
    let machine = cluster.machines().get(name).await?;
    let behind = cluster.provided().get(name).await?;
    let said = [status(&machine, "BootstrapSucceeded"), status(&behind, NODE_BOOTSTRAP_SUCCEEDED)];
    assert_eq!(said, wanted, "{name}");
    Ok(())
}
