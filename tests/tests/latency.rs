//! How soon a failure appears on its claim, and how many reads a healthy node costs.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use bringup_end_to_end::vm_fleet::Reads;
use bringup_objects::NodeClaim;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, find};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;

/// How many times faster the clock of Azure and of the controller runs than the wall clock.
const TIMES: f64 = 10.0;
/// A clock that almost stands still: minutes of the wall clock pass before the first scheduled read, and
/// a wait in these tests times out before that.
const STILL: f64 = 0.1;
/// The first scheduled read of a VM.
const FIRST: SignedDuration = SignedDuration::from_secs(45);
/// How long after its first read a VM is read for the sixth time, and the interval between all later
/// reads.
const SIX_READS: SignedDuration = SignedDuration::from_secs(150);
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// A test bed whose clock runs `times` times as fast as the wall clock.
async fn paced(name: &str, scenario: &str, times: f64) -> Result<TestBed> {
    TestBed::builder().named(name).scenario(scenario).pace(Pace::Times(times)).start().await
}

fn has_status(claim: &NodeClaim, kind: &str, status: &str) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    find(conditions, kind).is_some_and(|held| held.status == status)
}

#[tokio::test]
async fn a_failure_with_an_event_of_karpenter_is_on_the_claim_at_once() -> Result<()> {
    // The script ends before the first scheduled read, so that only the Event reveals the failure.
    let scenario = "rules: [{name: all, boot: {vmReadyAfter: 2s, script: {ends: {exitCode: 211, outerExitCode: 1, lasts: 1s, output: \"oras: command not found\\n+ exit 211\"}}}}]";
    let bed = paced("latency", scenario, STILL).await?;
    let _controller = bed.observe();
    let now = || bed.azure.clock().now();
    for nth in 0..15 {
        let (claim, launched) = (bed.claim_name(nth), now());
        bed.karpenter.launch(&claim, "latency", "202601.13.0").await?;
        bed.claim_when(&claim, "seen", |it| has_status(it, BOOTSTRAP_SUCCEEDED, "Unknown")).await?;
        let error = bed.karpenter.bootstrap(&claim)?.context("the script should fail")?;
        assert_eq!(Reads::of(&bed.azure).of_claim(&claim), 0, "{claim} is read too early");
        bed.karpenter.report_failure(&claim, &error).await?;
        bed.failed_claim(&claim).await?;
        let took = launched.duration_until(now());
        assert!(took < FIRST, "{claim}: {took} after its launch, by Azure's clock");
    }
    Ok(())
}

/// When ARM began to show that the scripts had failed, by the name of the claim.
fn failures_in_arm(bed: &TestBed) -> Result<BTreeMap<String, Timestamp>> {
    bed.azure.with(|azure| {
        let failed = azure.journal().text().lines().filter_map(|line| {
            let line = line.strip_suffix("/extensions/cse-agent-karpenter: Failed")?;
            let (at, vm) = line.split_once(" Microsoft.Compute/virtualMachines/aks-")?;
            Some((vm.to_owned(), at.to_owned()))
        });
        failed.map(|(vm, at)| Ok((vm, at.parse().context("a time in the journal")?))).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_without_an_event_is_on_the_claim_after_the_next_read() -> Result<()> {
    let claims = 30;
    let scenario = "rules: [{name: all, boot: {script: {ends: {exitCode: 211, outerExitCode: 1, output: \"oras: command not found\\n+ exit 211\"}}}}]";
    let mut bed = paced("untold", scenario, TIMES).await?;
    bed.settings.reports_per_parent = claims;
    let (bed, order) = (&bed, &Order::of("202601.27.0"));
    let _controller = bed.observe();
    bed.for_each_claim(claims, |claim| async move {
        bed.launch(&claim, bed.pool(), order).await?;
        bed.vm_in_state(&claim, "Succeeded").await?;
        bed.vm_fleet().start_script(&claim, order)?;
        bed.failed_claim(&claim).await.map(drop)
    })
    .await?;
    let shown = failures_in_arm(bed)?;
    let (reads, mut took) = (Reads::of(&bed.azure), Vec::new());
    for report in bed.reports().list(&ListParams::default()).await.context("list the reports")? {
        let claim = &report.spec.target_ref.name;
        let visible = *shown.get(claim).context("ARM showed the failure")?;
        // The API server stores whole seconds.
        let second = SignedDuration::from_secs(1);
        let finished = report.finished_at().context("a verdict has a time")? + second;
        // The intervals between reads are those of the schedule; on a busy computer they are longer.
        let path = StandInKarpenter::vm_path(claim).to_ascii_lowercase();
        let since =
            |(at, vm): &&(Timestamp, String)| *vm == path && (visible..=finished).contains(at);
        assert_eq!(reads.of_vms.iter().filter(since).count(), 1, "reads of {claim} that showed it");
        took.push(visible.duration_until(finished));
    }
    took.sort_unstable();
    assert_eq!(took.len(), claims);
    let (median, most) = (took[claims / 2], took[claims - 1]);
    println!("from the failure to the verdict, without Events: median {median}, most {most}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_node_costs_at_most_six_reads() -> Result<()> {
    let claims = 30;
    // A script that takes longer than nineteen of twenty scripts; all other steps take their usual time.
    let scenario = "rules: [{name: all, boot: {script: {ends: {exitCode: 0, lasts: 75s, output: \"+ exit 0\"}}}}]";
    let bed = &paced("healthy", scenario, TIMES).await?;
    let order = &Order::default();
    let _controller = bed.observe();
    bed.for_each_claim(claims, |claim| async move {
        bed.launch(&claim, bed.pool(), order).await?;
        bed.vm_in_state(&claim, "Succeeded").await?;
        bed.vm_fleet().start_script(&claim, order)?;
        bed.ready_node(&claim).await?;
        bed.karpenter.register(&claim).await?;
        bed.claim_when(&claim, "a success", |claim| {
            has_status(claim, BOOTSTRAP_SUCCEEDED, "True")
                && has_status(claim, CSE_PROVISIONED, "True")
        })
        .await
        .map(drop)
    })
    .await?;
    let reads = Reads::of(&bed.azure);
    let counts = reads.by_vm();
    let most = counts.values().copied().max().unwrap_or_default();
    println!("{claims} healthy nodes: {} reads of VMs, at most {most} of one", reads.of_vms.len());
    assert_eq!(counts.len(), claims, "each was read");
    // Azure's clock runs on while this computer is busy: a VM that takes longer is read once a minute.
    for (vm, count) in &counts {
        let mut at = reads.of_vms.iter().filter(|(_, read)| read == vm).map(|(at, _)| *at);
        let first = at.next().context("it was read")?;
        let last = at.next_back().unwrap_or(first);
        let longer = (first.duration_until(last) - SIX_READS).max(SignedDuration::ZERO);
        let allowed = 6.0 + (longer.as_secs_f64() / AGAIN.as_secs_f64()).ceil();
        assert!(f64::from(u32::try_from(*count)?) <= allowed, "{vm}: {counts:?}");
    }
    assert_eq!(reads.refused, 0);
    Ok(())
}
