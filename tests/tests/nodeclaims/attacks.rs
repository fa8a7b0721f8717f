//! Attacks on the observer: each is refused, and another claim gets its verdict all the same.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure::Scopes;
use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
use bringup_objects::{BootstrapReport, NodeClaim};
use bringup_world::order::Order;
use bringup_world::stage::Stage;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};

use super::common::{ORAS_MISSING, fail, message, report_of, says, start_failing};

const FOREIGN: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/// A fault for reads of the VM of one claim.
fn answered(stage: &str, answer: &str) -> String {
    format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: GET, pathContains: '/virtualmachines/aks-{stage}-a'}}, fault: {{answer: {answer}}}}}]"
    )
}

#[tokio::test]
async fn a_report_in_a_tenants_namespace_is_not_believed_and_not_deleted() -> Result<()> {
    let mut stage = Stage::set("forged", ORAS_MISSING).await?;
    stage.settings.machines = true; // reports of all namespaces are watched then
    let tenant = Namespace {
        metadata: ObjectMeta { name: Some("tenant".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    namespaces.create(&PostParams::default(), &tenant).await?;
    let _controller = stage.observe();
    let (_, genuine) = fail(&stage, "model", &Order::of("202601.27.0")).await?;
    let victim = stage.claim_name("victim");
    stage.karpenter.launch(&victim, stage.pool(), "202601.27.0").await?;
    let victim = stage.claims().get(&victim).await?;
    // The same words as a genuine one, by the name of our field manager, about another claim.
    let mut forged = BootstrapReport::new("forged", genuine.spec.clone());
    forged.status.clone_from(&genuine.status);
    forged.spec.target_ref.name = victim.name_any();
    forged.spec.target_ref.uid = victim.uid().context("a uid")?;
    let reports: Api<BootstrapReport> = Api::namespaced(stage.client.clone(), "tenant");
    let manager = PostParams { field_manager: Some("bringup".to_owned()), ..PostParams::default() };
    reports.create(&manager, &forged).await?;
    // What is watched after it has been handled, so it was.
    fail(&stage, "later", &Order::of("202601.27.0")).await?;
    let victim = stage.claims().get(&victim.name_any()).await?;
    assert_ne!(says(&victim, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert!(reports.get_opt("forged").await?.is_some(), "it is not ours to delete");
    Ok(())
}

#[tokio::test]
async fn a_vm_outside_the_allowed_scopes_is_not_read_and_the_condition_says_so() -> Result<()> {
    let mut stage = Stage::set("deputy", ORAS_MISSING).await?;
    stage.settings.scopes = Scopes::default();
    let controller = stage.observe();
    let claim = stage.claim_name("a");
    stage.karpenter.claim(&claim, Some(stage.pool())).await?;
    let id = format!(
        "/subscriptions/{FOREIGN}/resourceGroups/victim/providers/Microsoft.Compute/virtualMachines/db-1"
    );
    stage.karpenter.accepted(&claim, &id, "image").await?;
    stage.azure.advance(Duration::from_mins(2));
    let told = stage
        .claim_when(&claim, "the scope that is missing", |claim| {
            message(claim, BOOTSTRAP_SUCCEEDED).contains("--azure-scope")
        })
        .await?;
    assert_eq!(says(&told, BOOTSTRAP_SUCCEEDED), Some(("Unknown", "Diagnosing")));
    stage.azure.advance(Duration::from_mins(12));
    stage.claim_when(&claim, "a verdict", super::common::is_told).await?;
    let journal = stage.azure.with(|azure| azure.journal().text().to_owned());
    assert!(!journal.contains(FOREIGN), "{journal}");
    assert!(!controller.is_finished());
    Ok(())
}

#[tokio::test]
async fn a_status_of_the_year_9999_crashes_nothing() -> Result<()> {
    let status = r#"{"code": "ProvisioningState/succeeded", "level": "Info", "time": "9999-12-30T22:00:00Z"}"#;
    let body = format!(
        r#"{{"name": "x", "properties": {{"provisioningState": "Succeeded", "timeCreated": "9999-12-30T22:00:00Z", "instanceView": {{"statuses": [{status}], "extensions": [{{"name": "vmssCSE", "type": "Microsoft.Azure.Extensions.CustomScript", "statuses": [{status}]}}]}}}}}}"#
    );
    let stage =
        Stage::set("far", &answered("far", &format!("{{status: 200, body: '{body}'}}"))).await?;
    let controller = stage.observe();
    stage.karpenter.launch(&stage.claim_name("a"), stage.pool(), "202601.27.0").await?;
    for _ in 0..4 {
        stage.azure.advance(Duration::from_mins(1));
    }
    let (other, _) = fail(&stage, "b", &Order::of("202601.27.0")).await?;
    assert_eq!(says(&other, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert!(!controller.is_finished());
    let metrics = controller.controller.metrics().text();
    assert!(metrics.contains("bringup_panics_total 0"), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn a_refusal_that_asks_for_thirty_thousand_years_is_heeded_for_five_minutes() -> Result<()> {
    let body = r#"{"error": {"code": "SubscriptionRequestsThrottled", "message": "slow down"}}"#;
    let answer =
        format!("{{status: 429, headers: {{retry-after: '999999999999'}}, body: '{body}'}}");
    let scenario = format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: GET, pathContains: '/virtualmachines/aks-', times: 1}}, fault: {{answer: {answer}}}}}]"
    );
    let stage = Stage::set("throttled", &scenario).await?;
    let controller = stage.observe();
    let order = Order::of("202601.27.0");
    let (claim, other) = (stage.claim_name("a"), stage.claim_name("b"));
    // The look that is due by the schedule is refused; then Karpenter reports that the VM failed.
    stage.karpenter.launch_as(&claim, stage.pool(), &order).await?;
    stage.azure.advance(Duration::from_mins(1));
    let is_told =
        |claim: &NodeClaim| message(claim, BOOTSTRAP_SUCCEEDED).contains("Azure cannot be asked");
    stage.claim_when(&claim, "that Azure cannot be asked", is_told).await?;
    let error = stage.karpenter.bootstrap_as(&claim, &order)?.context("the script should fail")?;
    stage.karpenter.report_failure(&claim, &error).await?;
    // A claim whose own reads were never refused waits for the same reason, and says so.
    start_failing(&stage, &other, &order).await?;
    stage.claim_when(&other, "that reads are refused", is_told).await?;
    let waiting = controller.controller.health().waiting();
    assert!(waiting.iter().any(|line| line.contains("Azure cannot be asked")), "{waiting:?}");
    for _ in 0..6 {
        stage.azure.advance(Duration::from_mins(1));
    }
    for claim in [&claim, &other] {
        assert_eq!(report_of(&stage, claim).await?.cause(), Some("BinaryMissing"));
    }
    Ok(())
}
