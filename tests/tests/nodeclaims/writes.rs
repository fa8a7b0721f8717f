//! bringup's writes, other writers that overwrite them, and the state that a crash leaves.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use bringup_end_to_end::vm_fleet::Reads;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition, OURS, find};
use bringup_objects::{BootstrapReport, NodeClaim};
use bringup_runtime::effect_hook::EffectHook;
use bringup_testbed::wait::{polled, until};
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::common::{ORAS_MISSING, conditions, fail, message, status_and_reason};

fn ours(claim: &NodeClaim) -> Vec<Condition> {
    let mut ours: Vec<Condition> = conditions(claim)
        .iter()
        .filter(|held| OURS.contains(&held.type_.as_str()))
        .cloned()
        .collect();
    ours.sort_by(|one, other| one.type_.cmp(&other.type_));
    ours
}

#[tokio::test]
async fn test_19_conditions_that_karpenter_wipes_are_back_as_they_were() -> Result<()> {
    let bed = TestBed::named("t19", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let (told, _) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    let claim = bed.claim_name("a");
    let before = ours(&told);
    assert_eq!(before.len(), 2);

    // A verdict exists, so nothing else is due: only the wipe itself makes bringup write the conditions
    // again.
    let reads = Reads::of(&bed.azure).of_claim(&claim);
    bed.karpenter.overwrite(&claim).await?;
    let back = bed.claim_when(&claim, "our conditions", |claim| ours(claim).len() == 2).await?;
    assert_eq!(Reads::of(&bed.azure).of_claim(&claim), reads);
    // Test 30: the message is the same too, since there is no clock in it.
    assert_eq!(ours(&back), before, "with the moment of their transition");
    assert_eq!(bed.events(&claim).await?.len(), 1);
    assert_eq!(bed.reports_when("one report", |all| !all.is_empty()).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn case_48_conditions_of_others_survive_ours() -> Result<()> {
    let bed = TestBed::named("others", ORAS_MISSING).await?;
    let _controller = bed.observe();
    let (told, _) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    let theirs = |claim: &NodeClaim| -> Vec<Condition> {
        let all = conditions(claim).iter();
        all.filter(|held| !OURS.contains(&held.type_.as_str())).cloned().collect()
    };
    let before = theirs(&told);
    assert!(!before.is_empty(), "Karpenter has conditions on it");
    // A node that joins after all makes bringup write once more.
    let claim = bed.claim_name("a");
    bed.karpenter.register(&claim).await?;
    let up = |claim: &NodeClaim| {
        ours(claim).iter().any(|one| one.type_ == BOOTSTRAP_SUCCEEDED && one.status == "True")
    };
    let after = bed.claim_when(&claim, "a node that came up", up).await?;
    let after = theirs(&after);
    for one in &before {
        let held = find(&after, &one.type_);
        if ["Registered", "Initialized", "Ready"].contains(&one.type_.as_str()) {
            assert_eq!(held.map(|held| held.status.as_str()), Some("True"), "as Karpenter says");
        } else {
            assert_eq!(held, Some(one), "as it was");
        }
    }
    Ok(())
}

#[tokio::test]
async fn two_hundred_wipes_in_a_row_lose_nothing_and_then_nothing_is_written() -> Result<()> {
    let bed = TestBed::named("wipes", ORAS_MISSING).await?;
    let controller = bed.observe();
    let (told, _) = fail(&bed, "a", &Order::of("202601.27.0")).await?;
    let claim = bed.claim_name("a");
    let before = ours(&told);
    for _ in 0..200 {
        bed.karpenter.overwrite(&claim).await?;
        // Between writes of the same condition there are pauses, by the simulated clock.
        bed.azure.advance(Duration::from_secs(31));
        bed.claim_when(&claim, "our conditions", |claim| ours(claim) == before).await?;
    }
    assert_eq!(bed.events(&claim).await?.len(), 1);
    assert_eq!(bed.reports_when("one report", |all| !all.is_empty()).await?.len(), 1);
    let version = bed.claims().get(&claim).await?.metadata.resource_version;
    // Another verdict shows that the controller had time to write, and wrote nothing here.
    fail(&bed, "b", &Order::of("202601.27.0")).await?;
    assert_eq!(bed.claims().get(&claim).await?.metadata.resource_version, version);
    let metrics = controller.controller.metrics().text();
    assert!(metrics.contains("bringup_condition_reasserts_total "), "{metrics}");
    Ok(())
}

/// Stops the controller at an effect: the task that caused it hangs for ever.
fn stop_at(effect: usize) -> (EffectHook, Arc<Notify>, Arc<AtomicUsize>) {
    let (stopped, seen) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let hook = EffectHook::new({
        let (stopped, seen) = (stopped.clone(), seen.clone());
        move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) + 1 == effect {
                stopped.notify_one();
                return futures::future::pending().boxed();
            }
            futures::future::ready(()).boxed()
        }
    });
    (hook, stopped, seen)
}

/// The final state of an attempt.
#[derive(Debug, PartialEq)]
struct End {
    conditions: Vec<(String, String, String)>,
    cause: Option<String>,
    reports: usize,
    events: Vec<String>,
}

async fn end_of(bed: &TestBed, claim: &str) -> Result<End> {
    let report = bed.report_of(claim).await?;
    let object = bed.failed_claim(claim).await?;
    let about = |report: &&BootstrapReport| report.spec.target_ref.name == claim;
    let reports = bed.reports_when("reports", |all| !all.is_empty()).await?;
    let events = bed.events(claim).await?;
    Ok(End {
        conditions: ours(&object)
            .into_iter()
            .map(|held| (held.type_, held.status, held.reason))
            .collect(),
        cause: report.cause().map(str::to_owned),
        reports: reports.iter().filter(about).count(),
        events: events.into_iter().filter_map(|event| event.reason).collect(),
    })
}

/// The number of effects in a whole run, and its final state.
async fn effects_of_a_run(bed: &TestBed) -> Result<(usize, End)> {
    let (hook, _, seen) = stop_at(usize::MAX);
    let running = bed.observe_with(bed.client.clone(), hook);
    let claim = bed.claim_name("whole");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    let end = end_of(bed, &claim).await?;
    drop(running);
    Ok((seen.load(Ordering::SeqCst), end))
}

#[tokio::test]
async fn test_25_a_crash_after_any_effect_leads_to_the_same_end() -> Result<()> {
    let bed = TestBed::named("t25", ORAS_MISSING).await?;
    let (effects, wanted) = effects_of_a_run(&bed).await?;
    assert!(effects >= 6, "reads and writes: {effects}");
    assert_eq!((wanted.reports, wanted.events.as_slice()), (1, &["CSEFailed".to_owned()][..]));
    let mut crashes = 0;
    for effect in 1..=effects {
        let claim = bed.claim_name(format!("crash{effect}"));
        let (hook, stopped, _) = stop_at(effect);
        let first = bed.observe_with(bed.client.clone(), hook);
        bed.fail(&claim, &Order::of("202601.27.0")).await?;
        tokio::select! {
            biased;
            () = stopped.notified() => crashes += 1,
            // If Karpenter's report arrives early enough, a run has one effect less: a claim whose VM is
            // about to be deleted is read first.
            end = end_of(&bed, &claim) => assert_eq!(end?, wanted, "without effect {effect}"),
        }
        // The controller loses everything in memory.
        drop(first);
        let second = bed.observe();
        assert_eq!(end_of(&bed, &claim).await?, wanted, "after a crash at effect {effect}");
        drop(second);
    }
    assert!(crashes + 2 >= effects, "{crashes} crashes at {effects} effects");
    Ok(())
}

/// Stops the task that has created a report, for ever.
fn stop_after_the_report(created: &Arc<Notify>) -> EffectHook {
    let created = created.clone();
    EffectHook::new(move |effect| {
        if effect == "report created" {
            created.notify_one();
            return futures::future::pending().boxed();
        }
        futures::future::ready(()).boxed()
    })
}

#[tokio::test]
async fn a_crash_after_the_report_with_the_vm_gone_meanwhile_loses_nothing() -> Result<()> {
    let bed = TestBed::named("gone", ORAS_MISSING).await?;
    let claim = bed.claim_name("a");
    let created = Arc::new(Notify::new());
    let hook = stop_after_the_report(&created);
    let first = bed.observe_with(bed.client.clone(), hook);
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    created.notified().await;
    drop(first);
    bed.karpenter.clean_up(&claim).await?;
    let _second = bed.observe();
    let report = bed.report_of(&claim).await?;
    assert_eq!(report.cause(), Some("BinaryMissing"));
    assert_eq!(bed.events(&claim).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_change_of_leader_in_the_middle_leads_to_the_same_end() -> Result<()> {
    let bed = TestBed::named("leaders", ORAS_MISSING).await?;
    let claim = bed.claim_name("a");
    // The first leader hangs after its report, and then stops in good order.
    let (created, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let hook = stop_after_the_report(&created);
    let first = bed.controller("first", hook);
    let second = bed.controller("second", EffectHook::default());
    let first = tokio::spawn({
        let stop = stop.clone();
        async move { first.lead(async move { stop.notified().await }).await }
    });
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    created.notified().await;
    let second = tokio::spawn(async move { second.lead(futures::future::pending()).await });
    stop.notify_one();
    first.await?;
    let end = end_of(&bed, &claim).await?;
    assert_eq!((end.reports, end.events.as_slice()), (1, &["CSEFailed".to_owned()][..]));
    assert_eq!(end.cause.as_deref(), Some("BinaryMissing"));
    second.abort();
    Ok(())
}

#[tokio::test]
async fn test_31_old_reports_go_and_of_each_pool_only_the_newest_stay() -> Result<()> {
    let mut bed = TestBed::named("t31", ORAS_MISSING).await?;
    bed.settings.reports_per_parent = 3;
    let controller = bed.observe();
    for name in ["a", "b", "c", "d", "e"] {
        fail(&bed, name, &Order::of("202601.27.0")).await?;
        bed.karpenter.clean_up(&bed.claim_name(name)).await?;
        bed.azure.advance(Duration::from_secs(30));
    }
    let kept = bed.reports_when("three reports", |all| all.len() == 3).await?;
    let mut names: Vec<_> = kept.iter().map(|kept| kept.spec.target_ref.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["t31-c", "t31-d", "t31-e"]);
    // The reports survive a restart, and are deleted when their time is over.
    drop(controller);
    let _controller = bed.observe();
    bed.azure.advance(Duration::from_hours(8 * 24));
    bed.reports_when("no reports", <[_]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn test_32_a_claim_of_a_foreign_class_is_untouched_and_costs_nothing() -> Result<()> {
    let bed = TestBed::named("t32", ORAS_MISSING).await?;
    let controller = bed.observe();
    let foreign = StandInKarpenter::new(bed.client.clone(), bed.azure.clone(), "OtherClass");
    let claim = bed.claim_name("a");
    foreign.launch(&claim, bed.pool(), "202601.27.0").await?;
    let error = foreign.bootstrap(&claim)?.context("the script should fail")?;
    foreign.report_failure(&claim, &error).await?;
    bed.azure.advance(Duration::from_mins(13));
    // A claim without a VM gets its verdict after the foreign claim, and costs no reads.
    let other = bed.claim_name("b");
    bed.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    bed.report_of(&other).await?;
    let object = bed.claims().get(&claim).await?;
    assert!(ours(&object).is_empty());
    assert!(bed.events(&claim).await?.is_empty());
    let metrics = controller.controller.metrics().text();
    assert!(!metrics.contains("bringup_arm_requests_total{"), "{metrics}");
    Ok(())
}

#[tokio::test]
async fn a_claim_is_not_written_to_before_its_vm_was_accepted() -> Result<()> {
    let bed = TestBed::named("unlaunched", "{}").await?;
    let _controller = bed.observe();
    let claim = bed.claim_name("a");
    bed.karpenter.claim(&claim, Some(bed.pool())).await?;
    let version = bed.claims().get(&claim).await?.metadata.resource_version;
    let other = bed.claim_name("b");
    bed.karpenter.launch_standalone(&other, "AllocationFailed: no capacity").await?;
    bed.report_of(&other).await?;
    assert_eq!(bed.claims().get(&claim).await?.metadata.resource_version, version);
    Ok(())
}

#[tokio::test]
async fn failures_of_one_pool_with_the_same_cause_share_one_event_that_counts() -> Result<()> {
    let bed = TestBed::named("series", ORAS_MISSING).await?;
    let _controller = bed.observe();
    for name in ["a", "b", "c"] {
        fail(&bed, name, &Order::of("202601.27.0")).await?;
    }
    let events = bed.events(bed.pool()).await?;
    let count: i32 =
        events.iter().map(|event| event.series.as_ref().map_or(1, |series| series.count)).sum();
    // A window may end between two of these failures; then there are two Events.
    assert!(events.len() <= 2 && count == 3, "{} Events count {count}", events.len());
    assert!(message(&bed.claims().get("series-a").await?, CSE_PROVISIONED).len() > 100);
    assert!(status_and_reason(&bed.claims().get("series-a").await?, BOOTSTRAP_SUCCEEDED).is_some());
    Ok(())
}

#[tokio::test]
async fn a_dry_run_reaches_its_verdict_and_writes_nothing() -> Result<()> {
    let mut bed = TestBed::named("dry", ORAS_MISSING).await?;
    bed.settings.dry_run = true;
    let dry = bed.observe();
    let claim = bed.claim_name("a");
    bed.fail(&claim, &Order::of("202601.27.0")).await?;
    let version = bed.claims().get(&claim).await?.metadata.resource_version;
    let failed =
        |text: &str| text.contains("bringup_bootstrap_failures_total{cause=\"BinaryMissing\"");
    let metrics = polled(async || Ok::<_, Infallible>(dry.controller.metrics().text()));
    until("a verdict in the metrics", metrics, |text| failed(text)).await?;
    assert_eq!(bed.claims().get(&claim).await?.metadata.resource_version, version);
    assert!(bed.events(&claim).await?.is_empty());
    assert!(bed.reports_when("no report", <[_]>::is_empty).await?.is_empty());
    let metrics = dry.controller.metrics().text();
    let created = "bringup_api_writes_total{what=\"report created\"} 1\n";
    assert!(metrics.contains(created), "tried once: {metrics}");
    Ok(())
}
