//! How soon a verdict stands once its evidence can be read. The clock stands still meanwhile: whatever
//! would wait for it, would wait for ever.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::common::{Ground, condition};
use crate::launch::{Form, Wanted};
use crate::matrix::{Case, Is, Row, all, launch, scenario};

/// What is promised.
const PROMISED: SignedDuration = SignedDuration::from_secs(3);

fn is_failed(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

/// When the VM of a machine was last looked at.
fn looked_at(ground: &Ground, row: Row, case: &Case) -> Result<Timestamp> {
    let name = case.machine(row);
    let vm = match row.form {
        Form::Vm => {
            format!("/{}?", bringup_objects::cluster_api::vm_name(&name, row.os == "Windows"))
        }
        Form::Uniform => format!("/virtualMachineScaleSets/{name}/virtualMachines/"),
        Form::Flexible | Form::Strange => format!("/virtualMachines/{name}_"),
    };
    ground.azure.with(|azure| {
        let mut all = azure.journal().requests().iter().rev();
        let read = all.find(|one| {
            one.method == "GET" && one.path.contains(&vm) && one.path.contains("instanceView")
        });
        Ok(read.with_context(|| format!("{name} was looked at"))?.at)
    })
}

/// Waits for the verdict on a machine while the clock stands, and says how long after the look it is
/// there by that clock.
async fn verdict(ground: &Ground, row: Row, case: &Case) -> Result<SignedDuration> {
    let name = case.machine(row);
    ground.until(ground.machines(), &name, &format!("a verdict of {name}"), is_failed).await?;
    Ok(looked_at(ground, row, case)?.duration_until(ground.azure.clock().now()))
}

#[tokio::test]
async fn a_verdict_stands_as_soon_as_its_evidence_can_be_read() -> Result<()> {
    let ground = Ground::paced("latency", &scenario(), Pace::Manual).await?;
    launch(&ground).await?;
    let cells = |late: bool| -> Vec<(Row, &'static Case)> {
        all()
            .filter(|(_, case)| case.is != Is::Healthy && (case.is == Is::Silent) == late)
            .collect()
    };
    println!("| form and failure | from the look to the condition, by the injected clock |");
    // The first looks, and those when time is over: in between nobody tells of anything.
    for (jump, late) in [(Duration::from_mins(3), false), (Duration::from_mins(12), true)] {
        let moved = Instant::now();
        ground.azure.advance(jump);
        let cells = cells(late);
        for (row, case) in &cells {
            let took = verdict(&ground, *row, case).await?;
            println!("| {} | {took} |", case.machine(*row));
            assert!(took < PROMISED, "{}: {took}", case.machine(*row));
        }
        println!(
            "{} at once: the last after {:.1?} of the wall's clock",
            cells.len(),
            moved.elapsed()
        );
    }
    Ok(())
}

#[tokio::test]
async fn what_the_provider_tells_is_looked_at_while_the_clock_stands() -> Result<()> {
    let waited = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";
    let script =
        json!({ "ends": { "exitCode": 31, "lasts": "5s", "json": "absent", "output": waited } });
    let boot = json!({ "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s", "script": script });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string();
    let ground = Ground::paced("told", &scenario, Pace::Manual).await?;
    // The API server's clock goes on, and what Azure shows must not be older than the Machine.
    ground.azure.advance(Duration::from_mins(3));
    ground.launch(Wanted { extensions: &["CustomScript"], ..Wanted::linux("worker-1") }).await?;
    let is_seen = |it: &DynamicObject| condition(it, "NodeBootstrapSucceeded").is_some();
    ground
        .until(ground.provided(), "worker-1", "the AzureMachine to be written to", is_seen)
        .await?;
    // The extension has failed, and the first look is still to come.
    ground.azure.advance(Duration::from_secs(20));
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
