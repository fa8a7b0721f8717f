//! The same storm for bringup and for a model of the system that bringup replaces: 200 requests without
//! quota, 50 nodes that never join, and one restart in the middle.
//!
//! The model does what is reported of that system: it creates a NIC, requests the VM, and if Azure refuses
//! the VM, deletes the NIC in a separate task after three and a half minutes. It stores no state and runs no
//! sweep.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use std::collections::BTreeMap;

use bringup_azure::error::ArmFailure;
use bringup_flex::backoff::{BackOff, VmRequest};
use bringup_flex::class::CapacityType;
use bringup_flex::engine::Next;
use bringup_flex::tally::Tally;
use bringup_flex::trouble::Trouble;
use bringup_objects::flex::machine::Phase;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use world::{Crash, SUBSCRIPTION, World, machine, place};

const REFUSED: usize = 200;
const BROKEN: usize = 50;
/// The pause between two requests: all requests arrive within eight minutes.
const EACH: SignedDuration = SignedDuration::from_millis(1_920);
const RESTART: SignedDuration = SignedDuration::from_mins(5);
/// When a claim is deleted whose node does not join: in the model, after the time that Karpenter waits; in
/// bringup, after the console shows the node's own result.
const GIVEN_UP: SignedDuration = SignedDuration::from_mins(15);
const JUDGED: SignedDuration = SignedDuration::from_secs(75);
const CLEANED_AFTER: SignedDuration = SignedDuration::from_secs(210);
const END: SignedDuration = SignedDuration::from_mins(60);

fn azure() -> World {
    World::new(
        "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/20}]\nquotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]",
    )
}

/// When each machine is requested. Every fifth gets a VM that never joins.
fn arrivals() -> Vec<(SignedDuration, String, bool)> {
    (0..REFUSED + BROKEN)
        .map(|number| {
            let is_broken = number % 5 == 4;
            let at = EACH * i32::try_from(number).unwrap();
            (at, format!("node-{number}"), is_broken)
        })
        .collect()
}

/// The resources and requests after the storm.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    nics: usize,
    vms: usize,
    disks: usize,
    writes: usize,
}

fn outcome(world: &World) -> Outcome {
    let ours = world.ours();
    let ending = |end: &str| ours.iter().filter(|name| name.ends_with(end)).count();
    let (nics, disks) = (ending("-nic"), ending("-osdisk"));
    let requests = world.azure.with(|azure| {
        let all = azure.journal().requests().to_vec();
        all.iter().filter(|one| one.method == "PUT" || one.method == "DELETE").count()
    });
    // One write created the foreign NIC before the storm.
    Outcome { nics, disks, vms: ours.len() - nics - disks, writes: requests - 1 }
}

