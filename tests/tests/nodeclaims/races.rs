//! Events that happen at the same time.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, find};
use bringup_objects::report::Phase;
use bringup_testbed::wait::until_object;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::common::{ORAS_MISSING, conditions, exit_code, fail, status_and_reason};

/// Keeps a claim until the test releases it, as Karpenter's finalizer does.
async fn hold(bed: &TestBed, claim: &str) -> Result<()> {
    let finalizers = json!({ "metadata": { "finalizers": ["karpenter.sh/termination"] } });
    bed.claims().patch(claim, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
    Ok(())
}

async fn let_go(bed: &TestBed, claim: &str) -> Result<()> {
    let finalizers = json!({ "metadata": { "finalizers": [] } });
    bed.claims().patch(claim, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
    Ok(())
}

#[tokio::test]
async fn test_16_a_vm_deleted_right_after_the_event_has_been_read() -> Result<()> {
    let bed = TestBed::named("t16", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    let report = bed.report_of(&claim).await?;
    bed.karpenter.clean_up(&claim).await?;
    assert_eq!((report.cause(), report.phase()), (Some("BinaryMissing"), Phase::Final.into()));
    until_object(bed.claims(), "t16-a", "the claim's end", |claim| claim.is_none()).await?;
    let kept = bed.report_of(&claim).await?;
    assert_eq!(kept.cause(), Some("BinaryMissing"), "the report outlives claim and VM");
    Ok(())
}

#[tokio::test]
async fn test_17_a_vm_gone_before_the_first_read_is_lost_and_then_found_in_the_activity_log()
-> Result<()> {
    let bed = TestBed::named("t17", ORAS_MISSING).await?;
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    bed.karpenter.delete_vm(&claim)?;
    bed.azure.advance(Duration::from_secs(30));
    let _controller = bed.observe();
    let lost = bed.report_of(&claim).await?;
    assert_eq!((lost.phase(), lost.cause()), (Phase::Lost.into(), Some("Unknown")));
    bed.karpenter.delete_claim(&claim).await?;

    bed.azure.advance(Duration::from_mins(21));
    let found = bed
        .reports_when("a verdict from the activity log", |reports| {
            reports.iter().any(|report| {
                report.phase() == Phase::Final
                    && report.cause() == Some("BinaryMissing")
                    && report.is_announced()
            })
        })
        .await?;
    assert_eq!(found.len(), 1);
    assert_eq!(exit_code(&found[0]), Some(211));
    let collectors = found[0].status.clone().unwrap_or_default().collectors;
    let activity = collectors.iter().find(|asked| asked.name == "activity log");
    assert_eq!(activity.map(|asked| asked.state.as_str()), Some("ok"));
    Ok(())
}

#[tokio::test]
async fn test_18_an_empty_activity_log_leaves_unknown_with_the_collectors_listed() -> Result<()> {
    let scenario = format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{pathContains: eventtypes}}, fault: {{answer: {{status: 200, body: '{{\"value\": []}}'}}}}}}]"
    );
    let bed = TestBed::named("t18", &scenario).await?;
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    bed.karpenter.delete_vm(&claim)?;
    bed.azure.advance(Duration::from_secs(30));
    let _controller = bed.observe();
    assert_eq!(bed.report_of(&claim).await?.phase(), Phase::Lost);
    for _ in 0..4 {
        bed.azure.advance(Duration::from_mins(10));
    }
    let reports = bed
        .reports_when("a report that is given up", |reports| {
            reports.iter().any(|report| report.phase() == Phase::Final)
        })
        .await?;
    assert_eq!(reports[0].cause(), Some("Unknown"));
    let names: Vec<String> = reports[0]
        .status
        .clone()
        .unwrap_or_default()
        .collectors
        .into_iter()
        .map(|asked| asked.name)
        .collect();
    assert_eq!(names, ["virtual machine", "activity log"]);
    Ok(())
}

