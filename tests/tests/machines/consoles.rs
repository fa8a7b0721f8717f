//! Consoles that cannot be read, and machines that cannot be found: the report states the problem, and
//! the verdict comes from the other evidence.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_objects::report::CollectorState;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition};
use crate::launch::{Form, Wanted};

/// The signature in every console address of this test: it must appear nowhere else.
const SIGNATURE: &str = "cGxhbnRlZC1zaWduYXR1cmUtMDEyMzQ1Njc4OQ";
const CONSOLE: &str = "error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\r\n";
/// A summary of the bootstrap itself, with medium confidence.
const WAIT: &str = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"ControlPlaneNotReady\",\"conf\":\"medium\",\"ev\":[\"the control plane is not there\"],\"end\":1}";

/// The captured log.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Logged;

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A fault that gives a fixed response to requests of a method whose path contains `path`.
fn answer(
    method: &str,
    path: &str,
    times: Option<u32>,
    status: u16,
    headers: &Value,
    body: &str,
) -> Value {
    json!({
        "on": { "method": method, "pathContains": path, "times": times },
        "fault": { "answer": { "status": status, "headers": headers, "body": body } },
    })
}

/// A fault that puts the console of a VM at an address of its own, which is valid until `until`.
fn address(vm: &str, until: &str) -> Value {
    let at = format!(
        "https://management.azure.com/bootdiagnostics/{vm}/serialconsole.log?sv=2018-03-28&sr=b&sig={SIGNATURE}%3D&se={until}&sp=r"
    );
    let body = json!({ "serialConsoleLogBlobUri": at }).to_string();
    answer("POST", &format!("/{vm}/retrieveBootDiagnosticsData"), None, 200, &json!({}), &body)
}

/// A refusal by Azure that names the missing permission.
fn refused(method: &str, path: &str, action: &str) -> Value {
    let message = format!(
        "The client 'c' with object id 'o' does not have authorization to perform action '{action}' over scope '/there' or the scope is invalid."
    );
    let body =
        json!({ "error": { "code": "AuthorizationFailed", "message": message } }).to_string();
    answer(method, path, None, 403, &json!({}), &body)
}

fn scenario() -> String {
    let far = "2999-01-01T00%3a00%3a00Z";
    let text = json!({ "content-type": "application/octet-stream" });
    let huge = json!({ "content-type": "application/octet-stream", "content-range": "bytes 0-4194815/1073741824" });
    let page = json!({ "content-type": "text/html" });
    let missing = json!({ "x-ms-error-code": "BlobNotFound" });
    let walled = json!({ "x-ms-error-code": "AuthorizationFailure" });
    let boot = json!({
        "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
        "script": { "ends": { "exitCode": 31, "lasts": "5s", "json": "absent", "output": WAIT } },
    });
    json!({
        "rules": [{ "name": "all", "boot": boot }],
        "faults": [
            refused("POST", "/denied/retrieveBoot", "Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action"),
            refused("GET", "/subscriptions/11111111", "Microsoft.Compute/virtualMachines/read"),
            address("expired", "2020-01-01T00%3a00%3a00Z"),
            address("empty", far), answer("GET", "bootdiagnostics/empty", None, 200, &text, ""),
            address("page", far), answer("GET", "bootdiagnostics/page", None, 200, &page, "<!DOCTYPE html><html><body>Sign in: error 407</body></html>"),
            address("own", far), answer("GET", "bootdiagnostics/own", None, 403, &walled, ""),
            address("huge", far), answer("GET", "bootdiagnostics/huge", None, 206, &huge, CONSOLE),
            address("later", far),
            answer("GET", "bootdiagnostics/later", Some(1), 404, &missing, ""),
            answer("GET", "bootdiagnostics/later", None, 200, &text, CONSOLE),
        ],
    })
    .to_string()
}

/// The expected verdict on a machine: the cause, and the result of a collector.
struct Wants {
    name: &'static str,
    cause: &'static str,
    collector: &'static str,
    state: CollectorState,
    detail: &'static str,
}

const fn wants(
    name: &'static str,
    cause: &'static str,
    collector: &'static str,
    state: CollectorState,
    detail: &'static str,
) -> Wants {
    Wants { name, cause, collector, state, detail }
}

const SERIAL: &str = "serial log";
const ALL: [Wants; 10] = [
    wants(
        "denied",
        "ControlPlaneNotReady",
        SERIAL,
        CollectorState::Denied,
        "retrieveBootDiagnosticsData/action",
    ),
    wants(
        "expired",
        "ControlPlaneNotReady",
        SERIAL,
        CollectorState::Denied,
        "AuthenticationFailed",
    ),
    wants("own", "ControlPlaneNotReady", SERIAL, CollectorState::Denied, "firewall"),
    wants("empty", "ControlPlaneNotReady", SERIAL, CollectorState::Empty, "nothing was written"),
    wants("page", "ControlPlaneNotReady", SERIAL, CollectorState::Failed, "HTML"),
    wants("huge", "ControlPlaneNotReady", SERIAL, CollectorState::Ok, "the last"),
    wants("later", "BootstrapTokenInvalid", SERIAL, CollectorState::Ok, "bytes"),
    wants(
        "strange",
        "ControlPlaneNotReady",
        "provider's object",
        CollectorState::Failed,
        "OtherMachine",
    ),
    wants(
        "elsewhere",
        "Unknown",
        "virtual machine",
        CollectorState::Denied,
        "Microsoft.Compute/virtualMachines/read",
    ),
    wants(
        "nowhere",
        "Unknown",
        "virtual machine",
        CollectorState::Failed,
        "the provider id is not known",
    ),
];

