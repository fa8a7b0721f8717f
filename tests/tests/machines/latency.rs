//! How soon a verdict stands once Azure shows its evidence, by Azure's clock. Where a verdict is waited
//! for that clock stands still: whatever would wait for it, would wait for ever.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_world::arm::Arm;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::common::{Ground, condition};
use crate::launch::Wanted;
use crate::matrix::{Is, all, launch, scenario};

/// What is promised.
const PROMISED: SignedDuration = SignedDuration::from_secs(3);

fn is_failed(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

/// A machine whose console is to tell of its failure.
pub(crate) struct Watched {
    name: String,
    /// Where its console is stored.
    console: String,
    proof: &'static str,
    /// When that was first to be read there.
    shown: Option<Timestamp>,
}

/// A machine whose console is to show this.
pub(crate) async fn watched(ground: &Ground, name: &str, proof: &'static str) -> Result<Watched> {
    let machine = ground.machines().get(name).await?;
    let id = machine.data["spec"]["providerID"].as_str().context("there")?;
    let vm = id.trim_start_matches("azure://");
    let console = Arm::new(ground.azure.clone()).console_address(vm)?;
    Ok(Watched { name: name.to_owned(), console, proof, shown: None })
}

/// Lets time go by second by second, and stops it for each machine when what is promised for it is
/// about to be over: its verdict must be there before it goes on.
#[expect(clippy::print_stdout, reason = "figures for whoever asks for them")]
pub(crate) async fn judged_in_time(ground: &Ground, mut waiting: Vec<Watched>) -> Result<()> {
    let arm = Arm::new(ground.azure.clone());
    let now = || ground.azure.clock().now();
    println!(
        "| form and failure | from Azure's storage to the condition, by its clock | by the wall's |"
    );
    while !waiting.is_empty() {
        ground.azure.advance(Duration::from_secs(1));
        let moved = Instant::now();
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
            ground.until(ground.machines(), &name, &what, is_failed).await?;
            let took = shown.context("it is shown")?.duration_until(now());
            assert!(took < PROMISED, "{name}: {took}");
            println!("| {name} | at most {took:#} | and {:.2?} |", moved.elapsed());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_verdict_stands_within_three_seconds_of_its_evidence() -> Result<()> {
    let ground = Ground::paced("latency", &scenario("4m", "6m"), Pace::Manual).await?;
    launch(&ground).await?;
    let mut waiting = Vec::new();
    for (row, case) in all().filter(|(_, case)| matches!(case.is, Is::Plain | Is::Bare)) {
        waiting.push(watched(&ground, &case.machine(row), case.proof).await?);
    }
    assert_eq!(waiting.len(), 32);
    judged_in_time(&ground, waiting).await?;

    // Where the console proves nothing, the provider's extension ends it; where nothing does, its time.
    for (jump, decided) in [(3, &[Is::Hinted, Is::Dark][..]), (12, &[Is::Silent][..])] {
        let cells: Vec<String> = all()
            .filter(|(_, case)| decided.contains(&case.is))
            .map(|(row, case)| case.machine(row))
            .collect();
        for name in &cells {
            assert!(!is_failed(&ground.machines().get(name).await?), "{name} is judged too early");
        }
        ground.azure.advance(Duration::from_mins(jump));
        for name in &cells {
            let what = format!("a verdict of {name}");
            ground.until(ground.machines(), name, &what, is_failed).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_the_provider_tells_is_looked_at_while_the_clock_stands() -> Result<()> {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";
    let script =
        json!({ "ends": { "exitCode": 31, "lasts": "1s", "json": "absent", "output": waited } });
    let boot = json!({ "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s", "script": script });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string();
    let ground = Ground::paced("told", &scenario, Pace::Manual).await?;
    // The API server's clock goes on, and what Azure shows must not be older than the Machine.
    ground.azure.advance(Duration::from_mins(3));
    // Its console says nothing.
    let extensions = &["CustomScript"][..];
    ground.launch(Wanted { extensions, console: false, ..Wanted::linux("worker-1") }).await?;
    let is_seen = |it: &DynamicObject| condition(it, "NodeBootstrapSucceeded").is_some();
    ground
        .until(ground.provided(), "worker-1", "the AzureMachine to be written to", is_seen)
        .await?;
    // The extension has failed, and the first look is still to come.
    ground.azure.advance(Duration::from_secs(25));
    let reads = || {
        ground.azure.with(|azure| {
            let all = azure.journal().requests();
            all.iter()
                .filter(|one| one.method == "GET" && one.path.contains("instanceView"))
                .count()
        })
    };
    assert_eq!(reads(), 0, "nobody has a reason to look yet");

    let provided = ground.provided().get("worker-1").await?;
    let mut conditions = provided.data["status"]["conditions"].clone();
    let now = ground.azure.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let told = json!({
        "type": "BootstrapSucceeded", "status": "False", "severity": "Error", "reason": "Failed",
        "message": "the extension failed", "lastTransitionTime": now,
    });
    conditions.as_array_mut().context("there are conditions")?.push(told);
    let moved = Instant::now();
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    ground.provided().patch_status("worker-1", &PatchParams::default(), &patch).await?;
    let machine = ground.until(ground.machines(), "worker-1", "a verdict", is_failed).await?;
    println!("told by the provider: the verdict after {:.1?} of the wall's clock", moved.elapsed());
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "BootstrapTokenInvalid", "{verdict}");
    Ok(())
}
