//! How soon a verdict is written once Azure shows its evidence, by Azure's clock. While a test waits for
//! a verdict that clock stands still, so code that waits for the clock would wait for ever.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::arm::Arm;
use jiff::{SignedDuration, Timestamp};

use crate::common::ManagementCluster;
use crate::matrix::{Is, all, is_failed, launch, scenario};

/// The promised time from the evidence to the verdict.
const PROMISED: SignedDuration = SignedDuration::from_secs(3);

/// A machine whose console is to show its failure.
pub(crate) struct Watched {
    name: String,
    /// The address of the console.
    console: String,
    proof: &'static str,
    /// When the console first showed the proof.
    shown: Option<Timestamp>,
}

/// The id of a machine's VM.
async fn vm_of(cluster: &ManagementCluster, name: &str) -> Result<String> {
    let machine = cluster.machines().get(name).await?;
    let behind = match machine.data["spec"]["infrastructureRef"]["kind"].as_str() {
        Some("AzureMachinePoolMachine") => cluster.pooled(),
        _ => cluster.provided(),
    };
    let behind = behind.get(name).await?;
    let id = behind.data["spec"]["providerID"].as_str().context("there")?;
    Ok(id.trim_start_matches("azure://").to_owned())
}

/// The names of the machines of these cases.
fn cells(are: &[Is]) -> Vec<String> {
    let wanted = all().filter(|(_, case)| are.contains(&case.is));
    wanted.map(|(row, case)| case.machine(row)).collect()
}

/// A machine whose console is to show `proof`.
pub(crate) async fn watched(
    cluster: &ManagementCluster,
    name: &str,
    proof: &'static str,
) -> Result<Watched> {
    let vm = vm_of(cluster, name).await?;
    let console = Arm::new(cluster.azure.clone()).console_address(&vm)?;
    Ok(Watched { name: name.to_owned(), console, proof, shown: None })
}

/// Moves the clock on second by second, and stops it for each machine when the promised time is about to
/// be over: the clock continues only once the machine has its verdict.
#[expect(clippy::print_stdout, reason = "figures for the caller")]
pub(crate) async fn judged_in_time(
    cluster: &ManagementCluster,
    mut waiting: Vec<Watched>,
) -> Result<()> {
    let arm = Arm::new(cluster.azure.clone());
    let now = || cluster.azure.clock().now();
    println!("| form and failure | from Azure's storage to the condition, by its clock |");
    while !waiting.is_empty() {
        cluster.azure.advance(Duration::from_secs(1));
        for machine in waiting.iter_mut().filter(|machine| machine.shown.is_none()) {
            let is_shown = arm.blob(&machine.console)?.contains(machine.proof);
            machine.shown = is_shown.then(now);
        }
        let is_due = |machine: &mut Watched| {
            let due = machine.shown.map(|shown| shown + PROMISED - SignedDuration::from_secs(1));
            due.is_some_and(|due| due <= now())
        };
        for Watched { name, shown, .. } in waiting.extract_if(.., is_due) {
            let what = format!("a verdict of {name}");
            cluster.until(cluster.machines(), &name, &what, is_failed).await?;
            let took = shown.context("it is shown")?.duration_until(now());
            assert!(took < PROMISED, "{name}: {took}");
            println!("| {name} | at most {took:#} |");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_verdict_stands_within_three_seconds_of_its_evidence() -> Result<()> {
    let cluster = ManagementCluster::with_manual_clock("latency", &scenario("4m", "6m")).await?;
    launch(&cluster, &all().collect::<Vec<_>>()).await?;
    let mut waiting = Vec::new();
    for (row, case) in all().filter(|(_, case)| matches!(case.is, Is::Plain | Is::Bare)) {
        waiting.push(watched(&cluster, &case.machine(row), case.proof).await?);
    }
    assert_eq!(waiting.len(), 32);
    judged_in_time(&cluster, waiting).await?;

    // Where the console proves nothing, the next read of an extension gives the verdict.
    let decided = cells(&[Is::Hinted, Is::Dark, Is::Waited]);
    for name in &decided {
        assert!(!is_failed(&cluster.machines().get(name).await?), "{name} is judged too early");
    }
    cluster.azure.advance(Duration::from_mins(3));
    for name in &decided {
        cluster.until(cluster.machines(), name, &format!("a verdict of {name}"), is_failed).await?;
    }
    silent_ones_are_judged_when_their_time_is_over(&cluster).await
}

/// When Azure made a machine's VM.
async fn made(cluster: &ManagementCluster, name: &str) -> Result<Timestamp> {
    let vm = Arm::new(cluster.azure.clone()).get(&vm_of(cluster, name).await?)?;
    let made = vm.body["properties"]["timeCreated"].as_str().context("every VM was made")?;
    Ok(made.parse()?)
}

/// A machine without any evidence gets its verdict when its time is over: no sooner, and no later.
#[expect(clippy::print_stdout, reason = "figures for the caller")]
async fn silent_ones_are_judged_when_their_time_is_over(cluster: &ManagementCluster) -> Result<()> {
    let (now, second) = (|| cluster.azure.clock().now(), SignedDuration::from_secs(1));
    let silent = cells(&[Is::Silent]);
    let mut limit = Timestamp::MAX;
    for name in &silent {
        limit = limit.min(made(cluster, name).await? + SignedDuration::from_mins(10));
    }
    cluster.azure.advance(now().duration_until(limit - second).try_into()?);
    for name in &silent {
        assert!(!is_failed(&cluster.machines().get(name).await?), "{name} is judged too early");
    }
    // The time of every machine is over.
    cluster.azure.advance(now().duration_until(limit + second).try_into()?);
    for name in &silent {
        cluster.until(cluster.machines(), name, &format!("a verdict of {name}"), is_failed).await?;
        let took = limit.duration_until(now());
        assert!(took < PROMISED, "{name}: {took}");
        println!("| {name} | at most {took:#} after its time was over |");
    }
    Ok(())
}
