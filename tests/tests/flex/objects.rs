//! Extreme values of all fields of `AzureFlexNodeClasses`, `AzureFlexMachines`, their NodeClaims and
//! Nodes, through the whole machine controller: the controller does not end, requests and writes are
//! bounded, and another machine is created and deleted.

use anyhow::{Context as _, Result};
use bringup_end_to_end::request_counter::RequestCounter;
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::Phase;
use bringup_testbed::wait::{is_gone, until_object};
use http::Method;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::common::{FlexBed, SUBSCRIPTION, class};
use crate::generators::Generator;
use crate::generators::objects::{self, condition};

/// How many of each kind are offered to the API server.
const OBJECTS: usize = 24;
/// How many of each kind the API server must have accepted.
const LEAST_ACCEPTED: u64 = 4;
/// How many requests to Azure an object may cost at once, and in each minute of Azure's clock.
const MOST_REQUESTS: usize = 40;
const REQUESTS_A_MINUTE: usize = 4;
/// How many writes to the API server an object may cost at once, and the minutes after which it may cost
/// one more.
const MOST_WRITES: u64 = 4;
const MINUTES_A_WRITE: u64 = 10;

const FLEX: &str = "/apis/flex.aks.azure.com/v1alpha1";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

fn machine(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1", "kind": "AzureFlexMachine",
        "metadata": { "name": name, "annotations": {} },
        "spec": { "nodeClass": class, "vmSize": "Standard_D8s_v5", "taints": ["a=b:NoSchedule"], "labels": {} },
    })
}

fn id(name: &str) -> String {
    format!(
        "azure-flex:///subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/{name}"
    )
}

fn machine_status(name: &str) -> Value {
    json!({ "status": {
        "phase": "VmAccepted", "attempt": 1, "providerID": id(name),
        "createdAt": "2026-01-27T14:32:00Z",
        "call": { "failures": 0, "startedAt": "2026-01-27T14:32:00Z" },
        "failure": { "class": "capacity", "cause": "QuotaExceeded", "message": "no" },
        "conditions": [condition("Ready", "False", "VmAccepted"), condition("Other", "True", "Other")],
    } })
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "labels": {}, "annotations": {} },
        "spec": {
            "nodeClassRef": { "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": "plain" },
            "requirements": [],
        },
    })
}

fn claim_status(name: &str) -> Value {
    json!({ "status": {
        "providerID": id(name), "imageID": "ubuntu",
        "conditions": [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")],
    } })
}

fn node(name: &str) -> Value {
    let mut ready = condition("Ready", "True", "KubeletReady");
    ready["lastHeartbeatTime"] = json!("2026-01-27T14:32:00Z");
    let mut disk = condition("DiskPressure", "False", "KubeletHasNoDiskPressure");
    disk["lastHeartbeatTime"] = json!("2026-01-27T14:32:00Z");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": {}, "annotations": {} },
        "spec": { "providerID": id(name), "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule" }] },
        "status": {
            "conditions": [ready, disk],
            "addresses": [{ "type": "InternalIP", "address": "10.1.0.9" }],
        },
    })
}

async fn fill(generator: &mut Generator) -> Result<()> {
    let (classes, machines) =
        (format!("{FLEX}/azureflexnodeclasses"), format!("{FLEX}/azureflexmachines"));
    for nth in 0..OBJECTS {
        let name = format!("odd-{nth}");
        let place = (Method::POST, classes.as_str());
        generator.send("AzureFlexNodeClass", place, &class(&name), &objects::flex_class()).await?;
        let path = format!("{classes}/{name}/status");
        let (place, fields) = ((Method::PATCH, path.as_str()), objects::flex_class_status());
        let status = json!({ "status": { "conditions": [
            condition("Ready", "True", "Ready"), condition("AzureAccess", "True", "AzureAccess"),
        ] } });
        generator.send("status of an AzureFlexNodeClass", place, &status, &fields).await?;

        let place = (Method::POST, CLAIMS);
        generator.send("NodeClaim", place, &claim(&name), &objects::claim()).await?;
        let path = format!("{CLAIMS}/{name}/status");
        let (place, fields) = ((Method::PATCH, path.as_str()), objects::claim_status());
        generator.send("status of a NodeClaim", place, &claim_status(&name), &fields).await?;
        let uid = generator.uid(&format!("{CLAIMS}/{name}")).await?;

        let mut object = machine(&name, if nth % 2 == 0 { "plain" } else { &name });
        object["spec"]["claimRef"] = json!({ "name": name, "uid": uid });
        let place = (Method::POST, machines.as_str());
        generator.send("AzureFlexMachine", place, &object, &objects::flex_machine()).await?;
        let path = format!("{machines}/{name}/status");
        let (place, fields) = ((Method::PATCH, path.as_str()), objects::flex_machine_status());
        let status = machine_status(&name);
        generator.send("status of an AzureFlexMachine", place, &status, &fields).await?;

        let place = (Method::POST, "/api/v1/nodes");
        generator.send("Node", place, &node(&name), &objects::node()).await?;
    }
    Ok(())
}

/// Checks that another machine is created, and leaves nothing when it is deleted. Its labels are present
/// and empty, which bringup's own types would never write.
async fn assert_neighbour_lives(bed: &FlexBed, name: &str) -> Result<()> {
    let resource = ApiResource::erase::<AzureFlexMachine>(&());
    let machines: Api<DynamicObject> = Api::all_with(bed.client.clone(), &resource);
    let object = serde_json::from_value(machine(name, "plain"))?;
    machines.create(&PostParams::default(), &object).await.context("create a machine")?;
    bed.machine_in(name, Phase::Running).await?;
    bed.machines().delete(name, &DeleteParams::default()).await?;
    until_object(bed.machines(), name, "a machine that is gone", is_gone).await?;
    Ok(())
}

#[tokio::test]
async fn extremes_of_what_objects_hold_stop_no_other_flex_machine() -> Result<()> {
    let mut bed = FlexBed::new("").await?;
    let (counted, start) = (RequestCounter::default(), bed.azure.clock().now());
    bed.restart_counted(&counted)?;
    bed.ready_class("plain").await?;
    assert_neighbour_lives(&bed, "before").await?;
    let mut generator = Generator::new(bed.client.clone());
    fill(&mut generator).await?;
    generator.assert_accepted(LEAST_ACCEPTED);
    assert_neighbour_lives(&bed, "beside").await?;
    assert!(!bed.is_finished());
    // A second controller lists the objects that the first one saw coming one by one.
    bed.restart_counted(&counted)?;
    assert_neighbour_lives(&bed, "listed").await?;
    assert!(!bed.is_finished());
    // On a slow computer, more minutes of Azure's clock pass.
    let minutes = u64::try_from(start.duration_until(bed.azure.clock().now()).as_mins())?;
    let requests = bed.azure.with(|azure| azure.journal().requests().len());
    println!("{requests} requests in {minutes} minutes");
    let most = OBJECTS * (MOST_REQUESTS + REQUESTS_A_MINUTE * usize::try_from(minutes)?);
    assert!(requests <= most, "{requests} requests in {minutes} minutes");
    generator.assert_writes(&counted, MOST_WRITES + minutes / MINUTES_A_WRITE);
    Ok(())
}