#[tokio::test]
async fn test_21_a_claim_made_anew_under_the_same_name_is_another_attempt() -> Result<()> {
    let bed = TestBed::named("t21", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let (first, _) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    let claim = bed.claim_name("a");
    bed.karpenter.clean_up(&claim).await?;
    bed.azure.advance(Duration::from_secs(30));

    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    let second = bed
        .claim_when(&claim, "a claim that is being diagnosed", |claim| {
            status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
        })
        .await?;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!(
        status_and_reason(&second, CSE_PROVISIONED),
        None,
        "nothing of the first claim is on it"
    );

    let reports = bed.reports_when("one report", |reports| reports.len() == 1).await?;
    assert_eq!(Some(reports[0].spec.target_ref.uid.clone()), first.metadata.uid);
    Ok(())
}

#[tokio::test]
async fn two_attempts_under_the_same_name_have_two_reports() -> Result<()> {
    let bed = TestBed::named("twice", ORAS_MISSING).await?;
    let _controller = bed.observe();
    for _ in 0..2 {
        let (_, report) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
        assert_eq!(report.cause(), Some("BinaryMissing"));
        bed.karpenter.clean_up(&bed.claim_name("a")).await?;
        bed.azure.advance(Duration::from_secs(30));
    }
    let reports = bed
        .reports_when("two reports", |reports| {
            reports.len() == 2 && reports.iter().all(bringup_objects::BootstrapReport::is_announced)
        })
        .await?;
    assert_ne!(reports[0].spec.target_ref.uid, reports[1].spec.target_ref.uid);
    assert_eq!(bed.events(&bed.claim_name("a")).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn test_22_an_error_that_the_deletion_itself_caused_is_ignored() -> Result<()> {
    let bed = TestBed::named("t22", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    hold(&bed, &claim).await?;
    bed.claims().delete(&claim, &DeleteParams::default()).await?;
    let deleted = bed.claims().get(&claim).await?.metadata.deletion_timestamp;
    bed.karpenter.delete_vm(&claim)?;
    // Timestamps are whole seconds: the Event must get a later timestamp than the deletion.
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let probes: kube::Api<ConfigMap> = kube::Api::namespaced(bed.client.clone(), "default");
    let probe = ConfigMap {
        metadata: ObjectMeta { name: Some("t22-probe".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    while probes.create(&parameters, &probe).await?.metadata.creation_timestamp <= deleted {}
    let error = json!({ "code": "OperationPreempted", "message": "preempted by a deletion" });
    bed.karpenter.report_failure(&claim, &error).await?;
    let_go(&bed, &claim).await?;
    // Another claim's verdict shows that the controller has worked on since.
    let other = bed.claim_name("b");
    bed.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    bed.report_of(&other).await?;
    let reports = bed.reports_when("one report", |reports| !reports.is_empty()).await?;
    let about: Vec<_> = reports.iter().map(|report| report.spec.target_ref.name.as_str()).collect();
    assert_eq!(about, [other.as_str()]);
    Ok(())
}

#[tokio::test]
async fn test_23_a_node_that_joins_between_verdict_and_write_is_no_failure() -> Result<()> {
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 1s}, script: {ends: {exitCode: 124, outerExitCode: 1, lasts: 5s, output: \"+ exit 124\"}}}}]";
    let bed = TestBed::named("t23", scenario).await?;
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.13.0")).await?;
    bed.azure.advance(Duration::from_secs(30));
    bed.ready_node(&claim).await?;
    // The controller finds a script that failed, and a Node that is ready.
    let _controller = bed.observe();
    let object = bed
        .claim_when(&claim, "a node that is up", |claim| {
            status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
        })
        .await?;
    assert_ne!(status_and_reason(&object, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    assert!(bed.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    assert!(bed.events(&claim).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn test_23_a_node_that_becomes_ready_while_the_report_is_prepared_stops_it() -> Result<()> {
    // Azure answers that the script failed; before anything is written, the Node comes up.
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 20s}, script: {ends: {exitCode: 211, outerExitCode: 1, lasts: 5s, output: \"oras: command not found\\n+ exit 211\"}}}}]";
    let bed = std::sync::Arc::new(TestBed::named("t23b", scenario).await?);
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.13.0")).await?;
    let hook = bringup_runtime::effect_hook::EffectHook::new({
        let (bed, claim) = (bed.clone(), claim.clone());
        move |effect| -> BoxFuture<'static, ()> {
            let (bed, claim) = (bed.clone(), claim.clone());
            Box::pin(async move {
                if effect == "ARM read" {
                    bed.azure.advance(Duration::from_mins(1));
                    let _ = bed.ready_node(&claim).await;
                }
            })
        }
    });
    let _controller = bed.observe_with(bed.client.clone(), hook);
    bed.claim_when(&claim, "a node that is up", |claim| {
        status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
    })
    .await?;
    assert!(bed.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    assert!(bed.events(&claim).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn test_24_a_node_that_joins_after_the_verdict_turns_it() -> Result<()> {
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 10m}, script: {ends: {exitCode: 124, outerExitCode: 1, lasts: 5s, output: \"+ exit 124\"}}}}]";
    let bed = TestBed::named("t24", scenario).await?;
    let _controller = bed.observe();
    let (before, _) = fail(&bed, "a", &Order::of("202601.13.0")).await?;
    let claim = bed.claim_name("a");
    bed.azure.advance(Duration::from_mins(11));
    bed.ready_node(&claim).await?;
    bed.karpenter.register(&claim).await?;
    let after = bed
        .claim_when(&claim, "a node that is up", |claim| {
            status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
        })
        .await?;
    let since = |claim| {
        find(conditions(claim), BOOTSTRAP_SUCCEEDED).map(|held| held.last_transition_time.clone())
    };
    assert_ne!(since(&before), since(&after), "the status has changed");
    let closed = |reports: &[bringup_objects::BootstrapReport]| {
        reports.iter().all(|report| report.phase() == Phase::Superseded && report.is_announced())
    };
    bed.reports_when("a closed report", closed).await?;
    let reasons: Vec<_> = bed
        .events(&claim)
        .await?
        .into_iter()
        .map(|event| (event.reason.unwrap_or_default(), event.type_.unwrap_or_default()))
        .collect();
    assert!(
        reasons.contains(&("BootstrapRecovered".to_owned(), "Normal".to_owned())),
        "{reasons:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_claim_deleted_before_the_first_read_has_a_report_all_the_same() -> Result<()> {
    let bed = TestBed::named("early", ORAS_MISSING).await?;
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.27.0").await?;
    let _controller = bed.observe();
    bed.claim_when(&claim, "a claim that is being diagnosed", |claim| {
        status_and_reason(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
    })
    .await?;
    let error = bed.karpenter.bootstrap(&claim)?.expect("oras is missing from this image");
    // The claim is deleted at once; only then does Karpenter's Event reach the controller.
    hold(&bed, &claim).await?;
    bed.karpenter.report_failure(&claim, &error).await?;
    bed.claims().delete(&claim, &DeleteParams::default()).await?;
    let_go(&bed, &claim).await?;
    let report = bed.report_of(&claim).await?;
    assert_eq!(report.cause(), Some("BinaryMissing"));
    Ok(())
}

#[tokio::test]
async fn a_pending_claim_that_a_user_deletes_is_no_failure() -> Result<()> {
    let bed = TestBed::named("withdrawn", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.launch(&claim, bed.pool(), "202601.13.0").await?;
    bed.karpenter.delete_claim(&claim).await?;
    let other = bed.claim_name("b");
    bed.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    bed.report_of(&other).await?;
    let reports = bed.reports_when("one report", |reports| !reports.is_empty()).await?;
    assert_eq!(reports.len(), 1);
    assert!(bed.events(&claim).await?.is_empty());
    Ok(())
}
