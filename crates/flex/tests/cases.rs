//! The required behaviour of provisioning, case by case, each with its number.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use bringup_azure_sim::fault::Fault;
use bringup_contract::Open;
use bringup_flex::claim::ClaimState;
use bringup_flex::engine::{Next, Store, StoreError};
use bringup_objects::flex::machine::{AzureFlexMachine, Phase};
use world::steps::{answer, error, journal, reach, settle, status, world};
use world::{Crash, Process, World, machine, phase, place, registered_claim};

const NO_QUOTA: &str = "quotas: [{region: eastus2, family: standardDSv5Family, limit: 0}]";

#[tokio::test]
async fn case_01_fifty_quota_failures_leave_nothing() {
    let world = world(NO_QUOTA);
    for number in 0..50 {
        let name = format!("m{number}");
        world.shelf.put(machine(&name, true));
        settle(&world, &name).await;
        assert_eq!(
            status(&world, &name).failure.map(|failure| failure.cause),
            Some(Open::parse("QuotaExceeded"))
        );
    }
    assert!(world.ours().is_empty(), "{:?}", world.ours());
}

#[tokio::test]
async fn case_02_a_claim_that_goes_between_nic_and_vm_is_cleaned_up() {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::NicReady).await;
    world.shelf.delete("m", world.now());
    settle(&world, "m").await;
    assert!(world.ours().is_empty() && world.shelf.get("m").is_none());
    assert_eq!(world.created(), 0);
}

#[tokio::test]
async fn case_03_a_reserved_nic_is_deleted_when_its_reservation_ends_and_no_task_waits() {
    let world = world(NO_QUOTA);
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::CleanNic).await;
    let reserved = status(&world, "m").nic_reserved_until.unwrap().0;
    let process = world.process(&Crash::default());
    let registered = registered_claim();
    let claim = ClaimState::Exists(&registered);
    let next =
        process.pass(&world.shelf, "m", (&place("m"), None), claim, world.now()).await.unwrap();
    let Next::At(at) = next else { panic!("{next:?}") };
    assert_eq!(reserved.duration_until(at).as_secs(), 10, "ten seconds after the reservation");
    // Another client requests a VM with the NIC: Azure reserves the NIC anew.
    answer(&world, "DELETE", "networkInterfaces", 400, &error("NicReservedForAnotherVm"));
    settle(&world, "m").await;
    assert!(world.ours().is_empty());
    // The failure of the deletion does not hide the original failure.
    assert_eq!(
        status(&world, "m").failure.map(|failure| failure.cause),
        Some(Open::parse("QuotaExceeded"))
    );
    let deletes = journal(&world).matches("DELETE /subscriptions").count();
    assert!(deletes <= 5, "{}", journal(&world));
}

#[tokio::test]
async fn case_04_and_07_a_restart_while_it_waits_goes_on_where_it_was() {
    for cleaning in [Phase::CleanVm, Phase::CleanNic, Phase::CleanDisk] {
        let world = world(NO_QUOTA);
        world.shelf.put(machine("m", true));
        // Another process, which knows only the stored state.
        reach(&world, "m", cleaning).await;
        settle(&world, "m").await;
        assert!(world.ours().is_empty(), "{cleaning:?}");
    }
}

#[tokio::test]
async fn case_05_a_vm_that_fails_later_goes_first_then_nic_and_disk() {
    let world = world("capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0}]");
    world.shelf.put(machine("m", true));
    settle(&world, "m").await;
    assert!(world.ours().is_empty());
    assert_eq!(
        status(&world, "m").failure.map(|failure| failure.cause),
        Some(Open::parse("AllocationFailed"))
    );
    let text = journal(&world);
    let [nic, disk, vm] = world::all_names("m");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
    let gone = at(&format!("virtualMachines/{vm}: gone"));
    // Azure deletes both with the VM, and bringup searches for both until their deletion is certain.
    assert!(gone < at(&format!("networkInterfaces/{nic}: gone")), "{text}");
    assert!(gone < at(&format!("disks/{disk}: gone")), "{text}");
    assert_eq!(text.matches("DELETE /subscriptions").count(), 1, "{text}");
}

