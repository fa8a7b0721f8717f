//! Times, durations and counts from outside at their extremes: nothing panics, no machine waits forever, and
//! other machines are still reconciled.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use bringup_azure_sim::fault::{Fault, FaultRule, On};
use bringup_flex::engine::Next;
use bringup_flex::machine::conditions;
use bringup_objects::flex::FINALIZER;
use bringup_objects::flex::machine::{Call, FlexMachineStatus, Phase};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use world::steps::{settle, world};
use world::{Crash, machine, phase, place};

const PHASES: [Phase; 10] = [
    Phase::Planned,
    Phase::NicPut,
    Phase::NicReady,
    Phase::VmPut,
    Phase::VmAccepted,
    Phase::Running,
    Phase::CleanVm,
    Phase::CleanNic,
    Phase::CleanDisk,
    Phase::Gone,
];

/// Times far in the past, far in the future, at the ends of the range that Kubernetes stores, or missing.
fn moment() -> impl Strategy<Value = Option<Time>> {
    prop_oneof![
        Just(None),
        Just(Some(Timestamp::MAX)),
        Just(Some("0001-01-01T00:00:00Z".parse().unwrap())),
        Just(Some("9999-12-30T22:00:00Z".parse().unwrap())),
        Just(Some(Timestamp::UNIX_EPOCH)),
        (-62_135_596_800_i64..253_402_207_200)
            .prop_map(|second| Timestamp::from_second(second).ok()),
    ]
    .prop_map(|moment| moment.map(Time))
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(0), Just(-1), any::<i64>()]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(u32::MAX), Just(u32::MAX - 1), Just(0), any::<u32>()]
}

fn status() -> impl Strategy<Value = FlexMachineStatus> {
    let moments = prop::collection::vec(moment(), 9);
    (0..PHASES.len(), moments, count(), count(), seconds(), any::<bool>()).prop_map(
        |(phase, moments, attempt, failures, limit, is_asked)| {
            let mut moments = moments.into_iter();
            let mut next = || moments.next().flatten();
            let mut place = place("m");
            (place.boot_timeout_seconds, place.launch_timeout_seconds) = (limit, limit);
            let url = format!("https://management.azure.com/subscriptions/{}/providers/Microsoft.Compute/locations/eastus2/operations/x?api-version=2024-11-01", world::SUBSCRIPTION);
            FlexMachineStatus {
                phase: PHASES[phase],
                attempt,
                place: Some(place),
                call: Some(Call {
                    started_at: next(),
                    not_before: next(),
                    failures,
                    operation_url: is_asked.then_some(url),
                    ..Call::default()
                }),
                vm_attempt_at: next(),
                nic_reserved_until: next(),
                created_at: next(),
                accepted_at: next(),
                completed_at: next(),
                delete_requested_at: next(),
                retry_at: next(),
                ..FlexMachineStatus::default()
            }
        },
    )
}

fn retry_after(value: &str) -> Fault {
    let headers = BTreeMap::from([("Retry-After".to_owned(), value.to_owned())]);
    Fault::Answer { status: 429, headers, body: "{}".to_owned() }
}

async fn live(status: FlexMachineStatus, is_deleted: bool, wait: &str) {
    let world = world("");
    let mut hostile = machine("m", true);
    hostile.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    hostile.metadata.deletion_timestamp = is_deleted.then(|| Time(world.now()));
    drop(conditions(&status, world.now()));
    hostile.status = Some(status);
    world.shelf.put(hostile);
    let on = On { times: Some(1), ..On::default() };
    world.azure.with(|azure| azure.arm_fault(FaultRule { on, fault: retry_after(wait) }));
    let crash = Crash::default();
    let process = world.process(&crash);
    let mut rests = false;
    for _ in 0..400 {
        match world.pass(&process, &crash, "m").await.unwrap() {
            Next::Now => {}
            Next::At(at) => {
                let farthest = world.now().saturating_add(SignedDuration::from_hours(24)).unwrap();
                assert!(at <= farthest, "it waits until {at}");
                world.wait_until(at);
            }
            Next::Never => {
                rests = true;
                break;
            }
        }
    }
    assert!(rests, "{:#?}", world.shelf.get("m"));
    assert!(!is_deleted || world.shelf.get("m").is_none(), "it is released");
    // Another machine is still reconciled.
    world.azure.advance(Duration::from_hours(2));
    world.shelf.put(machine("honest", true));
    settle(&world, "honest").await;
    assert_eq!(phase(&world, "honest"), Some(Phase::Running));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn times_and_counts_as_far_out_as_they_can_be_stop_nothing(
        status in status(),
        is_deleted in any::<bool>(),
        wait in prop::sample::select(vec!["999999999999", "0", "-1", "18446744073709551615", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(live(status, is_deleted, wait));
    }
}
