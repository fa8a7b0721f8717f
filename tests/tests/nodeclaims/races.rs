//! Things that happen at the same time.

use std::time::Duration;

use anyhow::Result;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, find};
use bringup_objects::report::Phase;
use bringup_world::order::Order;
use bringup_world::stage::Stage;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::common::{ORAS_MISSING, conditions, exit_code, fail, report_of, says, start_failing};

/// Keeps a claim until it is let go, as Karpenter's finalizer does.
async fn hold(stage: &Stage, claim: &str) -> Result<()> {
    let finalizers = json!({ "metadata": { "finalizers": ["karpenter.sh/termination"] } });
    stage.claims().patch(claim, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
    Ok(())
}

async fn let_go(stage: &Stage, claim: &str) -> Result<()> {
    let finalizers = json!({ "metadata": { "finalizers": [] } });
    stage.claims().patch(claim, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
    Ok(())
}

#[tokio::test]
async fn test_16_a_vm_deleted_right_after_the_event_has_been_read() -> Result<()> {
    let stage = Stage::set("t16", ORAS_MISSING).await?;
    let _controller = stage.observe();
    let claim = stage.claim_name("a");
    start_failing(&stage, &claim, &Order::of("202601.27.0")).await?;
    let report = report_of(&stage, &claim).await?;
    stage.karpenter.clean_up(&claim).await?;
    assert_eq!((report.cause(), report.phase()), (Some("BinaryMissing"), Phase::Final.into()));
    let gone = |claims: &[bringup_objects::NodeClaim]| claims.is_empty();
    let named = kube::runtime::watcher::Config::default().fields("metadata.name=t16-a");
    stage.when(stage.claims(), named, "the claim's end", gone).await?;
    let kept = report_of(&stage, &claim).await?;
    assert_eq!(kept.cause(), Some("BinaryMissing"), "the report outlives claim and VM");
    Ok(())
}

#[tokio::test]
async fn test_17_a_vm_gone_before_the_first_read_is_lost_and_then_found_in_the_activity_log()
-> Result<()> {
    let stage = Stage::set("t17", ORAS_MISSING).await?;
    let claim = stage.claim_name("a");
    start_failing(&stage, &claim, &Order::of("202601.27.0")).await?;
    stage.karpenter.delete_vm(&claim)?;
    stage.azure.advance(Duration::from_secs(30));
    let _controller = stage.observe();
    let lost = report_of(&stage, &claim).await?;
    assert_eq!((lost.phase(), lost.cause()), (Phase::Lost.into(), Some("Unknown")));
    stage.karpenter.delete_claim(&claim).await?;

    stage.azure.advance(Duration::from_mins(21));
    let found = stage
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
async fn test_18_an_activity_log_that_says_nothing_leaves_unknown_with_all_who_were_asked()
-> Result<()> {
    let scenario = format!(
        "{ORAS_MISSING}\nfaults: [{{on: {{pathContains: eventtypes}}, fault: {{answer: {{status: 200, body: '{{\"value\": []}}'}}}}}}]"
    );
    let stage = Stage::set("t18", &scenario).await?;
    let claim = stage.claim_name("a");
    start_failing(&stage, &claim, &Order::of("202601.27.0")).await?;
    stage.karpenter.delete_vm(&claim)?;
    stage.azure.advance(Duration::from_secs(30));
    let _controller = stage.observe();
    assert_eq!(report_of(&stage, &claim).await?.phase(), Phase::Lost);
    for _ in 0..4 {
        stage.azure.advance(Duration::from_mins(10));
    }
    let reports = stage
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
    let stage = Stage::set("t21", ORAS_MISSING).await?;
    let _controller = stage.observe();
    let (first, _) = fail(&stage, "a", &Order::of("202601.27.0")).await?;
    let claim = stage.claim_name("a");
    stage.karpenter.clean_up(&claim).await?;
    stage.azure.advance(Duration::from_secs(30));

    stage.karpenter.launch(&claim, stage.pool(), "202601.13.0").await?;
    let second = stage
        .claim_when(&claim, "a claim that is being diagnosed", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
        })
        .await?;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!(says(&second, CSE_PROVISIONED), None, "nothing of the first claim is on it");

    let reports = stage.reports_when("one report", |reports| reports.len() == 1).await?;
    assert_eq!(Some(reports[0].spec.target_ref.uid.clone()), first.metadata.uid);
    Ok(())
}

#[tokio::test]
async fn two_attempts_under_the_same_name_have_two_reports() -> Result<()> {
    let stage = Stage::set("twice", ORAS_MISSING).await?;
    let _controller = stage.observe();
    for _ in 0..2 {
        let (_, report) = fail(&stage, "a", &Order::of("202601.27.0")).await?;
        assert_eq!(report.cause(), Some("BinaryMissing"));
        stage.karpenter.clean_up(&stage.claim_name("a")).await?;
        stage.azure.advance(Duration::from_secs(30));
    }
    let reports = stage
        .reports_when("two reports", |reports| {
            reports.len() == 2 && reports.iter().all(bringup_objects::BootstrapReport::is_announced)
        })
        .await?;
    assert_ne!(reports[0].spec.target_ref.uid, reports[1].spec.target_ref.uid);
    assert_eq!(stage.events(&stage.claim_name("a")).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn test_22_an_error_that_the_deletion_itself_caused_is_ignored() -> Result<()> {
    let stage = Stage::set("t22", "{}").await?;
    let _controller = stage.observe();
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.13.0").await?;
    hold(&stage, &claim).await?;
    stage.claims().delete(&claim, &DeleteParams::default()).await?;
    let deleted = stage.claims().get(&claim).await?.metadata.deletion_timestamp;
    stage.karpenter.delete_vm(&claim)?;
    // Stamps are whole seconds: the Event has to get a later one than the deletion.
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let probes: kube::Api<ConfigMap> = kube::Api::namespaced(stage.client.clone(), "default");
    let probe = ConfigMap {
        metadata: ObjectMeta { name: Some("t22-probe".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    while probes.create(&parameters, &probe).await?.metadata.creation_timestamp <= deleted {}
    let error = json!({ "code": "OperationPreempted", "message": "preempted by a deletion" });
    stage.karpenter.report_failure(&claim, &error).await?;
    let_go(&stage, &claim).await?;
    // Another claim's verdict shows that the controller has worked on since.
    let other = stage.claim_name("b");
    stage.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    report_of(&stage, &other).await?;
    let reports = stage.reports_when("one report", |reports| !reports.is_empty()).await?;
    let about: Vec<_> = reports.iter().map(|report| report.spec.target_ref.name.as_str()).collect();
    assert_eq!(about, [other.as_str()]);
    Ok(())
}

#[tokio::test]
async fn test_23_a_node_that_joins_between_verdict_and_write_is_no_failure() -> Result<()> {
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 1s}, script: {ends: {exitCode: 124, outerExitCode: 1, lasts: 5s, output: \"+ exit 124\"}}}}]";
    let stage = Stage::set("t23", scenario).await?;
    let claim = stage.claim_name("a");
    start_failing(&stage, &claim, &Order::of("202601.13.0")).await?;
    stage.azure.advance(Duration::from_secs(30));
    stage.node_when_there(&claim).await?;
    // The controller finds a script that failed, and a Node that is ready.
    let _controller = stage.observe();
    let object = stage
        .claim_when(&claim, "a node that is up", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
        })
        .await?;
    assert_ne!(says(&object, CSE_PROVISIONED), Some(("False", "CSEFailed")));
    assert!(stage.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    assert!(stage.events(&claim).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn test_23_a_node_that_becomes_ready_while_the_report_is_prepared_stops_it() -> Result<()> {
    // Azure answers that the script failed; before anything is written, the Node comes up.
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 20s}, script: {ends: {exitCode: 211, outerExitCode: 1, lasts: 5s, output: \"oras: command not found\\n+ exit 211\"}}}}]";
    let stage = std::sync::Arc::new(Stage::set("t23b", scenario).await?);
    let claim = stage.claim_name("a");
    start_failing(&stage, &claim, &Order::of("202601.13.0")).await?;
    let witness = bringup_runtime::effect_hook::EffectHook::new({
        let (stage, claim) = (stage.clone(), claim.clone());
        move |effect| -> BoxFuture<'static, ()> {
            let (stage, claim) = (stage.clone(), claim.clone());
            Box::pin(async move {
                if effect == "ARM read" {
                    stage.azure.advance(Duration::from_mins(1));
                    let _ = stage.node_when_there(&claim).await;
                }
            })
        }
    });
    let _controller = stage.observe_with(stage.client.clone(), witness);
    stage
        .claim_when(&claim, "a node that is up", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
        })
        .await?;
    assert!(stage.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    assert!(stage.events(&claim).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn test_24_a_node_that_joins_after_the_verdict_turns_it() -> Result<()> {
    let scenario = "rules: [{name: all, boot: {node: {joinsAfter: 10m}, script: {ends: {exitCode: 124, outerExitCode: 1, lasts: 5s, output: \"+ exit 124\"}}}}]";
    let stage = Stage::set("t24", scenario).await?;
    let _controller = stage.observe();
    let (before, _) = fail(&stage, "a", &Order::of("202601.13.0")).await?;
    let claim = stage.claim_name("a");
    stage.azure.advance(Duration::from_mins(11));
    stage.node_when_there(&claim).await?;
    stage.karpenter.register(&claim).await?;
    let after = stage
        .claim_when(&claim, "a node that is up", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("True", "NodeRegistered"))
        })
        .await?;
    let since = |claim| {
        find(conditions(claim), BOOTSTRAP_SUCCEEDED).map(|held| held.last_transition_time.clone())
    };
    assert_ne!(since(&before), since(&after), "the status has changed");
    let closed = |reports: &[bringup_objects::BootstrapReport]| {
        reports.iter().all(|report| report.phase() == Phase::Superseded && report.is_announced())
    };
    stage.reports_when("a closed report", closed).await?;
    let reasons: Vec<_> = stage
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
    let stage = Stage::set("early", ORAS_MISSING).await?;
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.27.0").await?;
    let _controller = stage.observe();
    stage
        .claim_when(&claim, "a claim that is being diagnosed", |claim| {
            says(claim, BOOTSTRAP_SUCCEEDED) == Some(("Unknown", "Diagnosing"))
        })
        .await?;
    let error = stage.karpenter.bootstrap(&claim)?.expect("oras is missing from this image");
    // The claim goes at once; only then does Karpenter's Event reach the controller.
    hold(&stage, &claim).await?;
    stage.karpenter.report_failure(&claim, &error).await?;
    stage.claims().delete(&claim, &DeleteParams::default()).await?;
    let_go(&stage, &claim).await?;
    let report = report_of(&stage, &claim).await?;
    assert_eq!(report.cause(), Some("BinaryMissing"));
    Ok(())
}

#[tokio::test]
async fn a_pending_claim_that_somebody_deletes_is_no_failure() -> Result<()> {
    let stage = Stage::set("withdrawn", "{}").await?;
    let _controller = stage.observe();
    let claim = stage.claim_name("a");
    stage.karpenter.launch(&claim, stage.pool(), "202601.13.0").await?;
    stage.karpenter.delete_claim(&claim).await?;
    let other = stage.claim_name("b");
    stage.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    report_of(&stage, &other).await?;
    let reports = stage.reports_when("one report", |reports| !reports.is_empty()).await?;
    assert_eq!(reports.len(), 1);
    assert!(stage.events(&claim).await?.is_empty());
    Ok(())
}
