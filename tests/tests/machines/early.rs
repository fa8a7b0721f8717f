//! Machines whose VM comes late: its bootstrap data is late, or Azure has no capacity.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_end_to_end::arm::Arm;
use kube::api::DynamicObject;
use serde_json::json;

use crate::common::{ManagementCluster, condition};
use crate::conditions::FAILS;
use crate::launch::Wanted;

fn status(machine: &DynamicObject) -> Option<&str> {
    condition(machine, "BootstrapSucceeded")?["status"].as_str()
}

/// The number of reads of a VM.
fn looks(cluster: &ManagementCluster, vm: &str) -> usize {
    cluster.azure.with(|azure| count_looks(azure, vm))
}

fn count_looks(azure: &mut Azure, vm: &str) -> usize {
    let all = azure.journal().requests().iter();
    all.filter(|one| one.method == "GET" && one.path.contains(&format!("/{vm}?"))).count()
}

/// Lets time pass, and waits until the controller has read the VM again.
async fn pass(cluster: &ManagementCluster, vm: &str, minutes: u64) -> Result<()> {
    let before = looks(cluster, vm);
    cluster.azure.advance(Duration::from_mins(minutes));
    let count = |azure: &mut Azure| count_looks(azure, vm);
    cluster.azure_when(&format!("a look at {vm}"), count, |count| *count != before).await?;
    cluster.until_looked(vm).await
}

#[tokio::test]
async fn a_machine_is_left_alone_until_there_is_something_to_make_it_from() -> Result<()> {
    let cluster = ManagementCluster::new("waiting", FAILS).await?;
    let early = Wanted { is_said: false, has_data: false, ..Wanted::linux("worker-1") };
    cluster.create_machine(early, None).await?;
    cluster.azure.advance(Duration::from_mins(20));
    // A controller that has seen the second Machine has also seen the first.
    cluster.launch(Wanted::linux("worker-2")).await?;
    cluster.verdict("worker-2").await?;
    assert_eq!(looks(&cluster, "worker-1"), 0, "there is nothing to look at");
    assert_eq!(status(&cluster.machines().get("worker-1").await?), None);
    assert_eq!(cluster.reports().await?.len(), 1, "of the other");
    Ok(())
}

#[tokio::test]
async fn a_machine_is_judged_by_the_age_of_its_vm_and_not_by_its_own() -> Result<()> {
    let boot = json!({ "bootstrap": "user-data", "agent": "silent", "console": "" });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string();
    let cluster = ManagementCluster::with_manual_clock("late", &scenario).await?;
    let late = Wanted { is_said: false, console: false, ..Wanted::linux("worker-1") };
    cluster.create_machine(late, None).await?;
    let is_seen = |it: &DynamicObject| status(it).is_some();
    cluster.until(cluster.machines(), "worker-1", "the Machine to be seen", is_seen).await?;
    for minutes in [2, 3, 10, 5] {
        pass(&cluster, "worker-1", minutes).await?;
        let machine = cluster.machines().get("worker-1").await?;
        assert_eq!(status(&machine), Some("Unknown"), "after {minutes} more minutes");
    }
    // Azure now has capacity.
    let id = cluster.put_vm(late)?;
    pass(&cluster, "worker-1", 2).await?;
    pass(&cluster, "worker-1", 3).await?;
    let machine = cluster.machines().get("worker-1").await?;
    assert_eq!(status(&machine), Some("Unknown"), "it is five minutes old");
    assert_eq!(cluster.reports().await?.len(), 0);
    let said = Arm::new(cluster.azure.clone()).get(&id)?;
    let born = said.body["properties"]["timeCreated"].as_str().context("its birth")?.to_owned();
    pass(&cluster, "worker-1", 5).await?;
    let is_judged = |it: &DynamicObject| status(it) == Some("False");
    let machine = cluster.until(cluster.machines(), "worker-1", "a verdict", is_judged).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "GuestAgentUnresponsive", "{verdict}, born {born}");
    Ok(())
}
