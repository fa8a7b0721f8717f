//! Paused objects: the controller observes them and does not write to them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_objects::cluster_api::NODE_BOOTSTRAP_SUCCEEDED;
use bringup_objects::report::CollectorState;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{Ground, condition, is_written, own_plane, plane};
use crate::conditions::FAILS;
use crate::definitions::serve_kind_only;
use crate::launch::Wanted;

/// Longer than the first look takes to be due.
const FIRST_LOOK: Duration = Duration::from_secs(70);

async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) -> Result<()> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

fn status<'a>(object: &'a DynamicObject, kind: &str) -> &'a str {
    condition(object, kind).and_then(|it| it["status"].as_str()).unwrap_or_default()
}

/// Waits until a Machine and what is behind it say the same.
async fn until_both(ground: &Ground, name: &str, wanted: &str) -> Result<()> {
    let says = |it: &DynamicObject| status(it, "BootstrapSucceeded") == wanted;
    ground.until(ground.machines(), name, &format!("{name}: {wanted}"), says).await?;
    let says = |it: &DynamicObject| status(it, NODE_BOOTSTRAP_SUCCEEDED) == wanted;
    ground.until(ground.provided(), name, &format!("behind {name}: {wanted}"), says).await?;
    Ok(())
}

/// Observes a machine of a paused cluster, and lets that go on.
async fn pause_and_go_on(ground: Ground, clusters: Api<DynamicObject>) -> Result<()> {
    // The API server's clock goes on, and what Azure shows must not be older than the Machine.
    ground.azure.advance(Duration::from_mins(3));
    merge(&clusters, "prod", json!({ "spec": { "paused": true } })).await?;
    ground.launch(Wanted::linux("worker-1")).await?;
    // A controller that starts now sees the Machine and the Cluster at the same time, in any order.
    let ground = ground.observed()?;
    ground.azure.advance(FIRST_LOOK);
    let reports = ground.announced(1).await?;
    let verdict = reports[0].status.as_ref().context("a status")?;
    assert_eq!(reports[0].cause(), Some("BootstrapTokenInvalid"));
    let held = verdict.collectors.iter().find(|it| it.name == "conditions").context("said")?;
    assert_eq!(held.state, CollectorState::Disabled);
    // That it is paused; or that it was not seen yet, where the look was faster.
    assert!(held.detail.starts_with("not written for now: Cluster prod "), "{}", held.detail);
    let events: Api<Event> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    assert!(events.iter().any(|it| it.reason.as_deref() == Some("BootstrapFailed")), "{events:?}");
    for api in [ground.machines(), ground.provided(), clusters.clone()] {
        for object in api.list(&ListParams::default()).await?.items {
            assert!(!is_written(&object), "{object:?}");
        }
    }

    // The clock stands: whatever would wait for it, would wait for ever.
    merge(&clusters, "prod", json!({ "spec": { "paused": false } })).await?;
    until_both(&ground, "worker-1", "False").await?;
    assert!(!is_written(&clusters.get("prod").await?));
    Ok(())
}

#[tokio::test]
async fn a_paused_cluster_is_observed_and_not_written_to_and_written_to_when_it_goes_on()
-> Result<()> {
    let ground = Ground::made(plane().await?, "paused", FAILS, Pace::Manual, "v1beta2").await?;
    let clusters = ground.clusters();
    pause_and_go_on(ground, clusters).await
}

#[tokio::test]
async fn a_paused_cluster_of_v1beta1_alone_is_not_written_to_either() -> Result<()> {
    let plane = own_plane().await?;
    let ground = Ground::made(&plane, "paused-older", FAILS, Pace::Manual, "v1beta2").await?;
    serve_kind_only(&ground.client, "Cluster", "v1beta1").await?;
    let clusters = ground.api("cluster.x-k8s.io", "v1beta1", "Cluster");
    pause_and_go_on(ground, clusters).await
}

#[tokio::test]
async fn what_bears_the_annotation_is_not_written_to_as_long_as_it_does() -> Result<()> {
    let ground = Ground::new("annotated", FAILS).await?;
    for name in ["whole", "half"] {
        ground.launch(Wanted::linux(name)).await?;
        until_both(&ground, name, "Unknown").await?;
    }
    let paused = |value: Value| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": value } } });
    merge(&ground.machines(), "whole", paused(json!(""))).await?;
    merge(&ground.provided(), "half", paused(json!(""))).await?;
    ground.azure.advance(FIRST_LOOK);
    ground.announced(2).await?;
    assert_said(&ground, "whole", ["Unknown", "Unknown"]).await?;
    assert_said(&ground, "half", ["False", "Unknown"]).await?;

    merge(&ground.machines(), "whole", paused(Value::Null)).await?;
    merge(&ground.provided(), "half", paused(Value::Null)).await?;
    for name in ["whole", "half"] {
        until_both(&ground, name, "False").await?;
    }
    Ok(())
}

/// What a Machine and what is behind it say now.
async fn assert_said(ground: &Ground, name: &str, wanted: [&str; 2]) -> Result<()> {
    let machine = ground.machines().get(name).await?;
    let behind = ground.provided().get(name).await?;
    let said = [status(&machine, "BootstrapSucceeded"), status(&behind, NODE_BOOTSTRAP_SUCCEEDED)];
    assert_eq!(said, wanted, "{name}");
    Ok(())
}
