//! Every crash: before and after each call to Azure and each write to the store, with each kind of fault at
//! the following call. In the end, Azure must hold exactly the wanted resources.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use bringup_azure_sim::fault::Fault;
use bringup_objects::flex::machine::Phase;
use world::{Crash, World, all_names, machine, phase};

const NAME: &str = "node-1";
const SUBNET: &str = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]\n";

/// An operation on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    QuotaRefused,
    AllocationFails,
    VmFails,
    BootstrapFails,
    Delete,
    DeleteWhileTheNicIsMade,
    DeleteWhileTheVmIsMade,
    RetryAfterQuota,
}

const ALL: [Operation; 9] = [
    Operation::Create,
    Operation::QuotaRefused,
    Operation::AllocationFails,
    Operation::VmFails,
    Operation::BootstrapFails,
    Operation::Delete,
    Operation::DeleteWhileTheNicIsMade,
    Operation::DeleteWhileTheVmIsMade,
    Operation::RetryAfterQuota,
];

impl Operation {
    fn scenario(self) -> String {
        let more = match self {
            Self::QuotaRefused => {
                "quotas: [{region: eastus2, family: standardDSv5Family, limit: 0}]"
            }
            Self::AllocationFails => {
                "capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0}]"
            }
            Self::VmFails => "rules: [{name: all, boot: {os: client-error}}]",
            Self::RetryAfterQuota => {
                "capacity: [{region: eastus2, size: Standard_D8s_v5, available: 0, until: 30m}]"
            }
            _ => "",
        };
        format!("{SUBNET}{more}")
    }

    /// The phase in which a client requests the deletion.
    fn deleted_at(self) -> Option<Phase> {
        match self {
            Self::Delete | Self::BootstrapFails => Some(Phase::Running),
            Self::DeleteWhileTheNicIsMade => Some(Phase::NicPut),
            Self::DeleteWhileTheVmIsMade => Some(Phase::VmAccepted),
            _ => None,
        }
    }

    fn for_a_claim(self) -> bool {
        self != Self::RetryAfterQuota
    }

    /// The resources that must exist in the end.
    fn wanted(self) -> Vec<String> {
        match self {
            Self::Create | Self::RetryAfterQuota => all_names(NAME).to_vec(),
            _ => Vec::new(),
        }
    }
}

/// The faults of the call after the crash.
fn faults() -> Vec<(&'static str, Option<Fault>)> {
    vec![
        ("nothing", None),
        ("lost before", Some(Fault::DropBefore)),
        ("lost after", Some(Fault::DropAfter)),
        ("503 before", Some(Fault::StatusBefore(503))),
        ("503 after", Some(Fault::StatusAfter(503))),
        ("429", Some(Fault::Throttle { retry_after: Some(17), as_date: false, policy: None })),
        ("stale", Some(Fault::Stale)),
        ("a look denied", Some(Fault::StatusBefore(403))),
    ]
}

/// Runs an operation with a crash at a point and a fault afterwards; returns the number of points.
async fn run(operation: Operation, point: usize, fault: Option<Fault>) -> usize {
    let mut world = World::new(&operation.scenario());
    world.is_evidence = operation == Operation::BootstrapFails;
    world.shelf.put(machine(NAME, operation.for_a_claim()));
    let crash = Crash::at(point);
    let mut process = world.process(&crash);
    let mut deleted = operation.deleted_at().is_none();
    let mut alive = true;
    loop {
        let wants_deletion =
            |world: &World| !deleted && operation.deleted_at() == phase(world, NAME);
        let watched = if alive { &crash } else { &Crash::default() };
        if !world.work(&process, watched, NAME, wants_deletion).await {
            // The process was killed, and its memory is lost.
            alive = false;
            if let Some(fault) = fault.clone() {
                world.strike(fault);
            }
            process = world.process(&Crash::default());
            continue;
        }
        if deleted {
            break;
        }
        world.shelf.delete(NAME, world.now());
        deleted = true;
    }
    // All operations in Azure end by then.
    world.azure.advance(std::time::Duration::from_hours(2));
    let context = || {
        format!(
            "{operation:?}, crash at {point}, {fault:?}\n{}",
            world.azure.with(|azure| azure.journal().text().to_owned())
        )
    };
    let mut ours = world.ours();
    let mut wanted = operation.wanted();
    ours.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(ours, wanted, "{}", context());
    assert!(world.foreign_is_untouched(), "{}", context());
    match operation.deleted_at() {
        Some(_) => assert!(world.shelf.get(NAME).is_none(), "{}", context()),
        None if operation.wanted().is_empty() => {
            assert_eq!(phase(&world, NAME), Some(Phase::Gone), "{}", context());
        }
        None => assert_eq!(phase(&world, NAME), Some(Phase::Running), "{}", context()),
    }
    if operation == Operation::Create {
        assert_eq!(world.created(), 1, "{}", context());
    }
    crash.passed()
}

/// Runs an operation with a crash at every point and with every fault; returns the number of runs.
async fn sweep(operation: Operation) -> usize {
    let points = run(operation, usize::MAX, None).await;
    assert!(points >= 12, "{operation:?} has {points} points");
    for point in 1..=points {
        for (_, fault) in faults() {
            run(operation, point, fault).await;
        }
    }
    points * faults().len()
}

#[test]
fn whatever_crashes_wherever_azure_holds_exactly_what_is_wanted() {
    // Operations are independent, so each runs on a thread.
    let triples: usize = std::thread::scope(|scope| {
        let swept = ALL.map(|operation| {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(sweep(operation))
            })
        });
        swept.into_iter().map(|one| one.join().unwrap()).sum()
    });
    println!("{triples} (operation, crash point, fault) triples covered");
    assert!(triples > 1_000);
}
