//! A cluster in which Karpenter is not installed yet.

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_testbed::CrdSet;
use bringup_testbed::wait::in_time;

const ORAS_MISSING: &str = include_str!("../scenarios/demo.yaml");

/// A cluster where only the definition of reports is installed.
async fn without_definitions() -> Result<TestBed> {
    TestBed::builder()
        .named("late")
        .own_control_plane()
        .definitions(&[])
        .scenario(ORAS_MISSING)
        .start()
        .await
}

#[tokio::test]
async fn test_33_without_karpenters_definitions_the_controller_starts_and_names_what_it_waits_for()
-> Result<()> {
    let bed = without_definitions().await?;
    let running = bed.observe();
    let health = running.controller.health();
    in_time("what is waited for", health.until(|health| !health.waiting().is_empty())).await?;
    let waiting = health.waiting();
    assert_eq!(waiting, ["the definition of NodeClaim is not installed"]);
    assert!(health.not_ready().is_empty(), "which is no trouble");

    bed.control_plane().install(CrdSet::KarpenterAzure).await?;
    bed.karpenter.create_pool(bed.pool()).await?;
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    assert_eq!(bed.report().await?.cause(), Some("BinaryMissing"));
    assert!(health.waiting().is_empty());
    Ok(())
}

#[tokio::test]
async fn without_cluster_api_definitions_the_controller_names_them_and_notices_their_installation()
-> Result<()> {
    let mut bed = without_definitions().await?;
    bed.settings.machines = true;
    let running = bed.observe();
    let health = running.controller.health();
    in_time("three kinds", health.until(|health| health.waiting().len() == 3)).await?;
    let mut waiting = health.waiting();
    waiting.sort_unstable();
    let wanted = ["AzureMachine", "Machine", "NodeClaim"]
        .map(|kind| format!("the definition of {kind} is not installed"));
    assert_eq!(waiting, wanted);
    assert!(health.not_ready().is_empty(), "which is no trouble");

    bed.control_plane().install(CrdSet::ClusterApi).await?;
    bed.control_plane().install(CrdSet::ClusterApiAzure).await?;
    let is_left = health.until(|health| health.waiting() == [wanted[2].clone()]);
    in_time("the definition of NodeClaim alone", is_left).await?;
    Ok(())
}
