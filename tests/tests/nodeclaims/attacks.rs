//! Attacks on the observer: each is refused, and another claim still gets its verdict.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure::Scopes;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
use bringup_objects::{BootstrapReport, NodeClaim};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};

use super::common::{ORAS_MISSING, fail, message, status_and_reason};

const FOREIGN: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/// A fault for reads of the VM of one claim.
fn with_response(bed: &str, answer: &str) -> String {
    format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{method: GET, pathContains: '/virtualmachines/aks-{bed}-a'}}, fault: {{answer: {answer}}}}}]"
    )
}

#[tokio::test]
async fn a_report_in_a_tenants_namespace_is_not_believed_and_not_deleted() -> Result<()> {
    let mut bed = TestBed::named("forged", ORAS_MISSING).await?;
    bed.settings.machines = true; // reports of all namespaces are watched then
    let tenant = Namespace {
        metadata: ObjectMeta { name: Some("tenant".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    namespaces.create(&PostParams::default(), &tenant).await?;
    let _controller = bed.observe();
    let (_, genuine) = fail(&bed, "model", &Order::of("202601.27.0")).await?;
    let victim = bed.claim_name("victim");
    bed.karpenter.launch(&victim, bed.pool(), "202601.27.0").await?;
    let victim = bed.claims().get(&victim).await?;
    // The forged report copies a genuine one, and its creator uses bringup's field manager. It is about
    // another claim.
    let mut forged = BootstrapReport::new("forged", genuine.spec.clone());
    forged.status.clone_from(&genuine.status);
    forged.spec.target_ref.name = victim.name_any();
    forged.spec.target_ref.uid = victim.uid().context("a uid")?;
    let reports: Api<BootstrapReport> = Api::namespaced(bed.client.clone(), "tenant");
    let manager = PostParams { field_manager: Some("bringup".to_owned()), ..PostParams::default() };
    reports.create(&manager, &forged).await?;
    // The controller has handled this later claim, so it has handled the forged report as well.
    fail(&bed, "later", &Order::of("202601.27.0")).await?;
    let victim = bed.claims().get(&victim.name_any()).await?;
    assert_ne!(status_and_reason(&victim, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
    assert!(reports.get_opt("forged").await?.is_some(), "it is not ours to delete");
    Ok(())
}

#[tokio::test]
async fn a_vm_outside_the_allowed_scopes_is_not_read_and_the_condition_says_so() -> Result<()> {
    let mut bed = TestBed::named("deputy", ORAS_MISSING).await?;
    bed.settings.scopes = Scopes::default();
    let controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.claim(&claim, Some(bed.pool())).await?;
    let id = format!(
        "/subscriptions/{FOREIGN}/resourceGroups/victim/providers/Microsoft.Compute/virtualMachines/db-1"
    );
    bed.karpenter.accepted(&claim, &id, "image").await?;
    bed.azure.advance(Duration::from_mins(2));
    let told = bed
        .claim_when(&claim, "the scope that is missing", |claim| {
            message(claim, BOOTSTRAP_SUCCEEDED).contains("--azure-scope")
        })
        .await?;
    assert_eq!(status_and_reason(&told, BOOTSTRAP_SUCCEEDED), Some(("Unknown", "Diagnosing")));
    bed.azure.advance(Duration::from_mins(12));
    bed.claim_when(&claim, "a verdict", super::common::has_failed).await?;
    let journal = bed.azure.with(|azure| azure.journal().text().to_owned());
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
    let bed =
        TestBed::named("far", &with_response("far", &format!("{{status: 200, body: '{body}'}}")))
            .await?;
    let controller = bed.observe();
    bed.karpenter.launch(&bed.claim_name("a"), bed.pool(), "202601.27.0").await?;
    for _ in 0..4 {
        bed.azure.advance(Duration::from_mins(1));
    }
    let (other, _) = fail(&bed, "b", &Order::of("202601.27.0")).await?;
    assert_eq!(status_and_reason(&other, BOOTSTRAP_SUCCEEDED), Some(("False", "BinaryMissing")));
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
    let bed = TestBed::named("throttled", &scenario).await?;
    let controller = bed.observe();
    let order = Order::of("202601.27.0");
    let (claim, other) = (bed.claim_name("a"), bed.claim_name("b"));
    // Azure refuses the scheduled read; then Karpenter reports that the VM failed.
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    bed.azure.advance(Duration::from_mins(1));
    let has_failed =
        |claim: &NodeClaim| message(claim, BOOTSTRAP_SUCCEEDED).contains("Azure cannot be read");
    bed.claim_when(&claim, "that Azure cannot be read", has_failed).await?;
    let error = bed.karpenter.bootstrap_as(&claim, &order)?.context("the script should fail")?;
    bed.karpenter.report_failure(&claim, &error).await?;
    // A claim whose own reads were never refused waits for the same reason, and its condition shows the
    // reason.
    bed.fail(&other, &order).await?;
    bed.claim_when(&other, "that reads are refused", has_failed).await?;
    let waiting = controller.controller.health().waiting();
    assert!(waiting.iter().any(|line| line.contains("Azure cannot be read")), "{waiting:?}");
    for _ in 0..6 {
        bed.azure.advance(Duration::from_mins(1));
    }
    for claim in [&claim, &other] {
        assert_eq!(bed.report_of(claim).await?.cause(), Some("BinaryMissing"));
    }
    Ok(())
}