async fn launch(cluster: &ManagementCluster) -> Result<()> {
    let script = ["CustomScript"];
    for name in ["denied", "expired", "empty", "page", "huge"] {
        cluster.launch(Wanted { extensions: &script, ..Wanted::linux(name) }).await?;
    }
    // A console in the user's own storage account is requested in the same way.
    let storage = Some("https://logs.blob.core.windows.net/");
    cluster.launch(Wanted { storage, ..Wanted::linux("later") }).await?;
    cluster.launch(Wanted { storage, extensions: &script, ..Wanted::linux("own") }).await?;
    let strange = Wanted { form: Form::Strange, extensions: &script, ..Wanted::linux("strange") };
    cluster.launch(strange).await?;
    let there = "azure:///subscriptions/11111111-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/elsewhere";
    cluster.create_machine(Wanted::linux("elsewhere"), Some(there)).await?;
    // No object describes its cluster.
    let nowhere = Wanted { cluster: "other", ..Wanted::linux("nowhere") };
    cluster.create_machine(nowhere, None).await
}

fn message(machine: &DynamicObject) -> &str {
    condition(machine, "BootstrapSucceeded")
        .and_then(|it| it["message"].as_str())
        .unwrap_or_default()
}

/// Everything that is visible in the namespace.
async fn everything(cluster: &ManagementCluster) -> Result<String> {
    let mut text = String::new();
    for api in [cluster.machines(), cluster.provided(), cluster.pooled()] {
        text.push_str(&serde_json::to_string(&api.list(&ListParams::default()).await?.items)?);
    }
    text.push_str(&serde_json::to_string(&cluster.reports().await?)?);
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let events = events.list(&ListParams::default()).await?.items;
    anyhow::ensure!(!events.is_empty(), "the verdicts have Events");
    text.push_str(&serde_json::to_string(&events)?);
    Ok(text)
}

#[tokio::test]
async fn test_18_20_33_evidence_that_cannot_be_read_is_named_and_the_verdict_comes_from_the_rest()
-> Result<()> {
    let logging = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    let _ = logging.with_writer(|| Logged).try_init();
    let cluster = ManagementCluster::new("consoles", &scenario()).await?;
    launch(&cluster).await?;
    for one in &ALL {
        let seen = |it: &DynamicObject| condition(it, "BootstrapSucceeded").is_some();
        cluster.until(cluster.machines(), one.name, "it to be seen", seen).await?;
    }
    cluster.azure.advance(Duration::from_secs(70));
    for (name, missing) in [
        (
            "elsewhere",
            "Azure cannot be read: the permission Microsoft.Compute/virtualMachines/read",
        ),
        ("nowhere", "Azure cannot be read: the provider id is not known"),
    ] {
        let is = |it: &DynamicObject| message(it).contains(missing);
        cluster.until(cluster.machines(), name, &format!("{name} to say why"), is).await?;
    }
    for one in ALL.iter().filter(|one| one.cause == "ControlPlaneNotReady") {
        let is = |it: &DynamicObject| message(it).contains("the control plane is not there");
        cluster
            .until(cluster.machines(), one.name, &format!("a verdict of {}", one.name), is)
            .await?;
    }
    cluster.azure.advance(Duration::from_mins(1));
    let is = |it: &DynamicObject| message(it).contains("could not find a JWS signature");
    cluster.until(cluster.machines(), "later", "the console that came later", is).await?;
    cluster.azure.advance(Duration::from_secs(500));
    for one in &ALL {
        let down = |it: &DynamicObject| {
            condition(it, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
        };
        let machine = cluster.until(cluster.machines(), one.name, one.name, down).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], one.cause, "{}: {verdict}", one.name);
        let reports = cluster.reports().await?;
        let report = reports.iter().find(|it| it.spec.target_ref.name == one.name);
        let status = report.and_then(|it| it.status.as_ref()).context("a report")?;
        let asked = status.collectors.iter().find(|asked| asked.name == one.collector);
        let asked = asked.with_context(|| format!("{}: {:?}", one.name, status.collectors))?;
        assert_eq!(asked.state, one.state, "{}: {asked:?}", one.name);
        assert!(asked.detail.contains(one.detail), "{}: {asked:?}", one.name);
    }
    let seen = everything(&cluster).await?;
    let logged =
        String::from_utf8_lossy(&LOG.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    assert!(logged.contains("denied"), "the verdicts are logged");
    for text in [seen, logged] {
        assert!(!text.contains(SIGNATURE), "an address got out");
        assert!(!text.contains("sig="), "an address got out");
    }
    Ok(())
}
