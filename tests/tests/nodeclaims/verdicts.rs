//! What is said of a node that fails, and of one that does not.

use std::time::Duration;

use anyhow::Result;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, find};
use bringup_objects::{BootstrapReport, NodeClaim};
use bringup_world::stage::Stage;

/// The image of the request: without oras, so that its scripts end with 211.
const ORAS_MISSING: &str = include_str!("../../scenarios/demo.yaml");

fn conditions(claim: &NodeClaim) -> &[bringup_objects::condition::Condition] {
    claim.status.as_ref().map_or(&[], |status| &status.conditions)
}

/// Status and reason of a condition.
fn says<'a>(claim: &'a NodeClaim, kind: &str) -> Option<(&'a str, &'a str)> {
    find(conditions(claim), kind).map(|held| (held.status.as_str(), held.reason.as_str()))
}

fn message(claim: &NodeClaim, kind: &str) -> String {
    find(conditions(claim), kind).map(|held| held.message.clone()).unwrap_or_default()
}

#[tokio::test]
async fn test_01_a_failed_cse_is_on_the_claim_in_the_event_and_in_the_report() -> Result<()> {
    let stage = Stage::set("t01", ORAS_MISSING).await?;
    let _controller = stage.observe();
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.27.0").await?;
    let error = stage.karpenter.bootstrap(&claim)?.expect("oras is missing from this image");
    stage.karpenter.report_failure(&claim, &error).await?;

    let object = stage
        .claim_when(&claim, "the verdict", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("False", "BinaryMissing"))
        })
        .await?;
    assert_eq!(says(&object, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    let told = message(&object, CSE_PROVISIONED);
    assert!(told.starts_with("CSE exited with code 211 (ERR_ORAS_PULL_NETWORK_TIMEOUT): "), "{told}");
    let told = message(&object, BOOTSTRAP_SUCCEEDED);
    assert!(told.contains("failed to run command 'oras': No such file or directory"), "{told}");

    let report: BootstrapReport = stage.report().await?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    println!("{}", serde_json::to_string_pretty(conditions(&object))?);
    for event in stage.events(&claim).await? {
        println!("{}", serde_json::to_string_pretty(&event)?);
    }
    assert_eq!(report.cause(), Some("BinaryMissing"));
    Ok(())
}

#[tokio::test]
async fn test_12_a_healthy_node_gets_no_failure_and_both_conditions_true() -> Result<()> {
    let stage = Stage::set("t12", "{}").await?;
    let _controller = stage.observe();
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.13.0").await?;
    assert_eq!(stage.karpenter.bootstrap(&claim)?, None);
    stage.azure.advance(Duration::from_secs(30));
    stage.node_when_there(&claim).await?;
    stage.karpenter.register(&claim).await?;
    stage.azure.advance(Duration::from_secs(5));
    let object = stage
        .claim_when(&claim, "both conditions", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
                && says(claim, CSE_PROVISIONED) == Some(("True", "CSESucceeded"))
        })
        .await?;
    assert!(conditions(&object).len() >= 6);
    assert!(stage.events(&claim).await?.is_empty());
    assert!(stage.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    Ok(())
}
