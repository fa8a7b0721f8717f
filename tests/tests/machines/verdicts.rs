//! Verdicts on machines.

use anyhow::{Context as _, Result};
use bringup_objects::report::MOVED_LABEL;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::common::{ManagementCluster, condition, kinds};
use crate::launch::Wanted;

/// A node whose token has expired, as cloud-init writes it to the console.
pub(crate) const TOKEN: &str = r#"
rules:
- name: all
  boot:
    bootstrap: user-data
    vmReadyAfter: 2s
    script: {ends: {exitCode: 1, lasts: 5s}}
    console: |
      [   31.201] cloud-init[1021]: [preflight] Running pre-flight checks
      [   91.812] cloud-init[1021]: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"
      [   91.900] cloud-init[1021]: To see the stack trace of this error execute with --v=5 or higher
      [   92.010] cloud-init[1021]: Cloud-init v. 24.1 finished at Mon, 16 Nov 2026 06:00:00 +0000. Datasource DataSourceAzure. Up 92.01 seconds
      [   92.020] systemd[1]: cloud-final.service: Failed with result 'exit-code'.
"#;

#[tokio::test]
async fn test_01_02_04_a_verdict_is_on_the_machine_and_on_what_is_behind_it() -> Result<()> {
    let cluster = ManagementCluster::new("token", TOKEN).await?;
    cluster.launch(Wanted::linux("worker-1")).await?;
    let seen = cluster
        .until(cluster.provided(), "worker-1", "Unknown while nothing is known", |it| {
            condition(it, "NodeBootstrapSucceeded").is_some()
        })
        .await?;
    let underway = condition(&seen, "NodeBootstrapSucceeded").context("there")?;
    assert_eq!(
        (underway["status"].as_str(), underway["reason"].as_str()),
        (Some("Unknown"), Some("Diagnosing"))
    );
    assert!(underway.get("severity").is_none(), "Ready stays as it is");

    let machine = cluster.verdict("worker-1").await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "BootstrapTokenInvalid");
    let message = verdict["message"].as_str().unwrap_or_default();
    assert!(message.contains("could not find a JWS signature"), "{message}");
    let useful = condition(&machine, "bringup.dev/ReplacementUseful").context("there")?;
    assert_eq!(useful["reason"], "BootstrapTokenInvalid");
    assert!(kinds(&machine).contains(&"InfrastructureReady".to_owned()), "others' are kept");

    let provided = cluster
        .until(cluster.provided(), "worker-1", "the same on the AzureMachine", |it| {
            condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        })
        .await?;
    let same = condition(&provided, "NodeBootstrapSucceeded").context("there")?;
    assert_eq!(
        (same["severity"].as_str(), same["reason"].as_str()),
        (Some("Error"), Some("BootstrapTokenInvalid"))
    );
    assert_eq!(kinds(&provided), ["Ready", "VMRunning", "NodeBootstrapSucceeded"]);

    let reports = cluster.reports().await?;
    assert_eq!(reports.len(), 1);
    let owner = reports[0].owner_references().first().context("it has an owner")?;
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Cluster", "prod"));
    assert_eq!(reports[0].spec.target_ref.kind, "Machine");
    assert!(reports[0].labels().contains_key(MOVED_LABEL), "it goes where its cluster goes");
    // bringup never reads the token; only its maximum age is known.
    let status = reports[0].status.clone().unwrap_or_default();
    let age = status.collectors.iter().find(|one| one.name == "join token's age");
    let age = age.map(|age| age.detail.clone()).unwrap_or_default();
    assert!(age.contains("cannot have expired"), "{age}");
    Ok(())
}

#[tokio::test]
async fn test_08_a_node_that_joins_gets_true_conditions_and_ready_is_not_disturbed() -> Result<()> {
    let cluster = ManagementCluster::new("healthy", "{}").await?;
    cluster.launch(Wanted::linux("worker-1")).await?;
    cluster
        .until(cluster.machines(), "worker-1", "the Machine to be seen", |it| {
            condition(it, "BootstrapSucceeded").is_some()
        })
        .await?;
    let joined = json!({ "status": { "nodeRef": { "name": "worker-1" } } });
    let patch = Patch::Merge(&joined);
    cluster.machines().patch_status("worker-1", &PatchParams::default(), &patch).await?;
    let up = |it: &kube::api::DynamicObject| {
        condition(it, "BootstrapSucceeded").is_some_and(|it| it["status"] == "True")
    };
    let machine = cluster.until(cluster.machines(), "worker-1", "a node that joined", up).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "NodeRegistered");
    let useful = condition(&machine, "bringup.dev/ReplacementUseful").context("there")?;
    assert_eq!(useful["status"], "False");
    let provided = cluster
        .until(cluster.provided(), "worker-1", "the same on the AzureMachine", |it| {
            condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == "True")
        })
        .await?;
    assert_eq!(kinds(&provided), ["Ready", "VMRunning", "NodeBootstrapSucceeded"]);
    assert!(cluster.reports().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn test_11_32_a_vm_is_found_before_its_provider_id_is_set_and_its_report_outlives_it()
-> Result<()> {
    let cluster = ManagementCluster::new("early", TOKEN).await?;
    let early =
        Wanted { is_said: false, os: "Windows", ..Wanted::linux("capz-win-md-7f9c4-abcde") };
    cluster.launch(early).await?;
    let machine = cluster.verdict(early.name).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "BootstrapTokenInvalid");
    cluster.machines().delete(early.name, &DeleteParams::default()).await?;
    let reports = cluster.reports().await?;
    let id = reports[0].spec.provider_id.clone().unwrap_or_default();
    assert!(id.ends_with("/virtualMachines/capz-win-abcde"), "{id}");
    Ok(())
}
