//! The installation of Karpenter, and the examples: a real API server accepts them, they match the code,
//! and they suffice for the real Karpenter to run.

use bringup_testbed::wait::in_time;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bringup_objects::flex::AzureFlexNodeClass;
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::sleep;

use super::super::{helm, kubectl, output, root};

const DEFINITIONS: &str = "karpenter/charts/karpenter/crds";
const EXAMPLES: &str = "karpenter/examples/azure";
const ACCOUNT: &str = "system:serviceaccount:karpenter:karpenter";

#[tokio::test]
async fn every_example_is_accepted_by_the_command_that_the_request_names() -> Result<()> {
    let control_plane = control_plane().await?;
    for example in examples()? {
        let applied = apply(control_plane, &["--dry-run=server", "-f", &example])?;
        assert!(applied.contains("created (server dry run)"), "{example}: {applied}");
    }
    Ok(())
}

#[tokio::test]
async fn the_examples_fit_together() -> Result<()> {
    let control_plane = control_plane().await?;
    let objects = objects(control_plane)?;
    let named = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let mut pools_of_h200 = 0;
    let deployment = named("Deployment").next().context("no Deployment")?;
    for pool in named("NodePool") {
        let template = &pool["spec"]["template"];
        let reference = &template["spec"]["nodeClassRef"];
        let class = named("AzureFlexNodeClass")
            .find(|class| class["metadata"]["name"] == reference["name"])
            .with_context(|| format!("no class for {pool}"))?;
        let labels = node_labels(pool);
        if let Some(region) = labels.get("topology.kubernetes.io/region") {
            assert_eq!(class["spec"]["location"], region.as_str());
        }
        if labels.get("workload").map(String::as_str) != Some("h200") {
            continue;
        }
        pools_of_h200 += 1;
        assert_eq!(class["spec"]["hunting"]["enabled"], true);
        assert_eq!(pool["spec"]["limits"]["nvidia.com/gpu"], 64);
        let disruption = &pool["spec"]["disruption"];
        assert_eq!(disruption["consolidationPolicy"], "WhenEmptyOrUnderutilized");
        let pod = &deployment["spec"]["template"]["spec"];
        for (label, value) in pod["nodeSelector"].as_object().context("no selector")? {
            assert_eq!(labels.get(label).map(String::as_str), value.as_str(), "{label}");
        }
        let taints = template["spec"]["taints"].as_array().context("no taints")?;
        let tolerations = pod["tolerations"].as_array().context("no tolerations")?;
        for taint in taints {
            let tolerated = |toleration: &Value| {
                toleration["key"] == taint["key"] && toleration["effect"] == taint["effect"]
            };
            assert!(tolerations.iter().any(tolerated), "{taint}");
        }
    }
    assert_eq!(pools_of_h200, 2);
    Ok(())
}

#[tokio::test]
async fn the_chart_of_karpenter_is_accepted() -> Result<()> {
    let control_plane = control_plane().await?;
    let directory = tempfile::tempdir()?;
    let manifests = directory.path().join("karpenter.yaml");
    fs::write(&manifests, render()?)?;
    let manifests = manifests.to_str().context("a path that is no text")?;
    let strict = ["--server-side", "--validate=strict", "--warnings-as-errors"];
    let options = [&strict[..], &["--dry-run=server", "-f", manifests]].concat();
    let applied = apply(control_plane, &options)?;
    for object in ["deployment.apps/karpenter", "poddisruptionbudget.policy/karpenter"] {
        assert!(applied.contains(object), "{object} is not among\n{applied}");
    }
    Ok(())
}

#[tokio::test]
async fn test_59_the_definition_in_the_chart_is_that_of_the_code() -> Result<()> {
    let control_plane = control_plane().await?;
    let arguments = ["create", "--dry-run=client", "--output=json", "--filename", DEFINITIONS];
    let shipped: CustomResourceDefinition = serde_json::from_str(&run(control_plane, &arguments)?)?;
    assert_eq!(shipped.spec, AzureFlexNodeClass::crd().spec, "run make manifests");
    Ok(())
}

