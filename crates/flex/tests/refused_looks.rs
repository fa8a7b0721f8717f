//! A refused read proves nothing about the resource.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use std::sync::atomic::Ordering;

use bringup_flex::machine::Memory;
use bringup_objects::flex::machine::Phase;
use world::steps::{answer, answer_often, error, journal, reach, settle, status, world};
use world::{Crash, World, machine, phase};

/// Reconciles a machine until its call has failed this many times in a row.
async fn refused(world: &World, name: &str, times: u32) {
    let crash = Crash::default();
    let failures = |world: &World| status(world, name).call.map_or(0, |call| call.failures);
    let often = |world: &World| failures(world) >= times;
    world.work(&world.process(&crash), &crash, name, often).await;
    assert_eq!(failures(world), times, "{:?}", status(world, name));
}

fn deletions(world: &World) -> usize {
    journal(world).lines().filter(|line| line.contains(" DELETE ")).count()
}

#[tokio::test]
async fn a_refused_poll_keeps_the_vm_and_asks_again_ever_more_seldom() {
    for (code, word) in [(403, "AuthorizationFailed"), (401, "ExpiredAuthenticationToken")] {
        let world = world("");
        world.shelf.put(machine("m", true));
        reach(&world, "m", Phase::VmAccepted).await;
        let operation = status(&world, "m").call.unwrap().operation_url;
        assert!(operation.is_some());
        answer_often(&world, ("GET", "operations"), 5, code, &error(word));
        let begun = world.now();
        refused(&world, "m", 5).await;
        let kept = status(&world, "m");
        assert_eq!((kept.phase, kept.failure), (Phase::VmAccepted, None), "{word}");
        let call = kept.call.unwrap();
        assert_eq!(call.operation_url, operation, "the same operation is asked about");
        assert!(call.last_error.unwrap().contains("as the test says"), "it is seen");
        let next = begun.duration_until(call.not_before.unwrap().0);
        assert!(next.as_secs() >= 1 + 2 + 4 + 8 + 16, "{next:?}");
        settle(&world, "m").await;
        assert_eq!(phase(&world, "m"), Some(Phase::Running), "{word}");
        assert_eq!((world.created(), deletions(&world)), (1, 0), "{}", journal(&world));
    }
}

#[tokio::test]
async fn a_poll_that_cannot_be_answered_is_followed_by_a_look_at_the_vm_itself() {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::VmAccepted).await;
    answer_often(&world, ("GET", "operations"), 100, 400, &error("InvalidOperationAddress"));
    settle(&world, "m").await;
    assert_eq!(phase(&world, "m"), Some(Phase::Running));
    assert_eq!((world.created(), deletions(&world)), (1, 0), "{}", journal(&world));
}

#[tokio::test]
async fn a_refused_look_before_a_vm_is_asked_for_again_is_made_again() {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::VmPut).await;
    // Another process, which has to read the VM first.
    answer_often(&world, ("GET", "virtualMachines/m"), 3, 403, &error("AuthorizationFailed"));
    settle(&world, "m").await;
    let up = status(&world, "m");
    assert_eq!((up.phase, up.attempt, up.failure), (Phase::Running, 1, None));
    assert_eq!((world.created(), deletions(&world)), (1, 0), "{}", journal(&world));
}

#[tokio::test]
async fn looks_that_were_refused_do_not_count_as_looks_that_found_nothing() {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::VmAccepted).await;
    answer_often(&world, ("GET", "operations"), 100, 400, &error("InvalidOperationAddress"));
    answer_often(&world, ("GET", "virtualMachines/m"), 12, 403, &error("AuthorizationFailed"));
    refused(&world, "m", 13).await;
    answer(&world, "GET", "virtualMachines/m", 404, &error("ResourceNotFound"));
    settle(&world, "m").await;
    assert_eq!(phase(&world, "m"), Some(Phase::Running), "{}", journal(&world));
    assert_eq!(deletions(&world), 0);
}

#[tokio::test]
async fn a_running_vm_that_may_not_be_looked_for_stays_and_the_look_is_made_later() {
    let world = world("");
    world.shelf.put(machine("m", true));
    settle(&world, "m").await;
    let crash = Crash::default();
    let process = world.process(&crash);
    process.remember("m", Memory::vm_not_listed());
    answer_often(&world, ("GET", "virtualMachines/m"), 2, 403, &error("AuthorizationFailed"));
    let failures = |world: &World| status(world, "m").call.map_or(0, |call| call.failures);
    world.work(&process, &crash, "m", |world| failures(world) == 2).await;
    let kept = status(&world, "m");
    assert_eq!((kept.phase, kept.failure), (Phase::Running, None));
    assert!(kept.call.unwrap().last_error.unwrap().contains("as the test says"), "it is seen");
    // Another process, which knows only the stored state.
    settle(&world, "m").await;
    let up = status(&world, "m");
    assert_eq!((up.phase, up.call), (Phase::Running, None), "an answer came");
    assert_eq!(deletions(&world), 0, "{}", journal(&world));
}

#[tokio::test]
async fn without_a_token_nothing_fails_and_everything_goes_on_when_there_is_one() {
    for wanted in [Phase::NicPut, Phase::VmPut, Phase::VmAccepted] {
        let world = world("");
        world.shelf.put(machine("m", true));
        reach(&world, "m", wanted).await;
        world.has_no_token.store(true, Ordering::SeqCst);
        refused(&world, "m", 4).await;
        let kept = status(&world, "m");
        assert_eq!((kept.phase, kept.failure), (wanted, None));
        assert!(kept.call.unwrap().last_error.unwrap().contains("no access token is available"));
        world.has_no_token.store(false, Ordering::SeqCst);
        settle(&world, "m").await;
        let up = status(&world, "m");
        assert_eq!((up.phase, up.attempt), (Phase::Running, 1), "{wanted:?}");
        assert_eq!((world.created(), deletions(&world)), (1, 0), "{}", journal(&world));
    }
}

#[tokio::test]
async fn a_vm_that_we_may_not_make_is_still_refused_at_once() {
    let world = world("");
    world.shelf.put(machine("m", true));
    answer(&world, "PUT", "virtualMachines", 403, &error("AuthorizationFailed"));
    settle(&world, "m").await;
    let failure = status(&world, "m").failure.unwrap();
    assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("access", "AuthorizationFailed"));
    assert!(world.ours().is_empty());
}
