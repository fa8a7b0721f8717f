//! `bringup flex`, on a real API server and a simulated Azure.

#[path = "common/mod.rs"]
mod common;

use std::process::Command;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::flex_controller::FlexController;
use bringup_end_to_end::{SUBNET, SUBSCRIPTION, TestBed};
use bringup_objects::flex::LEDGER;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_provision::LedgerContent;
use bringup_testbed::wait::{in_time, objects, until, until_object};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::common::{Ran, ran};

const STORM: usize = 200;

/// Creates a NodeClaim and its machine, for which there is no quota.
async fn refused(client: &Client, name: &str) -> Result<()> {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": name },
        "spec": {
            "nodeClassRef": { "group": "flex.aks.azure.com", "kind": "AzureFlexNodeClass", "name": "a100" },
            "requirements": [],
        },
    });
    let resource = ApiResource::erase::<bringup_objects::NodeClaim>(&());
    let claims: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let claim = claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    let machine = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": name },
        "spec": {
            "nodeClass": "a100",
            "vmSize": "Standard_NC24ads_A100_v4",
            "claimRef": { "name": name, "uid": claim.uid() },
        },
    });
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    machines.create(&PostParams::default(), &serde_json::from_value(machine)?).await?;
    Ok(())
}

fn class() -> Result<AzureFlexNodeClass> {
    let class = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": "a100" },
        "spec": {
            "subscriptionID": SUBSCRIPTION,
            "location": "eastus2",
            "resourceGroup": "rg-flex",
            "subnetID": SUBNET,
        },
    });
    serde_json::from_value(class).context("read the class")
}

