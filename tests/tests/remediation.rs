//! Remediation end to end: the real core manager of Cluster API, with its MachineHealthCheck controller
//! and its webhooks, acts on the conditions that bringup writes to Machines.
//!
//! The manager uses the wall clock. Azure's clock, which bringup uses here too, starts behind the wall
//! clock and jumps to it, so that a verdict has the wall clock's time when the manager sees it.

#[path = "remediation/common.rs"]
mod common;

use anyhow::{Context as _, Result};
use bringup_end_to_end::cluster_api::can_run;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::Value;

use common::{Cluster, Machines, condition, is_up, of_cause};

/// A cause that another machine may not have, and one that it will have too.
const CURABLE: &str = "ApiServerUnreachable";
const INCURABLE: &str = "BinaryMissing";

fn how_many_up(machines: &Machines) -> usize {
    machines.values().filter(|machine| is_up(machine)).count()
}

fn is_false(condition: &Value) -> bool {
    condition["status"] == "False"
}

/// The manager's verdict on the health of a machine, whether or not the machine still exists.
async fn health_check_result(cluster: &Cluster, machine: &str) -> Result<(String, String)> {
    let what = format!("the manager's judgement of {machine}");
    cluster
        .until(&what, |seen| {
            seen.last.get(machine).and_then(|it| condition(it, "HealthCheckSucceeded")).is_some()
        })
        .await?;
    let said =
        condition(&cluster.last()[machine], "HealthCheckSucceeded").context("there")?.clone();
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    Ok((text("reason"), text("message")))
}

#[tokio::test]
async fn test_29_32_the_real_health_check_replaces_what_a_new_machine_cures_and_nothing_else()
-> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let cluster = Cluster::start("cured", &[CURABLE, INCURABLE]).await?;
    // Blind replacement is off: a machine is replaced only because of bringup's condition.
    cluster.apply(&cluster.health_check(&["--startup-timeout", "0s"])?)?;
    let first = cluster.grow(5).await?;
    cluster
        .until("three nodes, and verdicts on the others", |seen| {
            how_many_up(&seen.present) >= 3
                && [CURABLE, INCURABLE].iter().all(|cause| of_cause(&seen.last, cause).is_some())
        })
        .await?;
    let seen = cluster.last();
    let curable = of_cause(&seen, CURABLE).context("it was seen")?;
    let incurable = of_cause(&seen, INCURABLE).context("it was seen")?;
    for (machine, useful) in [(curable, "True"), (incurable, "False")] {
        let said = condition(machine, "bringup.dev/ReplacementUseful").context("there")?;
        assert_eq!(said["status"], useful, "{said}");
    }

    // The manager's own message: the check, the condition and the time.
    let (lost, kept) = (curable.name_any(), incurable.name_any());
    let (reason, message) = health_check_result(&cluster, &lost).await?;
    assert_eq!(reason, "UnhealthyMachine");
    let why = format!(
        "Condition bringup.dev/ReplacementUseful on Machine is reporting status True with reason {CURABLE} for more than 30s"
    );
    assert!(message.contains(&why), "{message}");
    cluster
        .until("a new machine in its place, which becomes a node", |seen| {
            !seen.present.contains_key(&lost) && how_many_up(&seen.present) == 4
        })
        .await?;
    let after = cluster.present();
    let new: Vec<_> = after.values().filter(|it| !first.contains_key(&it.name_any())).collect();
    assert_eq!((new.len(), after.len()), (1, 5), "one for one: {:?}", after.keys());
    // By the times in Kubernetes, the replacement takes 30 s of the check, and a second or two of the
    // manager.
    let verdict = condition(curable, "bringup.dev/ReplacementUseful").context("there")?;
    let verdict: Timestamp = verdict["lastTransitionTime"].as_str().context("a time")?.parse()?;
    let replaced = new[0].metadata.creation_timestamp.as_ref().context("a time")?.0;
    let took = replaced.duration_since(verdict);
    println!("a new machine was there {took:#} after the verdict");
    // The promise is one minute; a computer under load may take ten times as long.
    assert!(took < SignedDuration::from_mins(10), "the new machine came after {took:#}");

    // The manager has counted the new node, so it has already seen all conditions of the other machine.
    // The manager has left that machine alone.
    cluster
        .until_check("the manager's count of nodes", |check| {
            let status = &check.data["status"];
            status["expectedMachines"] == 5 && status["currentHealthy"] == 4
        })
        .await?;
    let other = cluster.machines().get(&kept).await?;
    assert_eq!(other.uid(), incurable.uid());
    assert!(other.metadata.deletion_timestamp.is_none(), "{kept} is being deleted");
    assert!(condition(&other, "HealthCheckSucceeded").is_none(), "{:#}", other.data["status"]);

    // The report about the deleted machine stays, because its owner still exists.
    let report = cluster.report_of(&lost).await?;
    let deployment = cluster.deployments().get("cured-md-0").await?;
    let owners = report.owner_references();
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!(owners[0].kind, "MachineDeployment");
    assert_eq!(Some(&owners[0].uid), deployment.uid().as_ref());

    // The startup timeout is blind: it replaces the other machine as well.
    cluster.apply(&cluster.health_check(&["--startup-timeout", "30s"])?)?;
    let (reason, message) = health_check_result(&cluster, &kept).await?;
    assert_eq!(reason, "NodeStartupTimeout");
    assert!(message.contains("Node failed to report startup in 30s"), "{message}");
    cluster.until("the blind replacement", |seen| !seen.present.contains_key(&kept)).await?;
    cluster.report_of(&kept).await?;

    // The garbage collector deletes objects without an owner: the report is deleted after its
    // MachineDeployment.
    cluster.deployments().delete("cured-md-0", &DeleteParams::default()).await?;
    cluster.until_gone(&report).await
}

