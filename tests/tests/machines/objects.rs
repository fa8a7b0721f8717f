//! Extreme values of all fields of Machines, the provider's objects behind them and `BootstrapReports`,
//! through the whole observer: nothing panics, reads and writes are bounded, and another Machine gets its
//! verdict.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::request_counter::RequestCounter;
use http::Method;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition as held};
use crate::generators::objects::{self, condition};
use crate::generators::{GONE, Generator, assert_no_panics};
use crate::launch::Wanted;
use crate::verdicts::TOKEN;

/// How many of each kind are offered to the API server.
const MACHINES: usize = 32;
const REPORTS: usize = 48;
/// How many of each kind the API server must have accepted.
const LEAST_ACCEPTED: u64 = 8;
/// How many requests a Machine may cost in the time of this test.
const MOST_REQUESTS: usize = 80;
/// How many writes an object may cost in that time.
const MOST_WRITES: u64 = 5;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

fn machine(name: &str, kind: &str, id: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "prod" }, "annotations": {} },
        "spec": {
            "clusterName": "prod", "providerID": id, "bootstrap": { "dataSecretName": "never-read" },
            "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": kind, "name": name },
        },
    })
}

fn machine_status() -> Value {
    json!({ "status": {
        "initialization": { "infrastructureProvisioned": true },
        "conditions": [
            condition("InfrastructureReady", "True", "Ready"),
            condition("BootstrapConfigReady", "True", "Ready"),
            condition("NodeHealthy", "Unknown", "NodeDoesNotExist"),
        ],
    } })
}

fn azure_machine(name: &str, kind: &str, id: &str) -> Value {
    let spec = match kind {
        "AzureMachine" => json!({
            "vmSize": "Standard_D4s_v5", "sshPublicKey": "", "providerID": id,
            "osDisk": { "osType": "Linux", "diskSizeGB": 128 },
        }),
        _ => json!({ "providerID": id, "instanceID": "0" }),
    };
    json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": kind,
        "metadata": { "name": name, "annotations": {} }, "spec": spec,
    })
}

fn azure_machine_status() -> Value {
    json!({ "status": { "ready": false, "conditions": [
        condition("VMRunning", "False", "VMProvisionFailed"),
        condition("BootstrapSucceeded", "False", "BootstrapFailed"),
    ] } })
}

/// Creates Machines, the objects behind them, and reports. Returns the names of the Machines.
async fn fill(generator: &mut Generator, cluster: &ManagementCluster) -> Result<Vec<String>> {
    let namespace = &cluster.namespace;
    let machines = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/machines");
    let mut names = Vec::new();
    for nth in 0..MACHINES {
        let name = format!("odd-{nth}");
        let (kind, what, of_what) = match nth % 2 {
            0 => ("AzureMachine", "AzureMachine", "status of an AzureMachine"),
            _ => (
                "AzureMachinePoolMachine",
                "AzureMachinePoolMachine",
                "status of an AzureMachinePoolMachine",
            ),
        };
        let id =
            format!("azure://{}/Microsoft.Compute/virtualMachines/{name}", cluster.providers());
        if nth % 4 == 0 {
            cluster.put_vm(Wanted::linux(&name))?;
        }
        let plural = format!("{}s", kind.to_lowercase());
        let provided = format!("/apis/{INFRASTRUCTURE}/v1beta1/namespaces/{namespace}/{plural}");
        let object = azure_machine(&name, kind, &id);
        let place = (Method::POST, provided.as_str());
        generator.send(what, place, &object, &objects::azure_machine()).await?;
        let path = format!("{provided}/{name}/status");
        let (place, fields) = ((Method::PATCH, path.as_str()), objects::azure_machine_status());
        generator.send(of_what, place, &azure_machine_status(), &fields).await?;

        let object = machine(&name, kind, &id);
        let place = (Method::POST, machines.as_str());
        generator.send("Machine", place, &object, &objects::machine()).await?;
        let path = format!("{machines}/{name}/status");
        let (place, fields) = ((Method::PATCH, path.as_str()), objects::machine_status());
        generator.send("status of a Machine", place, &machine_status(), &fields).await?;
        names.push(name);
    }
    let path = format!(
        "/apis/bringup.dev/v1alpha1/namespaces/{namespace}/bootstrapreports?fieldManager=bringup"
    );
    for nth in 0..REPORTS {
        let name = &names[nth % MACHINES];
        let uid = match nth % 2 {
            0 => generator.uid(&format!("{machines}/{name}")).await?,
            _ => format!("{GONE}{nth}"),
        };
        let target = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": uid });
        let parent = json!({ "kind": "Cluster", "name": "prod" });
        let id =
            format!("azure://{}/Microsoft.Compute/virtualMachines/{name}", cluster.providers());
        let object = objects::report_of(nth, &target, &parent, &id, cluster.azure.clock().now());
        let place = (Method::POST, path.as_str());
        generator.send("BootstrapReport", place, &object, &objects::report()).await?;
    }
    Ok(names)
}

/// Checks that another Machine gets its verdict.
async fn assert_neighbour_is_told(cluster: &ManagementCluster, name: &str) -> Result<()> {
    cluster.launch(Wanted::linux(name)).await?;
    let machine = cluster.verdict(name).await?;
    let verdict = held(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "BootstrapTokenInvalid");
    Ok(())
}

fn assert_sound(cluster: &ManagementCluster) -> Result<()> {
    assert!(!cluster.is_finished());
    assert_no_panics(cluster.controller()?.metrics());
    Ok(())
}

#[tokio::test]
async fn extremes_of_what_objects_hold_stop_no_other_machine() -> Result<()> {
    let counter = RequestCounter::default();
    let cluster = ManagementCluster::own("objects", TOKEN, Pace::Real).await?;
    let config = cluster.control_plane().admin().config();
    let client = || counter.client(config.clone());
    let cluster = cluster.observed_as(client()?);
    assert_neighbour_is_told(&cluster, "before").await?;
    let mut generator = Generator::new(cluster.client.clone());
    let machines = fill(&mut generator, &cluster).await?;
    generator.assert_accepted(LEAST_ACCEPTED);
    assert_neighbour_is_told(&cluster, "beside").await?;
    for minute in 0..15 {
        cluster.azure.advance(Duration::from_mins(1));
        if minute % 5 == 4 {
            assert_neighbour_is_told(&cluster, &format!("neighbour{minute}")).await?;
        }
    }
    assert_sound(&cluster)?;
    // A second observer lists the objects that the first one saw coming one by one; and Machines are
    // deleted.
    let cluster = cluster.observed_as(client()?);
    assert_neighbour_is_told(&cluster, "listed").await?;
    for machine in machines.iter().step_by(3) {
        // The response may not parse.
        drop(cluster.machines().delete(machine, &DeleteParams::default()).await);
    }
    for minute in 0..30 {
        cluster.azure.advance(Duration::from_mins(1));
        if minute % 10 == 9 {
            assert_neighbour_is_told(&cluster, &format!("later{minute}")).await?;
        }
    }
    assert_sound(&cluster)?;
    let requests = cluster.azure.with(|azure| azure.journal().requests().len());
    let most = MOST_REQUESTS * MACHINES;
    assert!(requests <= most, "{requests} requests for {MACHINES} Machines");
    println!("{requests} requests");
    generator.assert_writes(&counter, MOST_WRITES);
    let unannounced = generator.unannounced(&cluster.namespace).await?;
    assert!(unannounced.is_empty(), "{unannounced:?}");
    Ok(())
}
