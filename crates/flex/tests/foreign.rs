//! bringup never writes to or deletes a foreign resource: whatever exists in Azure under the names of a
//! machine, whenever it appears, and wherever the controller crashes.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use bringup_flex::claim::ClaimState;
use bringup_flex::machine::READY;
use bringup_flex::names;
use bringup_objects::condition::find;
use bringup_objects::flex::machine::Phase;
use proptest::prelude::*;
use serde_json::{Value, json};
use world::foreign::{DISK, NIC, Plant, VM, delete, foreign_body, put, read};
use world::steps::{journal, reach, settle, status, world};
use world::{Crash, World, all_names, machine, place, registered_claim, uid, vm};

const M: &str = "m";

/// The tags that bringup puts on its own resources.
fn our_tags(name: &str) -> Value {
    json!({
        "bringup-managed-by": "bringup", "bringup-cluster": world::CLUSTER,
        "bringup-machine": name, "bringup-machine-uid": uid(name),
    })
}

fn with(name: &str, tag: &str, value: &str) -> Value {
    let mut tags = our_tags(name);
    tags[tag] = json!(value);
    tags
}

fn is_foreign_told(world: &World, resource: &str) {
    let status = status(world, M);
    let ready = find(&status.conditions, READY).unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ForeignResource"));
    assert!(ready.message.contains(resource), "{}", ready.message);
}

/// Reconciles the machine until it rests, deletes it, and reconciles until it no longer exists.
async fn live_and_go(world: &World) {
    settle(world, M).await;
    world.shelf.delete(M, world.now());
    settle(world, M).await;
    assert!(world.shelf.get(M).is_none(), "its finalizer does not hold it for ever");
}

#[tokio::test]
async fn a_vm_of_another_team_with_the_name_of_a_machine_is_left_alone() {
    let world = world("");
    let plants = [
        Plant::new(&world, VM, M, json!({ "team": "blue" })),
        Plant::new(&world, NIC, &names::nic(M), json!({ "team": "blue" })),
        Plant::new(&world, DISK, &names::disk(M), json!({ "team": "blue" })),
    ];
    world.shelf.put(machine(M, false));
    settle(&world, M).await;
    assert_eq!(status(&world, M).phase, Phase::Running, "its own names are others");
    live_and_go(&world).await;
    for plant in &plants {
        plant.is_untouched(&world);
    }
}

