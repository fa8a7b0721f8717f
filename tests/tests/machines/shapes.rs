//! Definitions whose schemas and versions are not the newest.

use bringup_azure_sim::clock::Pace;
use bringup_testbed::wait::{polled, until};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_objects::cluster_api::{NODE_BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition, kinds};
use crate::conditions::FAILS;
use crate::definitions::{edit, serve_only};
use crate::launch::Wanted;

/// Longer than the interval after which bringup reads the definitions again.
const LATER: Duration = Duration::from_mins(6);

/// Waits until the API server publishes that the conditions of an `AzureMachine` are a map.
async fn until_published(client: &Client) -> Result<()> {
    let address = "/openapi/v3/apis/infrastructure.cluster.x-k8s.io/v1beta1";
    let list = "/properties/status/properties/conditions/x-kubernetes-list-type";
    let kinds_of_list = polled(async || {
        let request = http::Request::get(address).body(Vec::new())?;
        let document: Value = client.request(request).await?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        let is_it = |schema: &&Value| {
            let kind = schema.pointer("/x-kubernetes-group-version-kind/0/kind");
            kind == Some(&json!("AzureMachine"))
        };
        let schema = schemas.into_iter().flat_map(|all| all.values()).find(is_it);
        anyhow::Ok(schema.and_then(|it| it.pointer(list)).cloned())
    });
    let is_map = |kind: &Option<Value>| *kind == Some(json!("map"));
    until("the schema of AzureMachine", kinds_of_list, is_map).await?;
    Ok(())
}

/// Gives the conditions of an `AzureMachine` the new schema. The schema preserves unknown fields, so that
/// they show if any client writes them.
async fn renew(client: &Client) -> Result<()> {
    let text = json!({ "type": "string" });
    let conditions = json!({
        "type": "array", "maxItems": 32,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": text, "status": text, "reason": text, "message": text,
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    });
    let schema = "/schema/openAPIV3Schema/properties/status/properties/conditions";
    edit(client, "azuremachines.infrastructure.cluster.x-k8s.io", |versions| {
        for version in versions {
            if let Some(known) = version.pointer_mut(schema) {
                known.clone_from(&conditions);
            }
        }
    })
    .await?;
    until_published(client).await
}

fn is_down(object: &DynamicObject, kind: &str, severity: Option<&str>) -> bool {
    condition(object, kind).is_some_and(|it| {
        it["status"] == "False" && it.get("severity").and_then(Value::as_str) == severity
    })
}

#[tokio::test]
async fn test_06_an_azure_machine_of_the_new_shape_gets_a_condition_without_severity() -> Result<()>
{
    let cluster = ManagementCluster::own("renewed", FAILS, Pace::Real).await?;
    renew(&cluster.client).await?;
    let cluster = cluster.observed();
    cluster.launch(Wanted::linux("worker-1")).await?;
    cluster.verdict("worker-1").await?;
    let is = |it: &DynamicObject| is_down(it, NODE_BOOTSTRAP_SUCCEEDED, None);
    let provided = cluster.until(cluster.provided(), "worker-1", "the new shape", is).await?;
    assert_eq!(kinds(&provided), ["Ready", "VMRunning", NODE_BOOTSTRAP_SUCCEEDED]);
    let ours = condition(&provided, NODE_BOOTSTRAP_SUCCEEDED).context("ours")?;
    assert_eq!(ours["reason"], "BootstrapTokenInvalid");
    assert!(ours["message"].as_str().is_some_and(|text| !text.is_empty()));
    Ok(())
}

#[tokio::test]
async fn test_06_a_definition_that_changes_later_is_noticed() -> Result<()> {
    let cluster = ManagementCluster::own("changed", FAILS, Pace::Real).await?.observed();
    cluster.launch(Wanted::linux("worker-1")).await?;
    cluster.verdict("worker-1").await?;
    let old = |it: &DynamicObject| is_down(it, NODE_BOOTSTRAP_SUCCEEDED, Some("Error"));
    cluster.until(cluster.provided(), "worker-1", "the old shape", old).await?;
    renew(&cluster.client).await?;
    cluster.azure.advance(LATER);
    let new = |it: &DynamicObject| is_down(it, NODE_BOOTSTRAP_SUCCEEDED, None);
    let provided = cluster.until(cluster.provided(), "worker-1", "the new shape", new).await?;
    assert_eq!(kinds(&provided), ["Ready", "VMRunning", NODE_BOOTSTRAP_SUCCEEDED]);
    Ok(())
}

