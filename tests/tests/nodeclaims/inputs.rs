//! Invalid and hostile inputs.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::NodeClaim;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED};
use bringup_objects::report::{CollectorState, Phase};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::common::{ORAS_MISSING, fail, message, status_and_reason};

/// A fault for the first reads of VMs.
fn with_fault(times: u32, fault: &str) -> String {
    format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: GET, pathContains: '/virtualmachines/aks-', times: {times}}}, fault: {fault}}}]"
    )
}

#[tokio::test]
async fn a_malformed_provider_id_is_named_in_the_condition_and_judged_in_time() -> Result<()> {
    let bed = TestBed::named("malformed", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.claim(&claim, Some(bed.pool())).await?;
    bed.karpenter.accepted(&claim, "/subscriptions/s/oops", "image").await?;
    let told = bed
        .claim_when(&claim, "the malformed id", |claim| {
            message(claim, BOOTSTRAP_SUCCEEDED).contains("status.providerID")
        })
        .await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("Unknown", "Diagnosing")));
    bed.azure.advance(Duration::from_secs(12 * 60 + 30));
    bed.failed_claim(&claim).await?;
    let report = bed.report_of(&claim).await?;
    let collectors = report.status.unwrap_or_default().collectors;
    assert_eq!(collectors[0].state, CollectorState::Failed);
    assert!(collectors[0].detail.contains("oops"), "{}", collectors[0].detail);
    Ok(())
}

#[tokio::test]
async fn a_claim_without_status_is_waited_for() -> Result<()> {
    let bed = TestBed::named("nostatus", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.claim(&claim, Some(bed.pool())).await?;
    let status = json!({ "status": {} });
    bed.claims().patch_status(&claim, &PatchParams::default(), &Patch::Merge(status)).await?;
    let (_, report) = fail_elsewhere(&bed).await?;
    assert_eq!(report.cause(), Some("AllocationFailed"));
    Ok(())
}

/// Checks that another claim gets its verdict, which shows that the controller still runs.
async fn fail_elsewhere(bed: &TestBed) -> Result<(NodeClaim, bringup_objects::BootstrapReport)> {
    let claim = bed.claim_name("other");
    let text = "Code=\"AllocationFailed\" Message=\"Allocation failed. We do not have sufficient capacity for the requested VM size in this region.\"";
    bed.karpenter.launch_standalone(&claim, text).await?;
    let object = bed.failed_claim(&claim).await?;
    Ok((object, bed.report_of(&claim).await?))
}

#[tokio::test]
async fn answers_that_are_no_answers_are_asked_for_again() -> Result<()> {
    for (name, fault) in [
        (
            "html",
            "{answer: {status: 200, headers: {content-type: text/html}, body: '<html>proxy</html>'}}",
        ),
        ("cut", "{cutBody: 100}"),
        ("dropped", "dropBefore"),
        ("unavailable", "{statusBefore: 503}"),
        (
            "expired",
            "{answer: {status: 401, body: '{\"error\": {\"code\": \"ExpiredAuthenticationToken\", \"message\": \"The access token expiry has passed.\"}}'}}",
        ),
    ] {
        let bed = TestBed::named(name, &with_fault(2, fault)).await?;
        let _controller = bed.observe();
        let claim = bed.claim_name("a");
        bed.fail(&claim, &Order::of("202601.27.0")).await?;
        // The second and third read follow a second apart.
        for _ in 0..5 {
            bed.azure.advance(Duration::from_secs(1));
        }
        let report = bed.report_of(&claim).await?;
        assert_eq!(
            (report.cause(), report.phase()),
            (Some("BinaryMissing"), Phase::Final.into()),
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn test_28_a_missing_permission_is_named_in_the_condition() -> Result<()> {
    let body = r#"{"error": {"code": "AuthorizationFailed", "message": "The client 'x' with object id 'y' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/read' over scope '/subscriptions/s/resourceGroups/g' or the scope is invalid."}}"#;
    let fault = format!("{{answer: {{status: 403, body: '{}'}}}}", body.replace('\'', "''"));
    let bed = TestBed::named("t28", &with_fault(1000, &fault)).await?;
    let controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.27.0").await?;
    bed.azure.advance(Duration::from_mins(1));
    let told = bed
        .claim_when(&claim, "the missing permission", |claim| {
            message(claim, BOOTSTRAP_SUCCEEDED).contains("Microsoft.Compute/virtualMachines/read")
        })
        .await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("Unknown", "Diagnosing")));
    let metrics = controller.controller.metrics().text();
    assert!(metrics.contains("bringup_degraded{what=\"azure\"} 1"), "{metrics}");
    bed.azure.advance(Duration::from_mins(12));
    let told = bed.failed_claim(&claim).await?;
    assert_eq!(status_and_reason(&told, CSE_PROVISIONED), None);
    let report = bed.report_of(&claim).await?;
    let collectors = report.status.unwrap_or_default().collectors;
    assert_eq!(collectors[0].state, CollectorState::Denied);
    Ok(())
}

#[tokio::test]
async fn clocks_that_differ_by_ten_minutes_change_no_verdict() -> Result<()> {
    let scenario = format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: PUT, pathContains: extensions, times: 1}}, fault: {{clockJump: 10m}}}}]"
    );
    let bed = TestBed::named("skew", &scenario).await?;
    let _controller = bed.observe();
    let (claim, report) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    assert_eq!(status_and_reason(&claim, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert_eq!(report.phase(), Phase::Final);
    Ok(())
}
