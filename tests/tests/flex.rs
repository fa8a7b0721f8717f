//! Machines on a real API server and a simulated Azure.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::doors::{AnyToken, InProcess};
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::flex::{Flex, Home};
use bringup_flex::engine::Bootstrap;
use bringup_objects::condition::find;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass, FINALIZER, definitions};
use bringup_testbed::ControlPlane;
use bringup_world::arm::Arm;
use bringup_world::stage::{SimulatedClock, shared};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes";
/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(2);

struct Nothing;

#[async_trait]
impl Bootstrap for Nothing {
    async fn custom_data(&self, _: &AzureFlexMachine) -> Result<String, String> {
        Ok("I2Nsb3VkLWNvbmZpZwo=".to_owned())
    }
}

/// The shared control plane, with our definitions.
async fn plane() -> Result<&'static ControlPlane> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let plane = shared().await?;
    INSTALLED.get_or_try_init(|| plane.install_definitions(definitions())).await?;
    Ok(plane)
}

fn class(name: &str) -> Value {
    json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexNodeClass",
        "metadata": { "name": name },
        "spec": {
            "subscriptionID": "00000000-0000-0000-0000-000000000000",
            "location": "East US 2",
            "resourceGroup": "rg-flex",
            "subnetID": SUBNET,
        },
    })
}

/// What runs machines, against an Azure of its own.
struct Running {
    azure: Simulator,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn run(client: Client, text: &str) -> Result<Running> {
    let text = format!(
        "subnets: [{{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}}]\n{text}"
    );
    let azure =
        Simulator::new(scenario::parse("flex", &text)?, Pace::Times(60.0), jiff::Timestamp::now());
    let clock = Arc::new(SimulatedClock(azure.clone()));
    let arm = bringup_azure::Arm::new(
        bringup_azure::Cloud::Public.endpoint(),
        Arc::new(AnyToken("flex")),
        Arc::new(InProcess::new(azure.clone())),
        clock.clone(),
    );
    let home = Home {
        cluster: "cluster-1".to_owned(),
        namespace: "default".to_owned(),
        identity: "test-0".to_owned(),
    };
    let flex = Flex::new(client, arm, clock, &home, Nothing);
    let task = tokio::spawn(async move { flex.run().await });
    Ok(Running { azure, task })
}

fn held(azure: &Simulator) -> Vec<String> {
    let all = azure.with(|azure| azure.resources());
    let mut names: Vec<String> =
        all.iter().filter_map(|one| one.id.rsplit('/').next().map(str::to_owned)).collect();
    names.sort_unstable();
    names
}

async fn until<K>(api: Api<K>, name: &str, what: &str, is: impl Condition<K>) -> Result<Option<K>>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    tokio::time::timeout(FOREVER, await_condition(api, name, is))
        .await
        .with_context(|| format!("waited in vain for {what}"))?
        .with_context(|| format!("watch for {what}"))
}

fn phase_is(phase: Phase) -> impl Condition<AzureFlexMachine> {
    move |machine: Option<&AzureFlexMachine>| {
        machine.and_then(|one| one.status.as_ref()).is_some_and(|status| status.phase == phase)
    }
}

/// A class that is ready.
async fn ready_class(client: &Client, name: &str) -> Result<Api<AzureFlexNodeClass>> {
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &serde_json::from_value(class(name))?).await?;
    let ready = |class: Option<&AzureFlexNodeClass>| {
        let status = class.and_then(|class| class.status.as_ref());
        status.is_some_and(|status| {
            find(&status.conditions, "Ready").is_some_and(|ready| ready.status == "True")
        })
    };
    let settled = until(classes.clone(), name, "a class that is ready", ready).await?;
    let finalizers = settled.and_then(|class| class.metadata.finalizers).unwrap_or_default();
    assert_eq!(finalizers, [FINALIZER], "case 30: it is really stored");
    Ok(classes)
}

fn machine(name: &str, class: &str, size: &str, claim: Option<&str>) -> Result<AzureFlexMachine> {
    let mut object = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1",
        "kind": "AzureFlexMachine",
        "metadata": { "name": name },
        "spec": { "nodeClass": class, "vmSize": size },
    });
    if let Some(claim) = claim {
        object["spec"]["claimRef"] = json!({ "name": claim, "uid": "u" });
    }
    serde_json::from_value(object).context("read the machine")
}

/// Somebody's NIC, with these tags.
fn put_nic(azure: &Simulator, name: &str, cluster: &str) -> Result<()> {
    let path = format!(
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-flex/providers/Microsoft.Network/networkInterfaces/{name}?api-version=2024-05-01"
    );
    let body = json!({
        "location": "eastus2",
        "tags": { "bringup-managed-by": "bringup", "bringup-cluster": cluster, "bringup-machine": "forgotten" },
        "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": { "id": SUBNET } } }] },
    });
    Arm::new(azure.clone()).put(&path, &body).map(drop)
}

