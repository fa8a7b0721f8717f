//! A thousand machines at once.

#[path = "flex/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::TestBed;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Phase;
use bringup_testbed::wait::in_time;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};

use crate::common::{FlexBed, machine};

const MANY: usize = 1_000;

/// Waits until all machines run; none may fail.
async fn all_run(bed: &FlexBed) -> Result<()> {
    let machines = watcher(bed.machines(), watcher::Config::default()).applied_objects();
    let mut machines = std::pin::pin!(machines);
    let mut up: BTreeMap<String, AzureFlexMachine> = BTreeMap::new();
    while up.len() < MANY {
        let machine = machines.try_next().await?.context("the watch ended")?;
        let status = machine.status.clone().unwrap_or_default();
        assert_eq!(status.failure, None, "{}", machine.name_any());
        if status.phase == Phase::Running {
            up.insert(machine.name_any(), machine);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_machines_at_once_all_run_and_azure_refuses_nothing() -> Result<()> {
    let subnet = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/16}]";
    let bed = FlexBed::with(TestBed::builder().scenario(subnet).pace(Pace::Times(60.0))).await?;
    bed.ready_class("plain").await?;
    let began = bed.azure.clock().now();
    let all =
        (0..MANY).map(|number| machine(&format!("m-{number:04}"), "plain", "Standard_D8s_v5"));
    let all = all.collect::<Result<Vec<_>>>()?;
    let made = futures::stream::iter(&all).map(|machine| bed.create_machine(machine));
    made.buffer_unordered(16).try_collect::<Vec<()>>().await?;
    in_time("all machines to run", all_run(&bed)).await??;
    let took = began.duration_until(bed.azure.clock().now());

    // The tests in crates/azure inject time and assert how closely writes follow bringup's own budget.
    // Here the clock runs on while the computer is busy. Azure refuses requests beyond its own limit.
    let (mut refused, mut writes) = (0, 0);
    bed.azure.with(|azure| {
        for request in azure.journal().requests() {
            refused += usize::from(request.status == Some(429));
            writes += usize::from(request.method == "PUT");
        }
    });
    assert_eq!(refused, 0, "Azure refused requests as too many");
    assert_eq!(writes, 2 * MANY, "one NIC and one VM for each");
    let held = bed.held();
    assert_eq!(held.len(), 3 * MANY, "a VM, a NIC and a disk for each");
    println!("{MANY} machines run after {} s of Azure's time", took.as_secs());
    Ok(())
}
