//! The inside of a flex machine alone: the real agent joins the real API server with a bootstrap token,
//! or reports why it cannot.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure_sim::azure::Azure;
use bringup_contract::join_config::{AgentArtifact, JoinConfig, join_custom_data};
use bringup_end_to_end::flex_guests::{GuestsBed, NO_MODULES, can_run};
use bringup_testbed::wait::{is_gone, until_object};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-flex";
const TOKEN: &str = "abcdef.0123456789abcdef";

fn vm_path(name: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/{name}")
}

/// Makes the VM `name`, which is to join with `token`.
fn make(bed: &GuestsBed, version: &str, name: &str, token: &str) -> Result<()> {
    let settings = bed.join_settings();
    let config = json!({
        "cluster": {
            "server": settings["server"],
            "certificateAuthorityData": settings["certificateAuthorityData"],
            "version": version,
        },
        "token": token,
        "node": {
            "name": name,
            "providerId": format!("azure-flex://{}", vm_path(name)),
            "maxPods": 60,
            "labels": { "karpenter.sh/nodepool": "general", "kubernetes.io/role": "agent" },
            "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }],
        },
        "kubernetesVersion": version,
        "artifacts": settings["artifacts"],
    });
    let config = JoinConfig::parse(config.to_string().as_bytes())?;
    let text = |field: &str| settings["agent"][field].as_str().unwrap_or_default().to_owned();
    let agent = AgentArtifact { url: text("url"), sha256: text("sha256") };
    let custom_data = STANDARD.encode(join_custom_data(&config, &agent)?);
    let arm = bed.arm();
    let nic = arm.put_nic(&format!("{GROUP}/providers"), name)?;
    let body = json!({
        "location": "eastus",
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_D8s_v5" },
            "storageProfile": {
                "imageReference": { "publisher": "Canonical", "offer": "o", "sku": "s", "version": "1.0.0" },
                "osDisk": { "name": format!("{name}-disk"), "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": {
                "computerName": name,
                "adminUsername": "azureuser",
                "customData": custom_data,
                "linuxConfiguration": { "ssh": { "publicKeys": [{ "path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA" }] } },
            },
            "networkProfile": { "networkInterfaces": [{ "id": nic, "properties": { "deleteOption": "Delete" } }] },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
        },
    });
    arm.put(&vm_path(name), &body).map(drop)
}

fn token_secret() -> Secret {
    let data = [
        ("token-id", "abcdef"),
        ("token-secret", "0123456789abcdef"),
        ("usage-bootstrap-authentication", "true"),
        ("auth-extra-groups", "system:bootstrappers:bringup"),
    ];
    Secret {
        metadata: ObjectMeta {
            name: Some("bootstrap-token-abcdef".to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..Secret::default()
    }
}

/// The summary of a join on the console, once it has ended.
async fn summary(bed: &GuestsBed, vm: &str) -> Result<Value> {
    let mark = format!("/{vm}: script ended with ");
    let has_ended = |azure: &mut Azure| azure.journal().text().contains(&mark);
    bed.azure_when(&format!("the end of the join of {vm}"), has_ended, |ended| *ended).await?;
    let console = bed.arm().console(&vm_path(vm))?;
    let line = console.lines().find_map(|line| line.strip_prefix("BRINGUP-NODE/1 "));
    let line = line.with_context(|| format!("no summary of {vm} in {console}"))?;
    serde_json::from_str(line.trim()).context("read the summary")
}

#[tokio::test]
async fn a_machine_joins_by_its_token_and_goes_with_its_vm_and_others_say_why_they_did_not()
-> Result<()> {
    if !can_run("guest") {
        return Ok(());
    }
    let bed = GuestsBed::start(|guests| {
        format!(
            "quirks: {{consoleLag: 0s}}\nrules:\n- {{name: bad, when: {{namePrefix: bad}}, boot: {{vmReadyAfter: 1s, {}}}}}\n- {{name: good, boot: {{vmReadyAfter: 1s, {}}}}}",
            guests.boot(Some(NO_MODULES)),
            guests.boot(None),
        )
    })
    .await?;
    let client = bed.client.clone();
    let version = client.apiserver_version().await?.git_version;
    let version = version.trim_start_matches('v');
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
    secrets.create(&PostParams::default(), &token_secret()).await?;

    make(&bed, version, "good-1", TOKEN)?;
    make(&bed, version, "stranger-1", "abcdef.0000000000000000")?;
    make(&bed, version, "bad-1", TOKEN)?;

    let stranger = summary(&bed, "stranger-1").await?;
    assert_eq!(
        (&stranger["exit"], &stranger["cause"]),
        (&json!(198), &json!("BootstrapTokenInvalid")),
        "{stranger}"
    );
    let bad = summary(&bed, "bad-1").await?;
    assert_eq!((&bad["exit"], &bad["step"]), (&json!(192), &json!("base-os")), "{bad}");

    let nodes: Api<Node> = Api::all(client);
    let is_ready = |node: Option<&Node>| node.is_some_and(is_ready);
    let node = until_object(nodes.clone(), "good-1", "a Node that is ready", is_ready).await?;
    let node = node.context("the Node exists")?;
    let spec = node.spec.clone().unwrap_or_default();
    assert_eq!(spec.provider_id, Some(format!("azure-flex://{}", vm_path("good-1"))));
    let taints = spec.taints.unwrap_or_default();
    assert!(
        taints
            .iter()
            .any(|taint| taint.key == "karpenter.sh/unregistered" && taint.effect == "NoExecute")
    );
    assert_eq!(node.labels().get("karpenter.sh/nodepool").map(String::as_str), Some("general"));
    assert_eq!(node.labels().get("kubernetes.io/role"), None, "kubelet may not set it");
    let status = node.status.clone().unwrap_or_default();
    let amounts = |all: Option<BTreeMap<String, _>>| -> Vec<String> {
        let all: BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity> =
            all.unwrap_or_default();
        ["cpu", "memory", "pods"].into_iter().map(|name| all[name].0.clone()).collect()
    };
    assert_eq!(amounts(status.capacity), ["8", "32Gi", "60"]);
    assert_eq!(amounts(status.allocatable), ["7820m", "28373Mi", "60"]);
    assert!(status.addresses.unwrap_or_default()[0].address.starts_with("10.1.0."));
    assert!(!bed.guests.machine("good-1").join("etc/bringup-node/join.json").exists());
    // The other machines have had as much time to join as this one.
    assert_eq!(names(&nodes).await?, ["good-1"]);

    bed.arm().delete(&vm_path("good-1"))?;
    until_object(nodes.clone(), "good-1", "the end of the Node", is_gone).await?;
    assert!(names(&nodes).await?.is_empty());
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

async fn names(nodes: &Api<Node>) -> Result<Vec<String>> {
    Ok(nodes.list(&ListParams::default()).await?.iter().map(kube::ResourceExt::name_any).collect())
}