fn send(world: &World, method: &str, kind: &str, name: &str, body: &Value) -> u16 {
    let version = if kind.contains("Network") { "2024-05-01" } else { "2024-11-01" };
    let path = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/{kind}/{name}?api-version={version}"
    );
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "management.azure.com")
        .header("authorization", "Bearer old")
        .body(bytes::Bytes::from(body.to_string()))
        .unwrap();
    match world.azure.answer(&request).delivery {
        bringup_azure_sim::Delivery::Response(response) => response.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

/// Runs the storm with the model of the replaced system.
fn old() -> Outcome {
    const VM: &str = "Microsoft.Compute/virtualMachines";
    const NIC: &str = "Microsoft.Network/networkInterfaces";
    let world = azure();
    let begun = world.now();
    // The model's tasks in memory, by the time of their next request.
    let mut tasks: BTreeMap<(Timestamp, usize), (&str, &str, String)> = BTreeMap::new();
    let mut waiting = arrivals();
    waiting.reverse();
    let mut number = 0;
    let mut is_restarted = false;
    loop {
        let next = waiting.last().map(|(at, ..)| begun + *at);
        let task = tasks.keys().next().map(|(at, _)| *at);
        let restart = (!is_restarted).then_some(begun + RESTART);
        let Some(now) = [next, task, restart].into_iter().flatten().min() else { break };
        world.wait_until(now);
        if restart == Some(now) {
            // A restart loses all tasks in memory.
            (tasks, is_restarted) = (BTreeMap::new(), true);
        } else if next == Some(now) {
            let (_, name, is_broken) = waiting.pop().unwrap();
            let place = place(&name);
            let mut wanted = machine(&name, true);
            if !is_broken {
                "Standard_NC24ads_A100_v4".clone_into(&mut wanted.spec.vm_size);
            }
            let tags = BTreeMap::new();
            let nic = bringup_flex::bodies::nic(&place, &tags);
            assert!(send(&world, "PUT", NIC, &place.nic, &nic) < 300);
            let vm = bringup_flex::bodies::vm(&wanted, &place, &tags, "");
            let status = send(&world, "PUT", VM, &place.vm, &vm);
            assert_eq!(status >= 400, !is_broken, "{name}: {status}");
            number += 1;
            if is_broken {
                tasks.insert((now + GIVEN_UP, number), ("DELETE", VM, place.vm));
            } else {
                tasks.insert((now + CLEANED_AFTER, number), ("DELETE", NIC, place.nic));
            }
        } else {
            let (_, (method, kind, name)) = tasks.pop_first().unwrap();
            send(&world, method, kind, &name, &json!({}));
        }
    }
    world.wait_until(begun + END);
    outcome(&world)
}

/// Runs the storm with bringup. Also returns the longest wait for a cause.
async fn new() -> (Outcome, Tally, SignedDuration) {
    let world = azure();
    let begun = world.now();
    let crash = Crash::default();
    let mut process = world.process(&crash);
    let mut waiting = arrivals();
    waiting.reverse();
    let mut due: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut broken: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut is_restarted = false;
    let (mut tally, mut longest) = (Tally::default(), SignedDuration::ZERO);
    loop {
        let next = waiting.last().map(|(at, ..)| begun + *at);
        let first = due.iter().min_by_key(|(_, at)| **at).map(|(name, at)| (name.clone(), *at));
        let judged = broken.iter().min_by_key(|(_, at)| **at).map(|(name, at)| (name.clone(), *at));
        let restart = (!is_restarted).then_some(begun + RESTART);
        let moments =
            [next, first.as_ref().map(|it| it.1), judged.as_ref().map(|it| it.1), restart];
        let Some(now) = moments.into_iter().flatten().min() else { break };
        world.wait_until(now);
        if restart == Some(now) {
            (process, is_restarted) = (world.process(&crash), true);
        } else if next == Some(now) {
            let (_, name, is_broken) = waiting.pop().unwrap();
            let mut wanted = machine(&name, true);
            if !is_broken {
                "Standard_NC24ads_A100_v4".clone_into(&mut wanted.spec.vm_size);
            }
            world.shelf.put(wanted);
            due.insert(name, now);
        } else if let Some((name, _)) = judged.filter(|(_, at)| *at == now) {
            // The verdict deletes the claim, and so the machine.
            broken.remove(&name);
            world.shelf.delete(&name, now);
            due.insert(name, now);
        } else {
            let (name, _) = first.unwrap();
            due.remove(&name);
            let before = world.shelf.get(&name);
            let next = world.pass(&process, &crash, &name).await.unwrap();
            let after = world.shelf.get(&name);
            let status = after.clone().unwrap_or_default().status.unwrap_or_default();
            let had =
                before.clone().and_then(|it| it.status).is_some_and(|it| it.failure.is_some());
            if let (Some(_), false, Some(created)) = (&status.failure, had, &status.created_at) {
                longest = longest.max(created.0.duration_until(world.now()));
            }
            if after.is_none()
                && let Some(gone) = before
            {
                tally.count(&gone);
            }
            match next {
                Next::Now => drop(due.insert(name, world.now())),
                Next::At(at) => drop(due.insert(name, at)),
                Next::Never if status.phase == Phase::Running => {
                    broken.insert(name, world.now() + JUDGED);
                }
                // All of its resources are deleted; its claim was deleted after the refusal.
                Next::Never if status.phase == Phase::Gone => {
                    world.shelf.delete(&name, world.now());
                    due.insert(name, world.now());
                }
                Next::Never => {}
            }
        }
    }
    world.wait_until(begun + END);
    (outcome(&world), tally, longest)
}

/// The number of requests in an hour for a VM without quota, if a client repeats the request as soon as the
/// back-off allows.
fn attempts_in_an_hour(hunting: Option<u32>) -> usize {
    let begun = Timestamp::from_second(1_700_000_000).unwrap();
    let request = VmRequest {
        subscription: "s",
        region: "eastus2",
        size: "Standard_NC24ads_A100_v4",
        family: "StandardNCADSA100v4Family",
        capacity_type: CapacityType::OnDemand,
        zone: None,
        class: "a100",
        hunting,
    };
    let refusal = ArmFailure {
        code: Some("OperationNotAllowed".to_owned()),
        message: Some(
            "approved StandardNCADSA100v4Family Cores quota. Current Limit: 0,".to_owned(),
        ),
        ..ArmFailure::default()
    };
    let refusal = Trouble::of_failure(&refusal, false);
    let mut table = BackOff::default();
    let seconds = (0..3_600).map(|second| begun + SignedDuration::from_secs(second));
    seconds
        .filter(|now| {
            let is_free = table.blocks(&request, *now).is_none();
            if is_free {
                table.attempted(&request, *now);
                table.refused(&request, &refusal, *now);
            }
            is_free
        })
        .count()
}

#[tokio::test]
async fn the_same_storm_leaks_with_the_old_and_not_with_the_new() {
    let old = old();
    let (new, tally, longest) = new().await;
    let (plain, hunting) = (attempts_in_an_hour(None), attempts_in_an_hour(Some(60)));
    println!("200 requests without quota, 50 nodes that never join, one restart, an hour");
    println!("                          old   new");
    println!("NICs leaked              {:>4}  {:>4}", old.nics, new.nics);
    println!("VMs leaked               {:>4}  {:>4}", old.vms, new.vms);
    println!("disks leaked             {:>4}  {:>4}", old.disks, new.disks);
    println!("writes to ARM            {:>4}  {:>4}", old.writes, new.writes);
    println!("until a refusal is shown    -  {:>4} s", longest.as_secs());
    println!("attempts in an hour for what there is no quota for: {plain}; hunting: {hunting}");
    println!(
        "receipt: {} refused, {} NICs removed, {} left",
        tally.failures(),
        tally.nics_removed,
        new.nics
    );
    assert_eq!((new.nics, new.vms, new.disks), (0, 0, 0));
    assert!(old.nics >= 50 && old.vms > 0, "{old:?}");
    assert_eq!((tally.failures(), tally.machines), (200, 250));
    assert_eq!((tally.nics_removed, tally.vms_removed), (250, 50));
    assert!(longest <= SignedDuration::from_mins(2), "{longest}");
    assert!(plain <= 1 && hunting <= 8, "{plain}, {hunting}");
}
