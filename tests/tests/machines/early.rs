//! Machines whose VM is late: it is made from data that comes late itself, or Azure has no room for it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_world::arm::Arm;
use kube::api::DynamicObject;
use serde_json::json;

use crate::common::{Ground, condition};
use crate::conditions::FAILS;
use crate::launch::Wanted;

/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(5);

fn status(machine: &DynamicObject) -> Option<&str> {
    condition(machine, "BootstrapSucceeded")?["status"].as_str()
}

/// How often a VM was looked at.
fn looks(ground: &Ground, vm: &str) -> usize {
    ground.azure.with(|azure| {
        let all = azure.journal().requests().iter();
        all.filter(|one| one.method == "GET" && one.path.contains(&format!("/{vm}?"))).count()
    })
}

/// Lets time pass, and waits until a VM has been looked at since.
async fn pass(ground: &Ground, vm: &str, minutes: u64) -> Result<()> {
    let (mut changes, before) = (ground.azure.changes(), looks(ground, vm));
    ground.azure.advance(Duration::from_mins(minutes));
    let looked = async {
        while looks(ground, vm) == before {
            ground.azure.changed(&mut changes).await;
        }
    };
    tokio::time::timeout(FOREVER, looked).await.context("waited in vain for a look")?;
    ground.until_looked(vm).await;
    Ok(())
}

#[tokio::test]
async fn a_machine_is_left_alone_until_there_is_something_to_make_it_from() -> Result<()> {
    let ground = Ground::new("waiting", FAILS).await?;
    let early = Wanted { is_said: false, has_data: false, ..Wanted::linux("worker-1") };
    ground.introduce(early, None).await?;
    ground.azure.advance(Duration::from_mins(20));
    // A client that has seen the one has seen the other.
    ground.launch(Wanted::linux("worker-2")).await?;
    ground.verdict("worker-2").await?;
    assert_eq!(looks(&ground, "worker-1"), 0, "there is nothing to look at");
    assert_eq!(status(&ground.machines().get("worker-1").await?), None);
    assert_eq!(ground.reports().await?.len(), 1, "of the other");
    Ok(())
}

#[tokio::test]
async fn a_machine_is_judged_by_the_age_of_its_vm_and_not_by_its_own() -> Result<()> {
    let boot = json!({ "bootstrap": "user-data", "agent": "silent", "console": "" });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string();
    let ground = Ground::paced("late", &scenario, Pace::Manual).await?;
    let late = Wanted { is_said: false, console: false, ..Wanted::linux("worker-1") };
    ground.introduce(late, None).await?;
    let is_seen = |it: &DynamicObject| status(it).is_some();
    ground.until(ground.machines(), "worker-1", "the Machine to be seen", is_seen).await?;
    for minutes in [2, 3, 10, 5] {
        pass(&ground, "worker-1", minutes).await?;
        let machine = ground.machines().get("worker-1").await?;
        assert_eq!(status(&machine), Some("Unknown"), "after {minutes} more minutes");
    }
    // Azure has room at last.
    let id = ground.put_vm(late)?;
    pass(&ground, "worker-1", 2).await?;
    pass(&ground, "worker-1", 3).await?;
    let machine = ground.machines().get("worker-1").await?;
    assert_eq!(status(&machine), Some("Unknown"), "it is five minutes old");
    assert_eq!(ground.reports().await?.len(), 0);
    let said = Arm::new(ground.azure.clone()).get(&id)?;
    let born = said.body["properties"]["timeCreated"].as_str().context("its birth")?.to_owned();
    pass(&ground, "worker-1", 5).await?;
    let is_judged = |it: &DynamicObject| status(it) == Some("False");
    let machine = ground.until(ground.machines(), "worker-1", "a verdict", is_judged).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "GuestAgentUnresponsive", "{verdict}, born {born}");
    Ok(())
}
