//! The chart, rendered and applied, and the controller as its Deployment would run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::journal::Recorded;
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::process::built;
use bringup_testbed::wait::{in_time, polled, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::NAMESPACE;

/// A right that the chart gives: group, resource, verb, namespace.
pub(super) type Right<'a> = (&'a str, &'a str, &'a str, &'a str);

/// A test bed on which the chart is installed.
pub(super) struct Installed {
    pub(super) bed: TestBed,
    /// The kubeconfig with the token of the chart's `ServiceAccount`.
    kubeconfig: PathBuf,
    /// The environment variables to which the Deployment gives literal values.
    variables: Vec<(String, String)>,
}

impl Installed {
    /// Renders the chart with these options and applies it, as an administrator does. Returns once the
    /// `ServiceAccount` has the last of `rights`.
    pub(super) async fn new(bed: TestBed, options: &[&str], rights: &[Right<'_>]) -> Result<Self> {
        let client = bed.client.clone();
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        let manifests = bed.directory().join("chart.yaml");
        std::fs::write(&manifests, render(options)?)?;
        let file = manifests.to_str().context("a path that is no text")?;
        let fixed = ["apply", "--server-side", "--validate=strict", "--warnings-as-errors"];
        kubectl(&bed, &[&fixed[..], &["--filename", file]].concat())?;
        let definition = "customresourcedefinition/bootstrapreports.bringup.dev";
        kubectl(&bed, &["wait", "--for=condition=Established", definition])?;

        let deployments: Api<Deployment> = Api::namespaced(client, NAMESPACE);
        let pod = deployments.get("bringup").await?.spec.and_then(|spec| spec.template.spec);
        let environment = pod.context("a pod")?.containers.remove(0).env.unwrap_or_default();
        let literal = environment.into_iter().filter_map(|one| Some((one.name, one.value?)));
        let variables = literal.filter(|(name, _)| name.starts_with("BRINGUP_")).collect();

        let kubeconfig = bed.directory().join("account.kubeconfig");
        let account = token_kubeconfig(&bed)?;
        std::fs::write(&kubeconfig, account.to_string())?;
        let installed = Self { bed, kubeconfig, variables };
        let account = installed.account().await?;
        for right in rights {
            until_allowed(&account, *right).await?;
        }
        Ok(installed)
    }

    /// The client of the administrator.
    pub(super) fn admin(&self) -> Client {
        self.bed.control_plane().client()
    }

    /// A client with a token of the controller's own `ServiceAccount`.
    pub(super) async fn account(&self) -> Result<Client> {
        let file = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Starts the controller, with further flags.
    pub(super) async fn start(&self, flags: &[&str]) -> Result<ControllerProcess> {
        let program = built("BRINGUP", "bringup")?;
        let account = &self.kubeconfig;
        ControllerProcess::start_as(&program, &self.bed, account, &self.variables, flags).await
    }

    /// The requests in the journal of Azure after the first `since`, with their paths in lower case.
    pub(super) fn requests(&self, since: usize) -> Vec<Recorded> {
        let mut all = self.bed.azure.with(|azure| azure.journal().requests()[since..].to_vec());
        for one in &mut all {
            one.path.make_ascii_lowercase();
        }
        all
    }

    /// Waits until the journal of Azure shows a request that met a fault.
    pub(super) async fn until_struck(&self, path: &str) -> Result<()> {
        let path = path.to_ascii_lowercase();
        let is_struck =
            |one: &Recorded| one.fault.is_some() && one.path.to_ascii_lowercase().contains(&path);
        let any = |azure: &mut Azure| azure.journal().requests().iter().any(is_struck);
        let what = format!("a request for {path} that meets the fault");
        self.bed.azure_when(&what, any, |is_struck| *is_struck).await.map(drop)
    }
}

/// A kubeconfig with a new token of the chart's `ServiceAccount`.
fn token_kubeconfig(bed: &TestBed) -> Result<serde_json::Value> {
    let token = kubectl(bed, &["create", "token", "bringup", "--namespace", NAMESPACE])?;
    let authority = bed.control_plane().directory().join("authority.crt");
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "account",
        "clusters": [{ "name": "test", "cluster": {
            "server": bed.control_plane().url(), "certificate-authority": authority } }],
        "users": [{ "name": "account", "user": { "token": token.trim() } }],
        "contexts": [{ "name": "account", "context": { "cluster": "test", "user": "account" } }],
    }))
}

/// Waits until the API server acts on a right that the chart gives.
async fn until_allowed(account: &Client, right: Right<'_>) -> Result<()> {
    let (group, resource, verb, namespace) = right;
    let text = |text: &str| Some(text.to_owned());
    let attributes = ResourceAttributes {
        group: text(group),
        resource: text(resource),
        verb: text(verb),
        namespace: text(namespace),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(account.clone());
    let answers = polled(async || {
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok::<_, kube::Error>(answer.status.is_some_and(|status| status.allowed))
    });
    let what = format!("the right to {verb} {resource} in {namespace:?}");
    until(what, answers, |is_allowed| *is_allowed).await?;
    Ok(())
}

pub(super) fn kubectl(bed: &TestBed, arguments: &[&str]) -> Result<String> {
    output(bed.control_plane().kubectl()?.args(arguments))
}

fn render(options: &[&str]) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut build = Command::new(root.join("charts/tools/build.sh"));
    let tools = output(build.stderr(Stdio::inherit()))?;
    let home = tempfile::tempdir()?;
    let mut helm = Command::new(Path::new(tools.trim_end()).join("helm"));
    for variable in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        helm.env(variable, home.path());
    }
    helm.current_dir(root)
        .args(["template", "bringup", "charts/bringup", "--namespace", NAMESPACE])
        .args(options);
    output(&mut helm)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The status and body of a response of the controller's own port.
pub(super) async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: bringup\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        anyhow::Ok((status.with_context(|| answer.clone())?, answer))
    };
    in_time(format!("GET {path}"), answer).await?.with_context(|| format!("GET {path}"))
}

/// Checks that nothing has crashed and that the controller has every right that it needs.
pub(super) async fn is_well(controller: &mut ControllerProcess) -> Result<()> {
    ensure!(controller.is_running()?, "the controller has ended");
    let (_, metrics) = get(controller.address(), "/metrics").await?;
    ensure!(metrics.lines().any(|line| line == "bringup_panics_total 0"), "{metrics}");
    let lacks = metrics.lines().find(|line| {
        line.starts_with("bringup_degraded{what=\"rights\"}") && !line.ends_with(" 0")
    });
    let (ready, told) = get(controller.address(), "/readyz").await?;
    ensure!(lacks.is_none(), "the chart lacks a right: {told}");
    ensure!(ready == 200, "{told}");
    Ok(())
}