/// Waits until Azure holds exactly these.
async fn until_held(azure: &Simulator, wanted: &[&str]) -> Result<()> {
    let mut steps = azure.steps();
    let held_at_last = async {
        while held(azure) != wanted {
            azure.stirred(&mut steps).await;
        }
    };
    let ended = tokio::time::timeout(FOREVER, held_at_last).await;
    ended.with_context(|| format!("Azure holds {:?}, and not {wanted:?}", held(azure)))
}

#[tokio::test]
async fn a_machine_that_is_applied_becomes_a_vm_and_leaves_nothing_when_it_goes() -> Result<()> {
    let client = plane().await?.client();
    let quota = "quotas: [{region: eastus2, family: StandardNCADSA100v4Family, limit: 0}]";
    let running = run(client.clone(), quota)?;
    let classes = ready_class(&client, "plain").await?;
    let machines: Api<AzureFlexMachine> = Api::all(client);
    // What was left behind is found by its tags; what is another cluster's is left alone.
    put_nic(&running.azure, "left-behind", "cluster-1")?;
    put_nic(&running.azure, "another", "cluster-2")?;
    until_held(&running.azure, &["another"]).await?;
    let create = async |machine: AzureFlexMachine| {
        machines.create(&PostParams::default(), &machine).await.context("create the machine")
    };

    create(machine("one", "plain", "Standard_D8s_v5", None)?).await?;
    let up = until(machines.clone(), "one", "a VM that runs", phase_is(Phase::Running)).await?;
    assert_eq!(held(&running.azure), ["another", "one", "one-nic", "one-osdisk"]);
    let status = up.and_then(|machine| machine.status).unwrap_or_default();
    assert_eq!(
        status.provider_id.as_deref(),
        Some(
            "azure-flex:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-flex/providers/Microsoft.Compute/virtualMachines/one"
        )
    );
    assert!(status.vm_id.is_some() && status.completed_at.is_some());

    // Without quota it says so, and leaves nothing.
    create(machine("two", "plain", "Standard_NC24ads_A100_v4", Some("two"))?).await?;
    let ended = until(machines.clone(), "two", "an end", phase_is(Phase::Gone)).await?;
    let failure = ended.and_then(|machine| machine.status?.failure).unwrap_or_default();
    assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("capacity", "QuotaExceeded"));
    assert_eq!(failure.arm_code.as_deref(), Some("OperationNotAllowed"));
    assert_eq!(held(&running.azure), ["another", "one", "one-nic", "one-osdisk"]);

    // Case 32: a class waits for its machines.
    classes.delete("plain", &DeleteParams::default()).await?;
    let gone = |machine: Option<&AzureFlexMachine>| machine.is_none();
    for name in ["one", "two"] {
        machines.delete(name, &DeleteParams::default()).await?;
        until(machines.clone(), name, "a machine that is gone", gone).await?;
    }
    assert_eq!(held(&running.azure), ["another"]);
    let gone = |class: Option<&AzureFlexNodeClass>| class.is_none();
    until(classes, "plain", "a class that is gone", gone).await?;
    Ok(())
}

#[tokio::test]
async fn case_27_the_api_server_refuses_each_wrong_field_by_its_name() -> Result<()> {
    let client = plane().await?.client();
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    classes.create(&dry, &serde_json::from_value(class("fine"))?).await?;
    for (field, value) in [
        ("allocateNodePublicIP", json!(true)),
        ("subscriptionID", json!("mine")),
        ("location", json!("east-us")),
        ("subnetID", json!("/subscriptions/s")),
        ("osDiskSizeGB", json!(1)),
        ("maxPodsPerNode", json!(1000)),
        ("bootTimeout", json!("1s")),
        ("securityType", json!("TrustedLaunch")),
        ("tags", json!({ "bringup-cluster": "other" })),
        ("zones", json!(["eastus-1"])),
        ("imageReference", json!({ "publisher": "p", "offer": "", "sku": "s" })),
    ] {
        let mut wrong = class("wrong");
        wrong["spec"][field] = value;
        let refused = classes.create(&dry, &serde_json::from_value(wrong)?).await;
        let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains(field), "{field}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_machine_is_never_changed() -> Result<()> {
    let client = plane().await?.client();
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let fixed = machine("fixed", "nowhere", "Standard_D8s_v5", None)?;
    machines.create(&PostParams::default(), &fixed).await?;
    let change = Patch::Merge(json!({ "spec": { "vmSize": "Standard_ND96isr_H200_v5" } }));
    let refused = machines.patch("fixed", &PatchParams::default(), &change).await;
    let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("a machine is never changed"), "{told}");
    Ok(())
}
