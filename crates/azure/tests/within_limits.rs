//! However many reads wait at once, the simulator, which counts like Azure, never throttles one.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use std::time::Duration;

use bringup_azure::{ArmError, InstanceId, Priority};
use common::{World, vm};
use futures::future::join_all;

#[tokio::test]
async fn a_thousand_reads_at_once_are_never_one_too_many() {
    let world = World::new("");
    world.create_vm("vm-0", "1").await;
    let start = world.now();
    let machines: Vec<_> = (0..1000).map(|n| vm(&format!("vm-{}", n % 200))).collect();
    let reads = machines.iter().map(|id| world.arm.virtual_machine(id, Priority::Schedule));
    let answers = world.drive(Duration::from_millis(250), join_all(reads)).await;
    assert_eq!(world.refused_as_too_many(), 0);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(ArmError::is_not_found));
    // A burst of 125, then 12 a second.
    let seconds = start.duration_until(world.now()).as_secs();
    assert!((72..=76).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn a_hundred_reads_of_one_machine_are_never_one_too_many() {
    for offset in [0, 1, 30, 59] {
        let world = World::new("");
        world.create_vm("a", "1").await;
        world.advance(offset);
        let id = vm("a");
        let reads = (0..100).map(|_| world.arm.virtual_machine(&id, Priority::Schedule));
        let answers = world.drive(Duration::from_secs(1), join_all(reads)).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(world.refused_as_too_many(), 0, "{offset} seconds into the minute");
    }
}

#[tokio::test]
async fn two_that_share_a_machine_s_limit_heed_what_the_other_has_left() {
    let world = World::new("");
    world.create_vm("a", "1").await;
    let id = vm("a");
    let other = world.client("another principal");
    for _ in 0..20 {
        other.virtual_machine(&id, Priority::Schedule).await.unwrap();
    }
    let reads = (0..40).map(|_| world.arm.virtual_machine(&id, Priority::Schedule));
    let first = world.arm.virtual_machine(&id, Priority::Event).await;
    first.unwrap();
    world.drive(Duration::from_secs(1), join_all(reads)).await;
    assert_eq!(world.refused_as_too_many(), 0);
}

#[tokio::test]
async fn asking_for_boot_diagnostics_is_a_write_to_the_front_door_and_stays_within_that() {
    let world = World::new("");
    let machines: Vec<InstanceId> = (0..400).map(|n| vm(&format!("vm-{n}")).into()).collect();
    let asked = machines.iter().map(|id| world.arm.boot_diagnostics(id, 5, Priority::Forced));
    world.drive(Duration::from_millis(500), join_all(asked)).await;
    assert_eq!(world.refused_as_too_many(), 0);
}