#[tokio::test]
async fn case_06_an_answer_without_an_id_is_no_crash() {
    for path in ["networkInterfaces", "virtualMachines"] {
        let world = world("");
        world.shelf.put(machine("m", true));
        answer(&world, "PUT", path, 201, "{}");
        let crash = Crash::default();
        let process = world.process(&crash);
        world.work(&process, &crash, "m", |world| phase(world, "m") == Some(Phase::Gone)).await;
        world.shelf.delete("m", world.now());
        settle(&world, "m").await;
        assert!(world.ours().is_empty(), "{path}: {}", journal(&world));
    }
}

#[tokio::test]
async fn case_08_a_full_subnet_is_said_and_leaves_nothing() {
    let world = World::new(
        "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/29}]",
    );
    for name in ["a", "b"] {
        world.shelf.put(machine(name, true));
        settle(&world, name).await;
        assert_eq!(phase(&world, name), Some(Phase::Running));
    }
    world.shelf.put(machine("c", true));
    settle(&world, "c").await;
    let failure = status(&world, "c").failure.unwrap();
    assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("network", "SubnetExhausted"));
    assert_eq!(world.ours().len(), 6, "{:?}", world.ours());
}

#[tokio::test]
async fn case_09_nothing_is_asked_of_azure_before_it_is_stored() {
    let world = world("");
    world.shelf.put(machine("m", true));
    for (before, request) in
        [(Phase::NicPut, "/networkInterfaces/m-"), (Phase::VmPut, "/virtualMachines/m-")]
    {
        reach(&world, "m", before).await;
        let asked =
            journal(&world).lines().any(|line| line.contains(" PUT ") && line.contains(request));
        assert!(!asked, "{before:?}");
        assert!(status(&world, "m").call.unwrap().started_at.is_some());
    }
}

#[tokio::test]
async fn case_11_and_14_a_claim_that_goes_at_any_moment_leaves_no_zombie() {
    let phases = [Phase::NicPut, Phase::NicReady, Phase::VmPut, Phase::VmAccepted, Phase::Running];
    for wanted in phases {
        let world = world("");
        world.shelf.put(machine("m", true));
        reach(&world, "m", wanted).await;
        world.shelf.delete("m", world.now());
        settle(&world, "m").await;
        world.azure.advance(std::time::Duration::from_hours(1));
        assert!(world.ours().is_empty() && world.shelf.get("m").is_none(), "{wanted:?}");
    }
}

#[tokio::test]
async fn case_13_a_retry_of_the_same_name_never_loses_its_nic_to_the_cleanup_before() {
    let world =
        world("capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0, until: 20m}]");
    world.shelf.put(machine("m", false));
    settle(&world, "m").await;
    let up = status(&world, "m");
    assert_eq!(up.phase, Phase::Running);
    assert!(up.attempt >= 2, "{}", up.attempt);
    let mut ours = world.ours();
    ours.sort_unstable();
    let mut wanted = world::all_names("m");
    wanted.sort_unstable();
    assert_eq!(ours, wanted);
    world.azure.advance(std::time::Duration::from_hours(1));
    assert_eq!(world.ours().len(), 3, "nothing is removed under it");
}

#[tokio::test]
async fn case_15_a_property_that_cannot_be_changed_is_not_asked_for_again_and_again() {
    let world = world("");
    world.shelf.put(machine("m", false));
    answer(&world, "PUT", "virtualMachines", 409, &error("PropertyChangeNotAllowed"));
    settle(&world, "m").await;
    let up = status(&world, "m");
    assert_eq!(
        (up.phase, up.attempt),
        (Phase::Running, 2),
        "a new attempt, and not the same again"
    );
    assert_eq!(journal(&world).matches("PropertyChangeNotAllowed").count(), 1);
}

#[tokio::test]
async fn case_17_what_was_known_first_is_kept_over_retries() {
    let world =
        world("capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0, until: 20m}]");
    world.shelf.put(machine("m", false));
    reach(&world, "m", Phase::NicPut).await;
    let first = status(&world, "m");
    settle(&world, "m").await;
    let last = status(&world, "m");
    assert_eq!(first.created_at, last.created_at);
    assert!(last.attempt > first.attempt && last.completed_at.is_some());
    assert_eq!(last.failure, None, "what came up has no failure");
}