#[tokio::test]
async fn a_foreign_resource_under_any_of_our_own_names_is_left_alone_and_told() {
    let [nic, disk, vm] = all_names(M);
    for (kind, name) in [(VM, &vm), (NIC, &nic), (DISK, &disk)] {
        for tags in [
            json!({}),
            json!({ "team": "blue" }),
            with(M, "bringup-cluster", "cluster-2"),
            with(M, "bringup-machine", "another"),
            with(M, "bringup-machine-uid", "of-an-earlier-machine"),
            with(M, "bringup-cluster", "CLUSTER-1"),
        ] {
            for for_a_claim in [false, true] {
                let world = world("");
                let plant = Plant::new(&world, kind, name, tags.clone());
                world.shelf.put(machine(M, for_a_claim));
                reach(&world, M, Phase::Gone).await;
                is_foreign_told(&world, name);
                world.shelf.delete(M, world.now());
                settle(&world, M).await;
                assert!(world.shelf.get(M).is_none());
                plant.is_untouched(&world);
                let ours: Vec<String> =
                    world.ours().into_iter().filter(|one| all_names(M).contains(one)).collect();
                assert_eq!(
                    ours,
                    std::slice::from_ref(name),
                    "only the foreign one is left: {kind} {tags}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_vm_made_under_our_name_while_the_controller_was_down_is_left_alone() {
    for phase in [Phase::NicPut, Phase::NicReady, Phase::VmPut] {
        let world = world("");
        world.shelf.put(machine(M, true));
        reach(&world, M, phase).await;
        // Another process takes over, which knows only the stored state.
        let plant = Plant::new(&world, VM, &vm(M), json!({ "team": "blue" }));
        settle(&world, M).await;
        is_foreign_told(&world, &vm(M));
        world.shelf.delete(M, world.now());
        settle(&world, M).await;
        assert!(world.shelf.get(M).is_none());
        plant.is_untouched(&world);
    }
}

#[tokio::test]
async fn a_vm_with_copied_tags_and_another_vm_id_is_left_alone() {
    let world = world("");
    world.shelf.put(machine(M, false));
    settle(&world, M).await;
    assert!(status(&world, M).vm_id.is_some());
    let tags = read(&world, VM, &vm(M)).unwrap()["tags"].clone();
    delete(&world, VM, &vm(M));
    world.azure.advance(Duration::from_mins(10));
    let plant = Plant::new(&world, VM, &vm(M), tags);
    live_and_go(&world).await;
    plant.is_untouched(&world);
}

#[tokio::test]
async fn the_vm_id_is_stored_as_soon_as_the_vm_is_accepted() {
    let world = world("");
    world.shelf.put(machine(M, false));
    reach(&world, M, Phase::VmAccepted).await;
    let id = read(&world, VM, &vm(M)).unwrap()["properties"]["vmId"].clone();
    assert_eq!(status(&world, M).vm_id.as_deref(), id.as_str());
}

#[tokio::test]
async fn a_foreign_disk_that_would_go_with_our_vm_keeps_the_vm_and_is_told() {
    let world = world("");
    world.shelf.put(machine(M, false));
    settle(&world, M).await;
    let plant = Plant::new(&world, DISK, "data-of-another-team", json!({ "team": "blue" }));
    let attached = json!([{ "name": "data-of-another-team", "lun": 0, "deleteOption": "Delete" }]);
    world.azure.with(|azure| azure.attach_data_disks(&place(M).vm, &attached));
    world.shelf.delete(M, world.now());
    settle(&world, M).await;
    assert!(world.shelf.get(M).is_none());
    plant.is_untouched(&world);
    assert!(world.ours().contains(&vm(M)), "the sweep deletes it when the disk is detached");
    assert_eq!(journal(&world).matches("DELETE ").count(), 0, "{}", journal(&world));
}

#[tokio::test]
async fn our_nic_that_a_foreign_vm_uses_is_left_alone_and_the_machine_is_released() {
    let world = world("");
    world.shelf.put(machine(M, true));
    reach(&world, M, Phase::NicReady).await;
    let mut body = foreign_body(VM, "thief", &json!({ "team": "blue" }));
    let id = bringup_flex::ids::nic_id(&place(M));
    body["properties"]["networkProfile"] = json!({ "networkInterfaces": [{ "id": id }] });
    put(&world, VM, "thief", &body);
    settle(&world, M).await;
    is_foreign_told(&world, "thief");
    world.shelf.delete(M, world.now());
    settle(&world, M).await;
    assert!(world.shelf.get(M).is_none());
    assert!(read(&world, VM, "thief").is_some());
    assert_eq!(journal(&world).matches("DELETE ").count(), 0, "{}", journal(&world));
}

#[tokio::test]
async fn a_machine_from_before_the_suffix_keeps_its_names_and_is_deleted_by_its_tags_and_vm_id() {
    let world = world("");
    let mut before = place(M);
    (before.machine_uid, before.vm) = (None, M.to_owned());
    (before.nic, before.disk) = (names::nic(M), names::disk(M));
    world.places.lock().unwrap().insert(M.to_owned(), before);
    world.shelf.put(machine(M, false));
    settle(&world, M).await;
    assert_eq!(status(&world, M).place.unwrap().vm, M);
    let tags = read(&world, VM, M).unwrap()["tags"].clone();
    assert!(tags.get("bringup-machine-uid").is_none(), "{tags}");
    world.shelf.delete(M, world.now());
    settle(&world, M).await;
    world.azure.advance(Duration::from_mins(5));
    assert!(world.ours().is_empty(), "{:?}", world.ours());
}

#[tokio::test]
async fn a_machine_made_again_under_its_name_leaves_what_the_former_one_left() {
    let world = world("");
    let [nic, ..] = all_names(M);
    let former = Plant::new(&world, NIC, &nic, with(M, "bringup-machine-uid", "the-former"));
    world.shelf.put(machine(M, true));
    settle(&world, M).await;
    is_foreign_told(&world, &nic);
    former.is_untouched(&world);
}

#[tokio::test]
async fn a_machine_that_could_never_join_asks_nothing_of_azure() {
    let world = world("");
    for (name, for_a_claim) in [("one", true), ("two", false)] {
        world.shelf.put(machine(name, for_a_claim));
        let before = journal(&world);
        let process = world.process(&Crash::default());
        let place = place(name);
        let join_error = Some("node.labels[x y]: not a key that a label can have");
        let registered = registered_claim();
        let claim = ClaimState::Exists(&registered);
        for _ in 0..5 {
            let inputs = (&place, join_error);
            process.pass(&world.shelf, name, inputs, claim, world.now()).await.unwrap();
        }
        let known = status(&world, name);
        assert_eq!(known.phase, Phase::Gone);
        let ready = find(&known.conditions, READY).unwrap();
        assert_eq!(
            (ready.status.as_str(), ready.reason.as_str()),
            ("False", "InvalidJoinConfiguration")
        );
        assert!(ready.message.contains("node.labels[x y]"));
        assert_eq!(journal(&world), before);
        world.shelf.delete(name, world.now());
        settle(&world, name).await;
        assert!(world.shelf.get(name).is_none());
    }
}

/// A foreign resource: under which of the machine's names, with which tags, and when it appears.
#[derive(Debug, Clone)]
struct Foreign {
    kind: usize,
    name: usize,
    tags: usize,
    /// The number of points before it appears; 0: before the run begins.
    after: usize,
}

fn foreign() -> impl Strategy<Value = Foreign> {
    (0..3_usize, 0..4_usize, 0..8_usize, 0..40_usize)
        .prop_map(|(kind, name, tags, after)| Foreign { kind, name, tags, after })
}

fn tags_of(number: usize, machine: &str) -> Value {
    match number {
        0 => json!({}),
        1 => json!({ "team": "blue" }),
        2 => with(machine, "bringup-cluster", "cluster-2"),
        3 => with(machine, "bringup-machine", "another"),
        4 => with(machine, "bringup-machine-uid", "another"),
        5 => with(machine, "bringup-managed-by", "Bringup"),
        6 => json!({ "Bringup-Cluster": world::CLUSTER, "Bringup-Managed-By": "bringup" }),
        _ => {
            let mut tags = our_tags(machine);
            tags.as_object_mut().unwrap().remove("bringup-machine-uid");
            tags
        }
    }
}

fn plant(world: &World, foreign: &Foreign, name: &str) -> Option<Plant> {
    let vm = match foreign.name {
        0 | 1 => vm(name),
        2 => name.to_owned(),
        _ => format!("{name}-another"),
    };
    let (kind, name_of) = match foreign.kind {
        0 => (VM, vm),
        1 => (NIC, names::nic(&vm)),
        _ => (DISK, names::disk(&vm)),
    };
    Plant::try_new(world, kind, &name_of, tags_of(foreign.tags, name))
}

/// One life of a machine next to foreign resources, with a crash, a deletion and a sweep.
async fn among(name: &str, all: &[Foreign], crash_at: usize, deleted_after: usize, claim: bool) {
    let world =
        world("capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0, until: 3m}]");
    let mut plants: BTreeMap<usize, Plant> = BTreeMap::new();
    let mut grow = |world: &World, passed: usize| {
        for (number, foreign) in all.iter().enumerate() {
            if foreign.after <= passed
                && !plants.contains_key(&number)
                && let Some(planted) = plant(world, foreign, name)
            {
                plants.insert(number, planted);
            }
        }
        plants.clone()
    };
    world.shelf.put(machine(name, claim));
    let crash = Crash::at(crash_at);
    let (mut process, mut alive) = (world.process(&crash), true);
    let mut passes = 0;
    while passes < 400 {
        passes += 1;
        let planted = grow(&world, passes);
        for plant in planted.values() {
            plant.is_not_written(&world);
        }
        if passes == deleted_after {
            world.shelf.delete(name, world.now());
        }
        let watched = if alive { crash.clone() } else { Crash::default() };
        match world.pass(&process, &watched, name).await {
            None => (process, alive) = (world.process(&Crash::default()), false),
            Some(bringup_flex::engine::Next::Now) => {}
            Some(bringup_flex::engine::Next::At(at)) => world.wait_until(at),
            Some(bringup_flex::engine::Next::Never) if passes > deleted_after => break,
            Some(bringup_flex::engine::Next::Never) => {
                world.azure.advance(Duration::from_secs(5));
            }
        }
    }
    let mut planted = grow(&world, usize::MAX);
    assert!(world.shelf.get(name).is_none(), "the machine is released");
    world.azure.advance(Duration::from_mins(20));
    for plant in planted.values() {
        plant.is_not_written(&world);
    }
    for plant in planted.values() {
        plant.still_exists(&world);
    }
    world.sweep().await;
    world.azure.advance(Duration::from_mins(20));
    // A resource with the tags of this cluster and of a machine that does not exist belongs to this cluster.
    planted.retain(|number, _| ![3, 7].contains(&all[*number].tags));
    for plant in planted.values() {
        plant.is_not_written(&world);
    }
    for plant in planted.values() {
        plant.still_exists(&world);
    }
}

/// Azure throttles the client that creates the foreign resources; that client must not mistake a 429 for
/// absence.
#[tokio::test]
async fn four_resources_planted_under_one_name_are_left_alone_while_azure_throttles() {
    let planted = |after| Foreign { kind: 0, name: 0, tags: 0, after };
    among("scdm0dl6c", &[planted(8), planted(8), planted(0), planted(0)], 29, 36, false).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn nothing_without_our_tags_is_ever_written_or_deleted(
        name in "[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,60})?",
        all in prop::collection::vec(foreign(), 1..6),
        crash_at in 1..80_usize,
        deleted_after in 1..60_usize,
        claim in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(among(&name, &all, crash_at, deleted_after, claim));
    }
}