/// Waits until this many machines have left no resources in Azure.
async fn until_gone(client: &Client, wanted: usize) -> Result<()> {
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    let stream = watcher(machines, watcher::Config::default()).applied_objects();
    let mut stream = std::pin::pin!(stream);
    let mut gone = std::collections::BTreeSet::new();
    let all = async {
        while gone.len() < wanted {
            let machine = stream.try_next().await?.context("the watch ended")?;
            if machine.status.as_ref().is_some_and(|status| status.phase == Phase::Gone) {
                gone.insert(machine.name_any());
            }
        }
        anyhow::Ok(())
    };
    in_time("the end of all machines", all).await?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_storm_the_status_reads_like_a_receipt() -> Result<()> {
    let text = "subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/20}]\nquotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]";
    let bed = TestBed::builder()
        .flex()
        .without_nodes()
        .scenario(text)
        .pace(Pace::Times(60.0))
        .behind(SignedDuration::from_hours(24 * 30))
        .endpoints()
        .start()
        .await?;
    let client = bed.client.clone();
    let flex_controller = FlexController::start(client.clone(), &bed.azure);
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &class()?).await?;

    let names: Vec<String> = (0..STORM).map(|number| format!("storm-{number:03}")).collect();
    let made = futures::stream::iter(&names).map(|name| refused(&client, name));
    made.buffer_unordered(16).try_collect::<Vec<()>>().await?;
    until_gone(&client, STORM).await?;
    // Half of the NodeClaims are deleted with their machines; the count of deleted machines remains.
    let claims: Api<bringup_objects::NodeClaim> = Api::all(client.clone());
    let machines: Api<AzureFlexMachine> = Api::all(client.clone());
    for name in &names[..STORM / 2] {
        claims.delete(name, &kube::api::DeleteParams::default()).await?;
    }
    let left = objects(machines, watcher::Config::default());
    until("the end of half of them", left, |left| left.len() <= STORM / 2).await?;
    // A resource that was left behind, to be deleted by a sweep.
    let nic = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/left-behind?api-version=2024-05-01"
    );
    let ledgers: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let begun = bed.now();
    let is_swept = |ledger: Option<&ConfigMap>| {
        LedgerContent::of(ledger).audit.at.is_some_and(|at| at > begun)
    };
    until_object(ledgers, LEDGER, "a sweep", is_swept).await?;

    let kubeconfig = bed.kubeconfig().to_owned();
    let bringup = |arguments: &[&str]| -> Ran {
        ran(Command::new(env!("CARGO_BIN_EXE_bringup"))
            .args(["flex"])
            .args(arguments)
            .args(["--system-namespace", "default", "--kubeconfig"])
            .arg(&kubeconfig))
    };
    let told = bringup(&["status"]);
    assert_eq!(told.code, 0, "{}", told.err);
    for line in [
        "100 machines: 100 Gone.",
        "Receipt: 200 machines ended; 0 ran, 200 refused or failed (200 QuotaExceeded).",
        "Deleted: 0 VMs, 200 NICs, 0 disks; 0 more by the sweep.",
        "Orphaned: 0 of 0 resources in Azure with the tags of cluster cluster-1",
        "eastus2  StandardNCADSA100v4Family  0     0",
    ] {
        assert!(told.out.contains(line), "{line}\n{}", told.out);
    }
    let refused = told.out.lines().find(|line| line.contains("/eastus2/family Standard"));
    let refused = refused.with_context(|| format!("what was refused is told:\n{}", told.out))?;
    assert!(refused.contains("QuotaExceeded") && refused.contains("OperationNotAllowed"));
    let receipt = bringup(&["status", "--output", "json"]).json();
    assert_eq!(receipt["receipt"]["failed"]["QuotaExceeded"], 200);
    assert_eq!(receipt["machines"].as_array().map(Vec::len), Some(100));

    // The sweep lists orphaned resources before it deletes them, and leaves the resources of others.
    drop(flex_controller);
    let body = |cluster: &str| {
        json!({
            "location": "eastus2",
            "tags": { "bringup-managed-by": "bringup", "bringup-cluster": cluster, "bringup-machine": "forgotten", "bringup-created-at": "2026-01-01T00:00:00Z" },
            "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": SUBNET } } }] },
        })
    };
    bed.arm().put(&nic, &body("cluster-1"))?;
    bed.arm().put(&nic.replace("left-behind", "foreign"), &body("cluster-2"))?;
    let directory = tempfile::tempdir()?;
    let token = directory.path().join("token");
    std::fs::write(&token, "token")?;
    let sweep = |more: &[&str]| -> Ran {
        ran(Command::new(env!("CARGO_BIN_EXE_bringup"))
            .args(["flex", "sweep"])
            .args(more)
            .args(["--system-namespace", "default", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(["--azure-endpoint", &bed.azure_endpoint(), "--azure-ca-file"])
            .arg(bed.azure_ca_file())
            .env("AZURE_CLIENT_ID", "11111111-1111-1111-1111-111111111111")
            .env("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222")
            .env("AZURE_FEDERATED_TOKEN_FILE", &token)
            .env("AZURE_AUTHORITY_HOST", bed.azure_endpoint()))
    };
    let told = sweep(&["--dry-run"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let line = told.out.lines().find(|line| line.starts_with("NIC   left-behind"));
    assert!(line.is_some_and(|line| line.ends_with("would be deleted")), "{}", told.out);
    assert!(!told.out.contains("foreign") && told.out.contains("nothing was deleted"));
    let told = sweep(&[]);
    assert!(told.out.contains("deleting"), "{}{}", told.out, told.err);
    assert!(
        sweep(&["--dry-run"])
            .out
            .contains("Found no orphaned resources of cluster cluster-1 in Azure")
    );
    Ok(())
}

#[test]
fn what_is_missing_or_wrong_for_making_machines_is_said_at_the_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = common::file(directory.path(), "join.json", b"{\"server\": 1}");
    let absent = directory.path().join("absent.json");
    let absent = absent.to_str().context("a path is text")?;
    for (arguments, told) in [
        (vec!["--flex"], "--flex-cluster"),
        (vec!["--flex", "--flex-cluster", "c"], "--flex-join"),
        (vec!["--flex", "--flex-cluster", "c", "--flex-join", &file, "--dry-run"], "--dry-run"),
        (vec!["--flex", "--flex-cluster", "c", "--flex-join", absent], "absent.json"),
        (vec!["--flex", "--flex-cluster", "c", "--flex-join", &file], "join.json"),
        (vec!["--flex-listen", "unix:provider.sock"], "unix:///PATH"),
        (vec!["--flex-client", "*.karpenter.svc"], "wildcards are not supported"),
        (vec!["--flex-plugin-client", "aks-flex"], "--flex-plugin"),
        (vec!["--flex-plugin", "--flex-plugin-scope", "a/b/c"], "is not a scope"),
    ] {
        let mut all = vec!["controller", "--kubeconfig", "/dev/null"];
        all.extend(&arguments);
        let ran = common::bringup(&all);
        assert!(ran.code != 0 && ran.err.contains(told), "{arguments:?}: {}", ran.err);
    }
    Ok(())
}
