//! `make bench-flex`: the controller as it is shipped makes a thousand machines at once, in Azure's
//! own time: what it needs, and how long it takes within the writes that it allows itself.

#[path = "bench/process.rs"]
mod process;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bringup_azure_sim::scenario;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass, definitions};
use bringup_objects::report::definition;
use bringup_testbed::CrdSet;
use bringup_world::World;
use bringup_world::process::ControllerProcess;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use process::Usage;
use serde_json::{Value, json};

const NAMESPACE: &str = "bringup-system";
const MANY: usize = 1_000;
/// The end of a wait that only a broken program reaches.
const FOREVER: Duration = Duration::from_mins(30);
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

fn say(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").context("write to the standard output")
}

/// The join settings of machines; nothing downloads them here.
fn join(version: &str) -> Value {
    let artifact = |name: &str, version: &str| json!({ "version": version, "url": format!("https://dl.example/{name}"), "sha256": "0".repeat(64) });
    json!({
        "server": "https://api.example:443",
        "certificateAuthorityData": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BQT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
        "agent": { "url": "https://dl.example/bringup-node", "sha256": "0".repeat(64) },
        "artifacts": {
            "containerd": artifact("containerd", "2.1.4"),
            "runc": artifact("runc", "1.3.0"),
            "kubeadm": artifact("kubeadm", version),
            "kubelet": artifact("kubelet", version),
            "kubectl": artifact("kubectl", version),
        },
    })
}

async fn prepare(client: &Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
    let class = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": "plain" },
        "spec": {
            "subscriptionID": SUBSCRIPTION,
            "location": "eastus",
            "resourceGroup": "rg-flex",
            "subnetID": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes"),
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

async fn until_all_run(client: &Client) -> Result<()> {
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
    let program = std::env::var_os("BRINGUP").context("BRINGUP must name the program bringup")?;
    let program = PathBuf::from(program);
    let world = World::start(scenario::parse("bench", "{}")?, &[CrdSet::KarpenterAzure]).await?;
    let client = world.control_plane.client();
    let definitions = definitions().into_iter().chain([definition()]);
    world.control_plane.install_definitions(definitions).await?;
    prepare(&client).await?;
    let version = client.apiserver_version().await?.git_version;
    let file = world.directory().join("join.json");
    std::fs::write(&file, join(version.trim_start_matches('v')).to_string())?;
    let socket = format!("unix://{}", world.directory().join("provider.sock").display());
    let file = file.to_str().context("a path is text")?;
    let flags = [
        "--flex",
        "--flex-cluster",
        "bench",
        "--flex-join",
        file,
        "--flex-listen",
        &socket,
        // It runs as an administrator here, whom no policy limits.
        "--flex-without-policy",
    ];
    let controller = ControllerProcess::start(&program, &world, NAMESPACE, &flags).await?;
    let before = Usage::of(controller.id())?;
    say(&format!("before: {before}"))?;
    let began = Instant::now();
    let made = futures::stream::iter(0..MANY).map(|number| make(&client, number));
    made.buffer_unordered(16).try_collect::<Vec<()>>().await?;
    tokio::time::timeout(FOREVER, until_all_run(&client)).await.context("in vain")??;
    let took = began.elapsed().as_secs();
    let (writes, refused) = world.azure.with(|azure| {
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