#[tokio::test]
async fn case_43_the_provider_id_is_known_before_azure_is_asked_for_the_vm() {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::NicPut).await;
    let id = status(&world, "m").provider_id.unwrap();
    assert!(id.starts_with("azure-flex:///subscriptions/") && id.ends_with(&world::vm("m")));
    reach(&world, "m", Phase::VmAccepted).await;
    assert!(status(&world, "m").accepted_at.is_some());
}

#[tokio::test]
async fn a_throttled_request_is_made_again_when_azure_says_so() {
    let world = world("");
    world.shelf.put(machine("m", true));
    world.strike(Fault::Throttle { retry_after: Some(60), as_date: false, policy: None });
    let begun = world.now();
    settle(&world, "m").await;
    assert_eq!(phase(&world, "m"), Some(Phase::Running));
    assert!(begun.duration_until(world.now()).as_secs() >= 60);
    assert_eq!(journal(&world).matches("-> 429").count(), 1);
}

/// A store that reports a failure for every second write although the write succeeded, and does not do every
/// third write.
struct Flaky {
    shelf: world::Shelf,
    writes: std::sync::atomic::AtomicUsize,
}

impl Flaky {
    fn trouble(&self) -> (bool, bool) {
        let number = self.writes.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (number % 3 != 2, number.is_multiple_of(2))
    }
}

fn flaky_answer(is_lost: bool, done: Result<(), StoreError>) -> Result<(), StoreError> {
    if is_lost { Err(StoreError::Failed("the API server is not well".to_owned())) } else { done }
}

#[async_trait::async_trait]
impl Store for Flaky {
    async fn write_status(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let (is_done, is_lost) = self.trouble();
        let done = if is_done { self.shelf.write_status(machine) } else { Ok(()) };
        flaky_answer(is_lost || !is_done, done)
    }

    async fn write_finalizers(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        let (is_done, is_lost) = self.trouble();
        let done = if is_done { self.shelf.write_finalizers(machine) } else { Ok(()) };
        flaky_answer(is_lost || !is_done, done)
    }

    async fn delete(&self, machine: &AzureFlexMachine) -> Result<(), StoreError> {
        Err(StoreError::Failed(format!("{:?} has a claim", machine.metadata.name)))
    }
}

#[tokio::test]
async fn case_22_a_store_that_fails_again_and_again_loses_and_leaks_nothing() {
    let world = world("");
    world.shelf.put(machine("m", true));
    let shelf = world.shelf.clone();
    let process = Process::new(Flaky { shelf, writes: 0.into() }, world.cloud());
    let (place, registered) = (place("m"), registered_claim());
    let claim = ClaimState::Exists(&registered);
    let run = async |wanted: Option<Phase>| {
        for _ in 0..500 {
            if phase(&world, "m") == wanted {
                return;
            }
            tokio::task::yield_now().await;
            match process.pass(&world.shelf, "m", (&place, None), claim, world.now()).await {
                Ok(Next::At(at)) => world.wait_until(at),
                Ok(_) | Err(_) => drop(world.azure.advance(std::time::Duration::from_secs(1))),
            }
        }
        panic!("it never got there: {:?}", phase(&world, "m"));
    };
    run(Some(Phase::Running)).await;
    assert_eq!(world.created(), 1);
    world.shelf.delete("m", world.now());
    run(None).await;
    assert!(world.ours().is_empty(), "{:?}", world.ours());
}

#[tokio::test]
async fn case_23_two_who_run_the_same_machine_lose_no_update_and_make_one_vm() {
    let world = world("");
    world.shelf.put(machine("m", true));
    let crash = Crash::default();
    let both = [world.process(&crash), world.process(&crash)];
    for number in 0..500 {
        if phase(&world, "m") == Some(Phase::Running) {
            break;
        }
        match world.pass(&both[number % 2], &crash, "m").await.unwrap() {
            Next::At(at) => world.wait_until(at),
            Next::Now | Next::Never => {}
        }
    }
    assert_eq!(phase(&world, "m"), Some(Phase::Running));
    assert_eq!(world.created(), 1);
}
