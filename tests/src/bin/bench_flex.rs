//! `make bench-flex`: the released controller creates a thousand machines at once, with realistic delays of
//! Azure: its resource usage, and the time that it takes within its own limit of writes.

#[path = "bench/process.rs"]
mod process;

use bringup_end_to_end::flex_controller::join_settings;
use bringup_end_to_end::process::built;
use bringup_end_to_end::say;
use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::{SUBNET, SUBSCRIPTION, TestBed};
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_testbed::wait::in_time;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::PostParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use process::Usage;
use serde_json::json;

const MANY: usize = 1_000;

async fn prepare(client: &Client) -> Result<()> {
    let class = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": "plain" },
        "spec": {
            "subscriptionID": SUBSCRIPTION,
            "location": "eastus",
            "resourceGroup": "rg-flex",
            "subnetID": SUBNET,
        },
    });
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    Ok(())
}

async fn make(client: &Client, number: usize) -> Result<()> {
    let machine = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": format!("m-{number:04}") },
        "spec": { "nodeClass": "plain", "vmSize": "Standard_D8s_v5" },
    });
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    machines.create(&PostParams::default(), &serde_json::from_value(machine)?).await?;
    Ok(())
}

/// Waits until all machines have been running.
async fn all_run(client: &Client) -> Result<()> {
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    let machines = watcher(machines, watcher::Config::default()).applied_objects();
    let mut machines = std::pin::pin!(machines);
    let mut up = BTreeSet::new();
    while up.len() < MANY {
        let machine = machines.try_next().await?.context("the watch ended")?;
        if machine.status.as_ref().is_some_and(|status| status.phase == Phase::Running) {
            up.insert(machine.name_any());
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let program = built("BRINGUP", "bringup")?;
    let bed = TestBed::builder().flex().endpoints().start().await?;
    let client = bed.client.clone();
    prepare(&client).await?;
    let version = client.apiserver_version().await?.git_version;
    let file = bed.directory().join("join.json");
    std::fs::write(&file, join_settings(version.trim_start_matches('v')).to_string())?;
    let socket = format!("unix://{}", bed.directory().join("provider.sock").display());
    let file = file.to_str().context("a path is text")?;
    let flags = [
        "--flex",
        "--flex-cluster",
        "bench",
        "--flex-join",
        file,
        "--flex-listen",
        &socket,
        // The controller runs as an administrator here, whom no policy limits.
        "--flex-without-policy",
    ];
    let controller = ControllerProcess::start(&program, &bed, &flags).await?;
    let before = Usage::of(controller.id())?;
    say(&format!("before: {before}"))?;
    let began = Instant::now();
    let made = futures::stream::iter(0..MANY).map(|number| make(&client, number));
    made.buffer_unordered(16).try_collect::<Vec<()>>().await?;
    in_time("all machines to run", all_run(&client)).await??;
    let took = began.elapsed().as_secs();
    let (writes, refused) = bed.azure.with(|azure| {
        let all = azure.journal().requests();
        let writes = all.iter().filter(|one| one.method == "PUT").count();
        (writes, all.iter().filter(|one| one.status == Some(429)).count())
    });
    ensure!(refused == 0, "Azure refused {refused} requests as too many");
    let after = Usage::of(controller.id())?;
    say(&format!("{MANY} machines run after {took} s; {writes} writes to ARM, none refused"))?;
    say(&format!("after: {after}"))?;
    let pool = controller.terminate()?;
    ensure!(pool == Some(0), "the controller ended with {pool:?}");
    Ok(())
}
