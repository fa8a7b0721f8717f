//! A cluster in which Karpenter is not installed yet.

use std::time::Duration;

use anyhow::Result;
use bringup_azure_sim::scenario;
use bringup_testbed::{ControlPlane, CrdSet};
use bringup_world::order::Order;
use bringup_world::stage::Stage;

const ORAS_MISSING: &str = include_str!("../scenarios/demo.yaml");

#[tokio::test]
async fn test_33_without_karpenters_definitions_it_starts_waits_says_so_and_goes_on() -> Result<()>
{
    let control_plane = ControlPlane::builder().crds([]).start().await?;
    control_plane.install_definitions([bringup_objects::report::definition()]).await?;
    let scenario = scenario::parse("late", ORAS_MISSING)?;
    let stage = Stage::on(control_plane.client(), "late", scenario).await?;
    let running = stage.observe();
    let health = running.controller.health();
    let told = health.until(|health| !health.waiting().is_empty());
    tokio::time::timeout(Duration::from_mins(1), told).await?;
    let waiting = health.waiting();
    assert_eq!(waiting, ["the definition of NodeClaim is not installed"]);
    assert!(health.not_ready().is_empty(), "which is no trouble");

    control_plane.install(CrdSet::KarpenterAzure).await?;
    stage.karpenter.create_pool(stage.pool()).await?;
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.27.0").await?;
    let order = Order::of("202601.27.0");
    let error = stage.karpenter.bootstrap_as(&claim, &order)?.expect("oras is missing");
    stage.karpenter.report_failure(&claim, &error).await?;
    assert_eq!(stage.report().await?.cause(), Some("BinaryMissing"));
    assert!(health.waiting().is_empty());
    Ok(())
}

#[tokio::test]
async fn without_cluster_apis_definitions_it_says_what_it_waits_for_and_notices_when_they_come()
-> Result<()> {
    let control_plane = ControlPlane::builder().crds([]).start().await?;
    control_plane.install_definitions([bringup_objects::report::definition()]).await?;
    let scenario = scenario::parse("late", ORAS_MISSING)?;
    let mut stage = Stage::on(control_plane.client(), "late", scenario).await?;
    stage.settings.machines = true;
    let running = stage.observe();
    let health = running.controller.health();
    let told = health.until(|health| health.waiting().len() == 3);
    tokio::time::timeout(Duration::from_mins(1), told).await?;
    let mut waiting = health.waiting();
    waiting.sort_unstable();
    let wanted = ["AzureMachine", "Machine", "NodeClaim"]
        .map(|kind| format!("the definition of {kind} is not installed"));
    assert_eq!(waiting, wanted);
    assert!(health.not_ready().is_empty(), "which is no trouble");

    control_plane.install(CrdSet::ClusterApi).await?;
    control_plane.install(CrdSet::ClusterApiAzure).await?;
    let told = health.until(|health| health.waiting() == [wanted[2].clone()]);
    tokio::time::timeout(Duration::from_mins(2), told).await?;
    Ok(())
}
