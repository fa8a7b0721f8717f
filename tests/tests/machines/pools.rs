//! Pools and Clusters: their conditions, and what happens when bringup may not read them or their
//! definitions are missing.

use bringup_testbed::wait::{in_time, until_object};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_runtime::rights::{Needed, needed};
use bringup_testbed::CrdSet;
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::common::{ManagementCluster, SUBSCRIPTION, condition, is_written};
use crate::conditions::FAILS;
use crate::launch::{Form, Wanted};

fn is_failed(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

fn is_seen(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some()
}

/// A scenario in which the bootstrap fails after seconds, and the extension reports the failure.
fn fails() -> String {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";
    let script =
        json!({ "ends": { "exitCode": 31, "lasts": "1s", "json": "absent", "output": waited } });
    let boot = json!({ "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s", "script": script });
    json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string()
}

/// Writes a condition to a pool as the provider does, and returns the pool.
async fn report_condition(
    cluster: &ManagementCluster,
    pool: &str,
    kind: &str,
    severity: &str,
    reason: &str,
) -> Result<DynamicObject> {
    // The provider uses the clock of the API server, which runs on.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let told = json!({
        "type": kind, "status": "False", "severity": severity, "reason": reason,
        "message": "scalesets failed to create or update", "lastTransitionTime": now,
    });
    let patch = Patch::Merge(json!({ "status": { "conditions": [told] } }));
    Ok(cluster.pools().patch_status(pool, &PatchParams::default(), &patch).await?)
}

/// The number of reads of a scale set's instances.
fn looks(cluster: &ManagementCluster, set: &str) -> usize {
    cluster.azure.with(|azure| {
        let all = azure.journal().requests().iter();
        let of_set = all.filter(|one| one.method == "GET" && one.path.contains(&format!("/{set}")));
        of_set.filter(|one| one.path.contains("instanceView")).count()
    })
}

#[tokio::test]
async fn a_failure_that_a_pool_reports_is_judged_at_once_and_the_pool_is_never_written_to()
-> Result<()> {
    let cluster = ManagementCluster::with_manual_clock("pools", &fails()).await?;
    let pools = [
        ("uniform", Form::Uniform, "BootstrapSucceeded", "Error", "Failed"),
        // The provider gives this condition the severity Info.
        ("flexible", Form::Flexible, "ScaleSetRunning", "Info", "ScaleSetProvisionFailed"),
    ];
    for (name, form, ..) in pools {
        let mode = if form == Form::Uniform { "Uniform" } else { "Flexible" };
        cluster.make_pool(name, mode).await?;
        let extensions = &["CustomScript"][..];
        // The console is off.
        let wanted = Wanted { form, extensions, console: false, ..Wanted::linux(name) };
        cluster.launch(wanted).await?;
        cluster.until(cluster.machines(), name, "the Machine to be seen", is_seen).await?;
    }
    // Both machines have failed, and the first read is not due yet.
    cluster.azure.advance(Duration::from_secs(20));
    for (name, _, kind, severity, reason) in pools {
        // A condition that the provider writes while it creates the instances triggers no read.
        report_condition(&cluster, name, "ScaleSetDesiredReplicas", "Info", "ScaleSetScaleUp")
            .await?;
        assert_eq!(looks(&cluster, name), 0, "there is no reason to read {name} yet");
        let told = report_condition(&cluster, name, kind, severity, reason).await?;
        let machine = cluster.until(cluster.machines(), name, "a verdict", is_failed).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], "BootstrapTokenInvalid", "{verdict}");
        let behind = |it: &DynamicObject| {
            condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        };
        cluster.until(cluster.pooled(), name, "the same on its object", behind).await?;
        let pool = cluster.pools().get(name).await?;
        assert!(!is_written(&pool), "{pool:?}");
        assert_eq!(pool.metadata.resource_version, told.metadata.resource_version);
    }
    Ok(())
}

