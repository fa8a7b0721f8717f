//! Random lives of two machines: crashes, faults, deletions and waits in any order. If a life fails, proptest
//! prints it and stores its seed in `interleavings.proptest-regressions` next to this file; later runs try
//! that seed first. `PROPTEST_CASES=0` tries nothing else.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use std::time::Duration;

use bringup_azure_sim::fault::Fault;
use bringup_objects::flex::machine::Phase;
use proptest::prelude::*;
use world::{Crash, World, all_names, machine, phase};

const SCENARIO: &str = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]\ncapacity: [{region: eastus2, size: Standard_D8s_v5, available: 0, until: 3m}]";
const NAMES: [&str; 2] = ["a", "b"];

/// An event in the lives of the machines.
#[derive(Debug, Clone)]
enum Event {
    /// A process reconciles a machine until it has passed this many points, and then is killed or pauses.
    Work { machine: usize, points: usize, dies: bool },
    /// Inject a fault into the next request.
    Strike(usize),
    /// A client requests the deletion of a machine.
    Delete(usize),
    /// Advance the time.
    Pass(u64),
}

fn fault(number: usize) -> Fault {
    match number {
        0 => Fault::DropBefore,
        1 => Fault::DropAfter,
        2 => Fault::StatusBefore(503),
        3 => Fault::StatusAfter(500),
        4 => Fault::Throttle { retry_after: Some(11), as_date: false, policy: None },
        _ => Fault::Stale,
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..2_usize, 1..40_usize, any::<bool>())
            .prop_map(|(machine, points, dies)| Event::Work { machine, points, dies }),
        3 => (0..6_usize).prop_map(Event::Strike),
        1 => (0..2_usize).prop_map(Event::Delete),
        2 => (1..400_u64).prop_map(Event::Pass),
    ]
}

async fn live(events: Vec<Event>) {
    let world = World::new(SCENARIO);
    for name in NAMES {
        world.shelf.put(machine(name, false));
    }
    let mut deleted = [false; 2];
    let mut shared = world.process(&Crash::default());
    for event in events {
        match event {
            Event::Work { machine, points, dies: true } => {
                let crash = Crash::at(points);
                let process = world.process(&crash);
                world.work(&process, &crash, NAMES[machine], |_| false).await;
                // The next process knows only the stored state.
                shared = world.process(&Crash::default());
            }
            Event::Work { machine, points, dies: false } => {
                let begun = world.now();
                let enough = |world: &World| {
                    begun.duration_until(world.now()).as_secs() > i64::try_from(points).unwrap()
                };
                world.work(&shared, &Crash::default(), NAMES[machine], enough).await;
            }
            Event::Strike(number) => world.strike(fault(number)),
            Event::Delete(machine) => {
                world.shelf.delete(NAMES[machine], world.now());
                deleted[machine] = true;
            }
            Event::Pass(seconds) => drop(world.azure.advance(Duration::from_secs(seconds))),
        }
    }
    for name in NAMES {
        world.work(&shared, &Crash::default(), name, |_| false).await;
    }
    world.azure.advance(Duration::from_hours(2));
    let mut wanted = Vec::new();
    for (name, deleted) in NAMES.into_iter().zip(deleted) {
        if deleted {
            assert!(world.shelf.get(name).is_none(), "{name} is still stored");
        } else {
            assert_eq!(phase(&world, name), Some(Phase::Running), "{name}");
            wanted.extend(all_names(name));
        }
    }
    let mut ours = world.ours();
    ours.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(ours, wanted, "{}", world.azure.with(|azure| azure.journal().text().to_owned()));
    assert!(world.foreign_is_untouched());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order_azure_holds_exactly_what_is_wanted(
        events in prop::collection::vec(event(), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(live(events));
    }
}