#[tokio::test]
async fn every_printed_health_check_is_accepted_by_the_real_webhooks() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let cluster = Cluster::start("asked", &[]).await?;
    let forms: [&[&str]; 5] = [
        &[],
        &["--startup-timeout", "0s"],
        &["--machine-deployment", "asked-md-0", "--max-unhealthy", "3"],
        &["--machine-deployment", "1"],
        &["--control-plane", "--max-unhealthy", "100%"],
    ];
    for arguments in forms {
        let check = cluster.health_check(arguments)?;
        cluster.dry_run(&check).with_context(|| format!("{arguments:?}"))?;
    }
    // The webhooks are called: they refuse an object that the definitions allow.
    let check = cluster.health_check(&["--startup-timeout", "30s"])?;
    let wrong =
        check.replace("TimeoutSeconds: 30\n    unhealthy", "TimeoutSeconds: 29\n    unhealthy");
    let refused = cluster.dry_run(&wrong).err().context("it is accepted")?;
    assert!(format!("{refused:#}").contains("must be at least 30s"), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn a_health_check_of_the_verdict_itself_replaces_what_a_new_machine_cannot_cure() -> Result<()>
{
    if !can_run() {
        return Ok(());
    }
    let cluster = Cluster::start("blamed", &[INCURABLE]).await?;
    let check = cluster.health_check(&["--startup-timeout", "0s"])?;
    let ours = "bringup.dev/ReplacementUseful\n      status: \"True\"";
    assert!(check.contains(ours), "{check}");
    cluster.apply(&check.replace(ours, "BootstrapSucceeded\n      status: \"False\""))?;
    cluster.grow(3).await?;
    cluster.until("a verdict", |seen| of_cause(&seen.last, INCURABLE).is_some()).await?;
    let name = of_cause(&cluster.last(), INCURABLE).context("it was seen")?.name_any();
    let (reason, message) = health_check_result(&cluster, &name).await?;
    assert_eq!(reason, "UnhealthyMachine");
    let why = format!(
        "Condition BootstrapSucceeded on Machine is reporting status False with reason {INCURABLE}"
    );
    assert!(message.contains(&why), "{message}");
    cluster.until("the useless replacement", |seen| !seen.present.contains_key(&name)).await
}

#[tokio::test]
async fn with_too_many_machines_without_a_node_none_is_replaced() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let cluster = Cluster::start("many", &[CURABLE, CURABLE]).await?;
    // Two of three machines are more than 40 %. In this test the check acts on conditions at once.
    let check = |arguments: &[&str]| -> Result<String> {
        let check = cluster.health_check(arguments)?;
        Ok(check.replace("      timeoutSeconds: 30\n", "      timeoutSeconds: 0\n"))
    };
    cluster.apply(&check(&["--startup-timeout", "0s"])?)?;
    cluster.grow(3).await?;
    let is_judged =
        |it: &&DynamicObject| condition(it, "HealthCheckSucceeded").is_some_and(is_false);
    cluster
        .until("both to be judged", |seen| seen.last.values().filter(is_judged).count() == 2)
        .await?;
    cluster
        .until_check("the manager's refusal", |check| {
            condition(check, "RemediationAllowed")
                .is_some_and(|it| is_false(it) && it["reason"] == "TooManyUnhealthy")
        })
        .await?;
    let seen = cluster.present();
    let lost: Vec<_> = seen.values().filter(is_judged).collect();
    assert_eq!((seen.len(), lost.len()), (3, 2));
    for machine in &lost {
        assert!(condition(machine, "OwnerRemediated").is_none(), "{:#}", machine.data["status"]);
        assert!(machine.metadata.deletion_timestamp.is_none());
    }

    cluster.apply(&check(&["--startup-timeout", "0s", "--max-unhealthy", "2"])?)?;
    cluster
        .until("both to be replaced, once that is allowed", |seen| {
            lost.iter().all(|it| !seen.present.contains_key(&it.name_any()))
                && how_many_up(&seen.present) == 3
        })
        .await
}
