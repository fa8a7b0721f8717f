//! Steps that tests of single machines share.

use std::collections::BTreeMap;

use bringup_azure_sim::fault::{Fault, FaultRule, On};
use bringup_objects::flex::machine::{FlexMachineStatus, Phase};

use super::{Crash, World, phase};

const SUBNET: &str = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]\n";

/// A simulated Azure with a subnet and further content.
pub fn world(more: &str) -> World {
    World::new(&format!("{SUBNET}{more}"))
}

/// Reconciles a machine in one process until it rests.
pub async fn settle(world: &World, name: &str) {
    let crash = Crash::default();
    assert!(world.work(&world.process(&crash), &crash, name, |_| false).await);
}

/// Reconciles a machine until it is in a phase.
pub async fn reach(world: &World, name: &str, wanted: Phase) {
    let crash = Crash::default();
    let there = |world: &World| phase(world, name) == Some(wanted);
    world.work(&world.process(&crash), &crash, name, there).await;
    assert_eq!(phase(world, name), Some(wanted));
}

pub fn status(world: &World, name: &str) -> FlexMachineStatus {
    world.shelf.get(name).and_then(|machine| machine.status).unwrap_or_default()
}

pub fn journal(world: &World) -> String {
    world.azure.with(|azure| azure.journal().text().to_owned())
}

/// Sets the answer to the next request of a kind.
pub fn answer(world: &World, method: &str, path: &str, status: u16, body: &str) {
    answer_often(world, (method, path), 1, status, body);
}

/// Sets the answer to the next requests of a kind.
pub fn answer_often(
    world: &World,
    (method, path): (&str, &str),
    times: u32,
    status: u16,
    body: &str,
) {
    let on = On {
        method: Some(method.to_owned()),
        path_contains: Some(path.to_owned()),
        times: Some(times),
        ..On::default()
    };
    let fault = Fault::Answer { status, headers: BTreeMap::new(), body: body.to_owned() };
    world.azure.with(|azure| azure.arm_fault(FaultRule { on, fault }));
}

pub fn error(code: &str) -> String {
    format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"as the test says\"}}}}")
}