#[tokio::test]
async fn karpenter_runs_with_the_rights_of_its_chart_and_sees_whether_a_class_is_ready()
-> Result<()> {
    let control_plane = installed().await?;
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("chart.yaml"), render()?)?;
    let chart = directory.path().join("chart.yaml");
    apply(&control_plane, &["-f", chart.to_str().context("a path that is no text")?])?;
    for example in ["d8s.yaml", "nodepool-h200.yaml"] {
        apply(&control_plane, &["-f", &format!("{EXAMPLES}/{example}")])?;
    }
    ready(&control_plane, "general-eastus2")?;

    let log = directory.path().join("karpenter.log");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let account = control_plane.user(ACCOUNT, None).await?;
    let mut build = Command::new(root().join("karpenter/build.sh"));
    let program = output(build.stderr(std::process::Stdio::inherit()))?;
    let mut karpenter = Command::new(program.trim_end());
    karpenter
        .env("KUBECONFIG", account.kubeconfig_path())
        .env("LEADER_ELECTION_NAME", "karpenter-azure-flex")
        .env("LEADER_ELECTION_NAMESPACE", "karpenter")
        .env("SYSTEM_NAMESPACE", "karpenter")
        .env("FEATURE_GATES", "StaticCapacity=true")
        .env("METRICS_PORT", "0")
        .env("HEALTH_PROBE_PORT", port.to_string())
        .env("PROVIDER_ADDRESS", format!("unix://{}/none.sock", directory.path().display()))
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    let mut karpenter = control_plane.spawn(&mut karpenter)?;

    let running = async {
        loop {
            if let Some(status) = karpenter.try_wait()? {
                bail!("Karpenter ended: {status}");
            }
            let general = class_ready(&control_plane, "general")?;
            let h200 = class_ready(&control_plane, "h200")?;
            if general == "True" && h200 == "False NodeClassNotFound" && answers(port) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let outcome = in_time("Karpenter to be ready", running).await;
    let _ = karpenter.kill();
    let _ = karpenter.wait();
    let log = fs::read_to_string(&log)?;
    outcome.map_err(Into::into).and_then(|outcome| outcome).with_context(|| log.clone())?;
    assert!(!log.contains("forbidden"), "{log}");
    Ok(())
}

/// The control plane for dry runs.
async fn control_plane() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_try_init(installed).await
}

/// A control plane with Karpenter's definitions, those of its chart, and its namespace.
async fn installed() -> Result<ControlPlane> {
    let control_plane = ControlPlane::builder().crds([CrdSet::Karpenter]).start().await?;
    apply(&control_plane, &["-f", DEFINITIONS])?;
    let established = ["wait", "--for=condition=Established", "--filename", DEFINITIONS];
    run(&control_plane, &established)?;
    kubectl(&control_plane, &["create", "namespace", "karpenter"])?;
    Ok(control_plane)
}

/// `kubectl apply` in the repository, as a user runs it.
fn apply(control_plane: &ControlPlane, options: &[&str]) -> Result<String> {
    run(control_plane, &[&["apply"], options].concat())
}

fn run(control_plane: &ControlPlane, arguments: &[&str]) -> Result<String> {
    output(control_plane.kubectl()?.current_dir(root()).args(arguments))
}

/// The paths of all examples, relative to the repository.
fn examples() -> Result<Vec<String>> {
    let mut examples = Vec::new();
    for entry in fs::read_dir(root().join(EXAMPLES))? {
        let name = entry?.file_name();
        let name = Path::new(&name).to_str().context("a name that is no text")?;
        examples.push(format!("{EXAMPLES}/{name}"));
    }
    assert!(examples.len() >= 8, "{examples:?}");
    Ok(examples)
}

/// All objects of all examples.
fn objects(control_plane: &ControlPlane) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for example in examples()? {
        let options = ["create", "--dry-run=client", "--output=json", "--filename", &example];
        let documents = run(control_plane, &options)?;
        for document in serde_json::Deserializer::from_str(&documents).into_iter::<Value>() {
            let mut document = document?;
            match document["items"].take() {
                Value::Array(items) => objects.extend(items),
                _ => objects.push(document),
            }
        }
    }
    Ok(objects)
}

/// The labels that every node of a pool has.
fn node_labels(pool: &Value) -> BTreeMap<String, String> {
    let template = &pool["spec"]["template"];
    let own = template["metadata"]["labels"].as_object().into_iter().flatten();
    let own = own.map(|(label, value)| (label.as_str(), value));
    let requirements = template["spec"]["requirements"].as_array().into_iter().flatten();
    let single = requirements.filter_map(|requirement| {
        let values = requirement["values"].as_array().filter(|values| values.len() == 1)?;
        let label = requirement["key"].as_str().filter(|_| requirement["operator"] == "In")?;
        Some((label, &values[0]))
    });
    let labels = own.chain(single);
    labels
        .filter_map(|(label, value)| Some((label.to_owned(), value.as_str()?.to_owned())))
        .collect()
}

/// The chart, rendered by the required command.
fn render() -> Result<String> {
    let home = tempfile::tempdir()?;
    let mut helm = helm(home.path())?;
    helm.args(["template", "karpenter", "karpenter/charts/karpenter", "--namespace", "karpenter"]);
    output(&mut helm)
}

/// Writes the status that bringup would write to a ready class.
fn ready(control_plane: &ControlPlane, class: &str) -> Result<()> {
    let status = r#"{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}"#;
    let patch = ["patch", "azureflexnodeclass", class, "--subresource=status", "--type=merge"];
    kubectl(control_plane, &[&patch[..], &["--patch", status]].concat()).map(drop)
}

/// The condition that Karpenter writes to a pool about its class.
fn class_ready(control_plane: &ControlPlane, pool: &str) -> Result<String> {
    let path = r#"jsonpath={range .status.conditions[?(@.type=="NodeClassReady")]}{.status} {.reason}{end}"#;
    let said = kubectl(control_plane, &["get", "nodepool", pool, "--output", path])?;
    let said = said.trim();
    Ok(said.strip_suffix(" NodeClassReady").unwrap_or(said).to_owned())
}

/// Whether Karpenter reports ready, which happens once it has seen everything that it watches.
fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n");
    asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok()
        && answer.starts_with("HTTP/1.0 200")
}
