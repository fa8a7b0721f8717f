//! Attacks on the controller that creates machines: foreign resources, clients without the right
//! certificate, an attacker with the controller's own service account, idle connections and forged
//! claims.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::{SUBSCRIPTION, TestBed};
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_testbed::wait::until_object;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::super::{NAMESPACE, replay};
use super::clients::Authority;
use super::installed::{Installed, is_well};
use super::{claims, clients, foreign, secrets};

pub(super) use bringup_end_to_end::SUBNET;
pub(super) const GROUP: &str = "rg-flex";
pub(super) const CLASS: &str = "plain";
pub(super) const SIZE: &str = "Standard_D8s_v5";

/// VMs are created and deleted within a second, and the VMs of failing machines fail.
const SCENARIO: &str = "
subnets: [{resourceGroup: rg-net, virtualNetwork: vnet1, name: nodes, location: eastus2, prefix: 10.1.0.0/24}]
rules:
  - {name: broken, when: {namePrefix: fails-}, boot: {os: internal-error, vmReadyAfter: 1s, goneAfter: 1s}}
  - {name: all, boot: {vmReadyAfter: 1s, agentReadyAfter: 1s, goneAfter: 1s}}
";

async fn install() -> Result<Installed> {
    let builder = TestBed::builder().scenario(SCENARIO).endpoints().not_installed();
    let bed = builder.start().await?;
    let version = bed.client.clone().apiserver_version().await?.git_version;
    let version = version.trim_start_matches('v');
    let authority = std::fs::read(bed.control_plane().directory().join("authority.crt"))?;
    let mut options: Vec<String> = [
        "--values=charts/tests/flex.yaml",
        "--set=definitions.nodeClass=true",
        "--set=flex.plugin.enabled=false",
    ]
    .map(str::to_owned)
    .to_vec();
    let join = "--set-string=flex.join";
    options.push(format!("{join}.certificateAuthorityData={}", STANDARD.encode(authority)));
    for program in ["kubeadm", "kubelet", "kubectl"] {
        options.push(format!("{join}.artifacts.{program}.version={version}"));
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let rights = [
        ("coordination.k8s.io", "leases", "create", NAMESPACE),
        ("flex.aks.azure.com", "azureflexmachines", "watch", ""),
        ("", "secrets", "create", "kube-system"),
        ("", "secrets", "delete", "kube-system"),
    ];
    Installed::new(bed, &options, &rights).await
}

/// Starts the controller, and returns it with the address where it serves Karpenter.
async fn start(
    installed: &Installed,
    authority: &Authority,
) -> Result<(ControllerProcess, String)> {
    let directory = installed.bed.directory();
    let maps: Api<ConfigMap> = Api::namespaced(installed.admin(), NAMESPACE);
    let join = maps.get("bringup-flex-join").await?.data.unwrap_or_default();
    let file = |name: &str| directory.join(name).display().to_string();
    std::fs::write(file("join.json"), &join["join.json"])?;
    authority.write_into(directory)?;
    let flags = [
        "--flex-listen=127.0.0.1:0".to_owned(),
        format!("--flex-join={}", file("join.json")),
        format!("--flex-cert-file={}", file("tls.crt")),
        format!("--flex-key-file={}", file("tls.key")),
        format!("--flex-client-ca-file={}", file("ca.crt")),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut controller = installed.start(&flags).await?;
    let listening = controller.logged("gRPC provider listening").await?;
    let address = listening["address"].as_str().context("an address")?.to_owned();
    Ok((controller, address))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_resources_secrets_claims_and_the_provider_port_are_protected() -> Result<()> {
    let installed = install().await?;
    create_class(&installed).await?;
    // While the controller is down, another team creates resources under the names of machines.
    let planted = foreign::plant(&installed).await?;
    let authority = Authority::new()?;
    let (mut controller, address) = start(&installed, &authority).await?;
    let (installed, door) = (&installed, address.as_str());
    replay(vec![
        ("foreign resources", foreign::are_left_alone(installed, &planted).boxed()),
        ("the provider's port", clients::only_karpenter_is_served(&authority, door).boxed()),
        ("an honest machine", honest_machine_runs(installed, "honest").boxed()),
        ("Secrets in kube-system", secrets::are_out_of_reach(installed).boxed()),
        ("foreign claims", claims::forge(installed).boxed()),
    ])
    .await?;
    clients::idle_connections_keep_no_client_out(&authority, door).await?;
    is_well(&mut controller).await?;
    ensure!(controller.terminate()? == Some(0), "it ends in good order");

    // While the controller is down, the VM of a running machine is replaced.
    let replaced = foreign::replace(installed, "honest").await?;
    let (mut controller, _) = start(installed, &authority).await?;
    honest_machine_runs(installed, "later").await?;
    foreign::is_left_alone_when_its_machine_goes(installed, "honest", &replaced).await?;
    claims::are_not_deleted(installed).await?;
    foreign::are_untouched(installed, &planted)?;
    is_well(&mut controller).await
}

async fn create_class(installed: &Installed) -> Result<()> {
    let class = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1", "kind": "AzureFlexNodeClass",
        "metadata": { "name": CLASS },
        "spec": { "subscriptionID": SUBSCRIPTION, "location": "eastus2", "resourceGroup": GROUP,
                  "subnetID": SUBNET },
    });
    let classes: Api<AzureFlexNodeClass> = Api::all(installed.admin());
    classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    Ok(())
}

pub(super) fn machines(installed: &Installed) -> Api<AzureFlexMachine> {
    Api::all(installed.admin())
}

/// Creates a machine, for a claim if one is given.
pub(super) async fn create_machine(
    installed: &Installed,
    name: &str,
    claim: Option<Value>,
) -> Result<AzureFlexMachine> {
    let mut machine = json!({
        "apiVersion": "flex.aks.azure.com/v1alpha1", "kind": "AzureFlexMachine",
        "metadata": { "name": name },
        "spec": { "nodeClass": CLASS, "vmSize": SIZE },
    });
    if let Some(claim) = claim {
        machine["spec"]["claimRef"] = claim;
    }
    let machine = serde_json::from_value(machine)?;
    machines(installed).create(&PostParams::default(), &machine).await.context("create a machine")
}

pub(super) async fn machine_in(
    installed: &Installed,
    name: &str,
    phase: Phase,
) -> Result<AzureFlexMachine> {
    let is = move |machine: Option<&AzureFlexMachine>| {
        machine.and_then(|one| one.status.as_ref()).is_some_and(|status| status.phase == phase)
    };
    let found =
        until_object(machines(installed), name, &format!("{name} in {phase:?}"), is).await?;
    found.context("the machine is there")
}

async fn honest_machine_runs(installed: &Installed, name: &str) -> Result<()> {
    create_machine(installed, name, None).await?;
    machine_in(installed, name, Phase::Running).await.map(drop)
}
