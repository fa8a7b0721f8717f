//! Pools and Clusters: what they tell, and where they may not be seen or do not exist yet.

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
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::common::{Ground, SUBSCRIPTION, condition, is_written, own_plane, plane};
use crate::conditions::FAILS;
use crate::launch::{Form, Wanted};

/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(5);

fn is_failed(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

fn is_seen(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some()
}

/// Machines whose bootstrap fails after seconds, which their extension says.
fn fails() -> String {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";
    let script =
        json!({ "ends": { "exitCode": 31, "lasts": "1s", "json": "absent", "output": waited } });
    let boot = json!({ "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s", "script": script });
    json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string()
}

/// The provider tells something of a pool; what is there then is answered.
async fn tell(
    ground: &Ground,
    pool: &str,
    kind: &str,
    severity: &str,
    reason: &str,
) -> Result<DynamicObject> {
    // Its clock is that of the API server, which goes on.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let told = json!({
        "type": kind, "status": "False", "severity": severity, "reason": reason,
        "message": "scalesets failed to create or update", "lastTransitionTime": now,
    });
    let patch = Patch::Merge(json!({ "status": { "conditions": [told] } }));
    Ok(ground.pools().patch_status(pool, &PatchParams::default(), &patch).await?)
}

/// How often instances of a scale set were looked at.
fn looks(ground: &Ground, set: &str) -> usize {
    ground.azure.with(|azure| {
        let all = azure.journal().requests().iter();
        let of_set = all.filter(|one| one.method == "GET" && one.path.contains(&format!("/{set}")));
        of_set.filter(|one| one.path.contains("instanceView")).count()
    })
}

#[tokio::test]
async fn what_a_pool_tells_is_looked_at_while_the_clock_stands_and_the_pool_is_never_written_to()
-> Result<()> {
    let ground = Ground::paced("pools", &fails(), Pace::Manual).await?;
    let pools = [
        ("uniform", Form::Uniform, "BootstrapSucceeded", "Error", "Failed"),
        // The provider calls this an information.
        ("flexible", Form::Flexible, "ScaleSetRunning", "Info", "ScaleSetProvisionFailed"),
    ];
    for (name, form, ..) in pools {
        let mode = if form == Form::Uniform { "Uniform" } else { "Flexible" };
        ground.make_pool(name, mode).await?;
        let extensions = &["CustomScript"][..];
        // Its console says nothing.
        let wanted = Wanted { form, extensions, console: false, ..Wanted::linux(name) };
        ground.launch(wanted).await?;
        ground.until(ground.machines(), name, "the Machine to be seen", is_seen).await?;
    }
    // Both have failed, and the first look is still to come.
    ground.azure.advance(Duration::from_secs(20));
    for (name, _, kind, severity, reason) in pools {
        // What it says while it makes the instances is no reason to look.
        tell(&ground, name, "ScaleSetDesiredReplicas", "Info", "ScaleSetScaleUp").await?;
        assert_eq!(looks(&ground, name), 0, "there is no reason to read {name} yet");
        let told = tell(&ground, name, kind, severity, reason).await?;
        let machine = ground.until(ground.machines(), name, "a verdict", is_failed).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], "BootstrapTokenInvalid", "{verdict}");
        let behind = |it: &DynamicObject| {
            condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        };
        ground.until(ground.pooled(), name, "the same on its object", behind).await?;
        let pool = ground.pools().get(name).await?;
        assert!(!is_written(&pool), "{pool:?}");
        assert_eq!(pool.metadata.resource_version, told.metadata.resource_version);
    }
    Ok(())
}

/// Takes a definition away, with everything of its kind.
async fn remove(ground: &Ground, name: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(ground.client.clone());
    let uid = definitions.get(name).await?.metadata.uid.context("a uid")?;
    definitions.delete(name, &DeleteParams::default()).await?;
    let gone = await_condition(definitions, name, is_deleted(&uid));
    tokio::time::timeout(FOREVER, gone).await.context("waited in vain for its end")??;
    Ok(())
}

#[tokio::test]
async fn definitions_of_clusters_and_pools_that_are_missing_are_noticed_when_they_come()
-> Result<()> {
    let plane = own_plane().await?;
    let ground = Ground::made(&plane, "without", &fails(), Pace::Manual, "v1beta2").await?;
    remove(&ground, "clusters.cluster.x-k8s.io").await?;
    remove(&ground, "azuremachinepools.infrastructure.cluster.x-k8s.io").await?;
    let ground = ground.observed()?;
    // Everything else goes on.
    let extensions = &["CustomScript"][..];
    let pooled =
        Wanted { form: Form::Uniform, extensions, console: false, ..Wanted::linux("pooled") };
    ground.launch(pooled).await?;
    ground.until(ground.machines(), "pooled", "the Machine to be seen", is_seen).await?;
    // Only its Cluster shows where this VM is.
    let site = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
        "metadata": { "name": "somewhere" },
        "spec": { "resourceGroup": "rg-without", "subscriptionID": SUBSCRIPTION, "location": "eastus" },
    });
    ground.azure_clusters().create(&PostParams::default(), &serde_json::from_value(site)?).await?;
    let hidden = Wanted { is_said: false, cluster: "late", ..Wanted::linux("hidden") };
    ground.launch(hidden).await?;
    assert_eq!(ground.health.degraded(), Vec::<String>::new(), "which is no trouble");

    plane.install(CrdSet::ClusterApi).await?;
    plane.install(CrdSet::ClusterApiAzure).await?;
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "late" },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "somewhere" } },
    });
    assert!(!is_seen(&ground.machines().get("hidden").await?), "its resource group is not known");
    ground.clusters().create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
    ground.until(ground.machines(), "hidden", "the Cluster to be seen", is_seen).await?;

    ground.azure.advance(Duration::from_secs(20));
    assert_eq!(looks(&ground, "pooled"), 0, "there is no reason to read it yet");
    ground.make_pool("pooled", "Uniform").await?;
    tell(&ground, "pooled", "BootstrapSucceeded", "Error", "Failed").await?;
    ground.until(ground.machines(), "pooled", "the pool to be seen", is_failed).await?;
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
async fn who_may_not_see_clusters_and_pools_is_told_so_and_goes_on_without_them() -> Result<()> {
    let plane = plane().await?;
    let ground = Ground::unobserved("unseen", FAILS).await?;
    let granted = needed(false, true).into_iter().filter(|needed| {
        !(needed.verb == "list" && ["clusters", "azuremachinepools"].contains(&needed.resource))
    });
    let rules = granted.map(|needed| rule(&needed)).collect();
    let metadata = ObjectMeta { name: Some("unseen".to_owned()), ..ObjectMeta::default() };
    let role = ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() };
    Api::all(ground.client.clone()).create(&PostParams::default(), &role).await?;
    let user = plane.user("unseen", None).await?;
    plane.bind(&user, "unseen").await?;
    let ground = ground.observed_as(user.client())?;
    ground.launch(Wanted::linux("worker-1")).await?;
    ground.verdict("worker-1").await?;
    let told = ground.health.until(|health| health.degraded().len() == 2);
    tokio::time::timeout(FOREVER, told).await.context("waited in vain to be told")?;
    assert_eq!(ground.health.degraded(), ["clusters", "azuremachinepools"]);
    assert_eq!(ground.health.not_ready(), Vec::<String>::new(), "which is no reason to stop");
    Ok(())
}