/// Deletes a definition, with all objects of its kind.
async fn remove(cluster: &ManagementCluster, name: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let uid = definitions.get(name).await?.metadata.uid.context("a uid")?;
    definitions.delete(name, &DeleteParams::default()).await?;
    let is_deleted = |it: Option<&CustomResourceDefinition>| {
        it.and_then(|it| it.metadata.uid.as_ref()) != Some(&uid)
    };
    until_object(definitions, name, format!("the end of {name}"), is_deleted).await?;
    Ok(())
}

#[tokio::test]
async fn missing_definitions_of_clusters_and_pools_are_noticed_when_they_are_installed()
-> Result<()> {
    let cluster = ManagementCluster::own("without", &fails(), Pace::Manual).await?;
    remove(&cluster, "clusters.cluster.x-k8s.io").await?;
    remove(&cluster, "azuremachinepools.infrastructure.cluster.x-k8s.io").await?;
    let cluster = cluster.observed();
    // Everything else continues to work.
    let extensions = &["CustomScript"][..];
    let pooled =
        Wanted { form: Form::Uniform, extensions, console: false, ..Wanted::linux("pooled") };
    cluster.launch(pooled).await?;
    cluster.until(cluster.machines(), "pooled", "the Machine to be seen", is_seen).await?;
    // Only its Cluster shows where this VM is.
    let site = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
        "metadata": { "name": "somewhere" },
        "spec": { "resourceGroup": "rg-without", "subscriptionID": SUBSCRIPTION, "location": "eastus" },
    });
    cluster.azure_clusters().create(&PostParams::default(), &serde_json::from_value(site)?).await?;
    let hidden = Wanted { is_said: false, cluster: "late", ..Wanted::linux("hidden") };
    cluster.launch(hidden).await?;
    assert_eq!(
        cluster.controller()?.health().degraded(),
        Vec::<String>::new(),
        "which is no trouble"
    );

    cluster.control_plane().install(CrdSet::ClusterApi).await?;
    cluster.control_plane().install(CrdSet::ClusterApiAzure).await?;
    let late = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "late" },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "somewhere" } },
    });
    assert!(!is_seen(&cluster.machines().get("hidden").await?), "its resource group is not known");
    cluster.clusters().create(&PostParams::default(), &serde_json::from_value(late)?).await?;
    cluster.until(cluster.machines(), "hidden", "the Cluster to be seen", is_seen).await?;

    cluster.azure.advance(Duration::from_secs(20));
    assert_eq!(looks(&cluster, "pooled"), 0, "there is no reason to read it yet");
    cluster.make_pool("pooled", "Uniform").await?;
    report_condition(&cluster, "pooled", "BootstrapSucceeded", "Error", "Failed").await?;
    cluster.until(cluster.machines(), "pooled", "the pool to be seen", is_failed).await?;
    Ok(())
}

fn rule(needed: &Needed) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![needed.group.to_owned()]),
        resources: Some(vec![needed.resource.to_owned()]),
        verbs: vec![needed.verb.to_owned()],
        ..PolicyRule::default()
    }
}

#[tokio::test]
async fn without_rights_on_clusters_and_pools_the_controller_names_them_and_goes_on() -> Result<()>
{
    let cluster = ManagementCluster::unobserved("unseen", FAILS).await?;
    let granted = needed(false, true).into_iter().filter(|needed| {
        !(needed.verb == "list" && ["clusters", "azuremachinepools"].contains(&needed.resource))
    });
    let rules = granted.map(|needed| rule(&needed)).collect();
    let metadata = ObjectMeta { name: Some("unseen".to_owned()), ..ObjectMeta::default() };
    let role = ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() };
    Api::all(cluster.client.clone()).create(&PostParams::default(), &role).await?;
    let user = cluster.control_plane().user("unseen", None).await?;
    cluster.control_plane().bind(&user, "unseen").await?;
    let cluster = cluster.observed_as(user.client());
    cluster.launch(Wanted::linux("worker-1")).await?;
    cluster.verdict("worker-1").await?;
    let health = cluster.controller()?.health();
    in_time("two degradations", health.until(|health| health.degraded().len() == 2)).await?;
    assert_eq!(health.degraded(), ["clusters", "azuremachinepools"]);
    assert_eq!(health.not_ready(), Vec::<String>::new(), "which is no reason to stop");
    Ok(())
}
