//! A cluster with nodes that came up and nodes that did not.

use anyhow::{Context as _, Result};
use bringup_objects::report::definition;
use bringup_testbed::{ControlPlane, CrdSet, User};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::common::{Ran, ran};
use crate::terminal;

/// The image without oras.
pub(crate) const BAD: &str = "202601.27.0";
/// The image before [`BAD`].
pub(crate) const GOOD: &str = "202601.13.0";

/// The cluster that tests share. The tests only read.
pub(crate) async fn shared() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_try_init(populated).await
}

async fn populated() -> Result<ControlPlane> {
    let plane = ControlPlane::builder().crds([CrdSet::KarpenterAzure]).start().await?;
    plane.install_definitions([definition()]).await?;
    let client = plane.client();
    for namespace in ["bringup-system", "team-a"] {
        let object =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        create(&client, &object).await?;
    }
    for name in ["default-ok1", "default-ok2", "default-ok3", "default-ok4", "default-ok5"] {
        claim(&client, name, "default", GOOD, &[("Registered", "True", "Registered", "")]).await?;
    }
    create(&client, &node("aks-default-ok1", true)).await?;
    create(&client, &node("aks-system-1", false)).await?;
    let waiting = [
        ("Launched", "True", "Launched", ""),
        ("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster"),
        ("BootstrapSucceeded", "Unknown", "Diagnosing", "The node has not joined yet."),
    ];
    claim(&client, "gpu-new", "gpu", BAD, &waiting).await?;
    let uid = claim(&client, "default-alive", "default", BAD, &failed()).await?;
    for (name, uid) in
        [("default-alive", uid.as_str()), ("default-gone", "u1"), ("default-third", "u2")]
    {
        create(&client, &report("bringup-system", name, uid, "default", BAD, 250)).await?;
    }
    for (uid, seconds) in [("u3", 90_000), ("u4", 8_000)] {
        create(&client, &report("team-a", "other-twice", uid, "other", "202512.03.0", seconds))
            .await?;
    }
    // The API server accepts times that cannot be read.
    let mut unreadable = report("team-a", "unreadable", "u5", "other", GOOD, 10);
    unreadable["status"]["finishedAt"] = json!("2026-01-27T14:32:00+99:99");
    create(&client, &unreadable).await?;
    Ok(plane)
}

/// The conditions that bringup puts on a claim that failed.
pub(crate) fn failed() -> [(&'static str, &'static str, &'static str, &'static str); 4] {
    [
        ("Launched", "True", "Launched", ""),
        ("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster"),
        ("CSEProvisioned", "False", "CSEFailed", "CSE exited with code 211."),
        ("BootstrapSucceeded", "False", "BinaryMissing", "oras is absent. Use another image."),
    ]
}

/// Creates a NodeClaim and returns its UID.
pub(crate) async fn claim(
    client: &Client,
    name: &str,
    pool: &str,
    image: &str,
    conditions: &[(&str, &str, &str, &str)],
) -> Result<String> {
    let object = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": pool } },
        "spec": {
            "nodeClassRef": { "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": pool },
            "requirements": [{ "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] }],
        },
    });
    let made = create(client, &object).await?;
    let joined =
        conditions.iter().any(|(kind, status, ..)| (*kind, *status) == ("Registered", "True"));
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, reason, message)| {
            json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-27T10:00:00Z" })
        })
        .collect();
    let status = json!({ "status": {
        "providerID": provider_id(&format!("aks-{name}")),
        "nodeName": joined.then(|| format!("aks-{name}")),
        "imageID": image_id(image),
        "conditions": conditions,
    } });
    let claims: Api<DynamicObject> = Api::all_with(client.clone(), &resource(&object));
    claims.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    made.metadata.uid.context("the server gives a uid")
}

fn provider_id(vm: &str) -> String {
    format!(
        "azure:///subscriptions/s/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachines/{vm}"
    )
}

fn image_id(version: &str) -> String {
    format!("/CommunityGalleries/AKSAzureLinux/images/V3gen2/versions/{version}")
}

pub(crate) fn node(name: &str, ready: bool) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name },
        "spec": { "providerID": provider_id(name) },
        "status": { "conditions": [{
            "type": "Ready",
            "status": if ready { "True" } else { "False" },
            "reason": "Kubelet",
            "message": "the CNI is not ready",
        }] },
    })
}

/// A report as the controller writes it, about a failure some seconds ago.
pub(crate) fn report(
    namespace: &str,
    target: &str,
    uid: &str,
    pool: &str,
    image: &str,
    seconds: i64,
) -> Value {
    let at = |before: i64| {
        let at = Timestamp::now() - SignedDuration::from_secs(seconds + before);
        at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    let digits = uid.bytes().fold(0_u64, |digits, byte| (digits << 8) | u64::from(byte));
    let digits = format!("{:010x}", digits & 0xff_ffff_ffff);
    json!({
        "apiVersion": "bringup.dev/v1alpha1",
        "kind": "BootstrapReport",
        "metadata": {
            "namespace": namespace,
            "name": format!("{target}-{digits}"),
            "labels": { "karpenter.sh/nodepool": pool },
        },
        "spec": {
            "targetRef": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": target, "uid": uid },
            "parentRef": { "kind": "NodePool", "name": pool },
            "providerID": provider_id(&format!("AKS-{target}-VM")),
            "nodeName": format!("aks-{target}"),
            "image": image_id(image),
            "imageVersion": image,
            "vmSize": "Standard_D4s_v5",
            "zone": "eastus-1",
            "provisionMode": "bootstrappingclient",
            "attempt": 1,
        },
        "status": {
            "phase": "Final",
            "verdict": {
                "cause": "BinaryMissing",
                "family": "image",
                "owner": "image owner",
                "retryable": "no",
                "confidence": "high",
                "title": "oras is absent or not in PATH",
                "explanation": "Says network timeout.",
                "overrulesCode": true,
            },
            "cse": { "exitCode": 211, "constant": "ERR_ORAS_PULL_NETWORK_TIMEOUT", "codeSource": "json" },
            // The line tries to clear the reader's terminal.
            "rootEvidence": { "source": "extension message", "line": "\u{1b}[2Jtimeout: failed to run command 'oras': No such file or directory" },
            "contributing": [{ "cause": "ERR_ORAS_PULL_NETWORK_TIMEOUT", "line": "Says network timeout." }],
            "timeline": [{ "at": at(63), "what": "VM created" }, { "at": at(0), "what": "verdict" }],
            "collectors": [
                { "name": "VM instance view", "state": "ok" },
                { "name": "serial log", "state": "disabled", "detail": "boot diagnostics are off" },
            ],
            "remediation": ["Use an image that has the program."],
            "finishedAt": at(0),
        },
    })
}

/// Creates an object.
pub(crate) async fn create(client: &Client, object: &Value) -> Result<DynamicObject> {
    let kind = resource(object);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let made = api.create(&PostParams::default(), &object).await;
    made.with_context(|| format!("create {:?}", object.metadata.name))
}

fn resource(object: &Value) -> ApiResource {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().unwrap_or_default();
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Runs bringup as `user`.
pub(crate) fn bringup_as(user: &User, arguments: &[&str]) -> Ran {
    ran(&mut terminal::bringup(user, arguments))
}

/// Runs bringup as the administrator of the shared cluster.
pub(crate) async fn bringup(arguments: &[&str]) -> Result<Ran> {
    Ok(bringup_as(shared().await?.admin(), arguments))
}

/// A text without its line breaks, which depend on the length of names.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