/// Writes a condition of another controller, as controllers of Cluster API do where the list is atomic.
async fn write_theirs(api: &Api<DynamicObject>, name: &str, round: usize) -> Result<()> {
    loop {
        let object = api.get(name).await?;
        let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
        let mut all = all.cloned().unwrap_or_default();
        all.retain(|one| one["type"] != "Theirs");
        all.push(json!({ "type": "Theirs", "status": "False", "severity": "Info", "reason": format!("Round{round}"), "message": "theirs", "lastTransitionTime": "2026-01-01T00:00:00Z" }));
        let body = json!({ "metadata": { "resourceVersion": object.metadata.resource_version }, "status": { "conditions": all } });
        match api.patch_status(name, &PatchParams::default(), &Patch::Merge(&body)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => tokio::task::yield_now().await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The number of foreign writes during bringup's writes.
const ROUNDS: usize = 60;

#[tokio::test]
async fn machines_of_v1beta1_alone_are_observed_and_written_as_that_version_has_it() -> Result<()> {
    let cluster = ManagementCluster::own("older", FAILS, Pace::Real).await?;
    let client = cluster.client.clone();
    serve_only(&client, "v1beta1").await?;
    let mut cluster = cluster.with_version("v1beta1").observed();
    cluster.launch(Wanted::linux("worker-1")).await?;
    let machines = cluster.machines();
    let they = async {
        for round in 0..ROUNDS {
            write_theirs(&machines, "worker-1", round).await?;
        }
        anyhow::Ok(())
    };
    let (theirs, ours) = tokio::join!(they, cluster.verdict("worker-1"));
    theirs?;
    ours?;
    let is = |it: &DynamicObject| is_down(it, "BootstrapSucceeded", Some("Error"));
    let machine = cluster.until(machines.clone(), "worker-1", "the old shape", is).await?;
    let mut all = kinds(&machine);
    all.sort_unstable();
    assert_eq!(all, ["BootstrapSucceeded", "InfrastructureReady", "Theirs", REPLACEMENT_USEFUL]);
    let theirs = condition(&machine, "Theirs").context("theirs")?;
    assert_eq!(theirs["reason"], format!("Round{}", ROUNDS - 1));
    assert_eq!(theirs["severity"], "Info");
    let ours = condition(&machine, "BootstrapSucceeded").context("ours")?;
    assert_eq!(ours["reason"], "BootstrapTokenInvalid");
    let behind = |it: &DynamicObject| is_down(it, NODE_BOOTSTRAP_SUCCEEDED, Some("Error"));
    cluster.until(cluster.provided(), "worker-1", "the same behind it", behind).await?;
    let report = cluster.reports().await?.pop().context("a report")?;
    assert_eq!(report.spec.target_ref.api_version, "cluster.x-k8s.io/v1beta1");

    // Cluster API is upgraded. No webhook converts the older objects here, so the test deletes them
    // first.
    machines.delete("worker-1", &DeleteParams::default()).await?;
    serve_only(&client, "v1beta2").await?;
    cluster.version = "v1beta2";
    cluster.launch(Wanted::linux("worker-2")).await?;
    let machine = cluster.verdict("worker-2").await?;
    let ours = condition(&machine, "BootstrapSucceeded").context("ours")?;
    assert_eq!((ours.get("severity"), &ours["observedGeneration"]), (None, &json!(1)));
    let writers = machine.metadata.managed_fields.unwrap_or_default();
    let applies = writers.iter().any(|one| one.operation.as_deref() == Some("Apply"));
    assert!(applies, "each entry has its own writer");
    Ok(())
}

#[tokio::test]
async fn a_version_that_is_not_served_any_more_is_left_for_the_one_that_is() -> Result<()> {
    let mut cluster = ManagementCluster::own("lowered", FAILS, Pace::Real).await?.observed();
    let client = cluster.client.clone();
    cluster.launch(Wanted::linux("before")).await?;
    cluster.verdict("before").await?;
    serve_only(&client, "v1beta1").await?;
    cluster.version = "v1beta1";
    cluster.launch(Wanted::linux("after")).await?;
    cluster.verdict("after").await?;
    let is = |it: &DynamicObject| is_down(it, "BootstrapSucceeded", Some("Error"));
    cluster.until(cluster.machines(), "after", "the old shape", is).await?;
    assert_eq!(cluster.machines().list(&ListParams::default()).await?.items.len(), 2);
    Ok(())
}
