//! A management cluster with the real core manager of Cluster API, its webhooks included, and
//! stand-ins for the components that do the work: its Azure provider, kubeadm, and the machines.

mod provider;

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_objects::report::definition;
use bringup_testbed::requirement::{missing_program, skip};
use bringup_testbed::{ControlPlane, CrdSet};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

pub use provider::{StandInProvider, WorkloadCluster};

use crate::process::Process;

/// Whether Cluster API's manager can be built here. Otherwise prints the reason.
pub fn can_run() -> bool {
    let missing = missing_program(&["go"]);
    if missing.is_some() {
        skip("cluster-api", "go is not installed, which builds the manager of Cluster API");
    }
    missing.is_none()
}

/// The management cluster. All its programs end with this value.
pub struct ManagementCluster {
    manager: Process,
    /// The real control plane, which is also the control plane of the workload clusters.
    pub control_plane: ControlPlane,
}

impl ManagementCluster {
    /// Starts the cluster; builds the manager first if necessary.
    pub async fn start() -> Result<Self> {
        let building = tokio::task::spawn_blocking(build);
        let control_plane = ControlPlane::builder()
            // The controller manager deletes objects without an owner.
            .with_controller_manager()
            .crds([
                CrdSet::KarpenterAzure,
                CrdSet::ClusterApi,
                CrdSet::ClusterApiKubeadm,
                CrdSet::ClusterApiAzure,
            ])
            .start()
            .await
            .context("start the control plane")?;
        control_plane.install_definitions([definition()]).await.context("define reports")?;
        label_contracts(control_plane.client()).await?;
        let folder = building.await.context("build the manager")??;
        let port = free_port()?;
        let manager = manager(&control_plane, folder.join("manager"), port);
        manager.start(&control_plane)?;
        let serving = "Serving webhook server";
        manager.logged(0, serving, |line| line.contains(serving)).await?;
        let webhooks = std::fs::read_to_string(folder.join("webhooks.yaml"));
        let webhooks = on_loopback(&webhooks.context("read the webhooks")?, &control_plane, port)?;
        let management = Self { manager, control_plane };
        management.apply(&webhooks)?;
        Ok(management)
    }

    /// Applies manifests as people do; an unknown field or a warning is an error.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        self.apply_with(manifests, "none")
    }

    /// A dry run of [`Self::apply`]: the API server and the webhooks validate the manifests, and nothing is
    /// stored.
    pub fn dry_run(&self, manifests: &str) -> Result<()> {
        self.apply_with(manifests, "server")
    }

    fn apply_with(&self, manifests: &str, dry_run: &str) -> Result<()> {
        let mut kubectl = self.control_plane.kubectl()?;
        kubectl.args(["apply", "--server-side", "--validate=strict", "--warnings-as-errors"]);
        kubectl.arg(format!("--dry-run={dry_run}"));
        kubectl.args(["--filename", "-"]).stdin(Stdio::piped());
        kubectl.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = kubectl.spawn().context("run kubectl")?;
        let mut input = child.stdin.take().context("its input")?;
        input.write_all(manifests.as_bytes()).context("give kubectl the manifests")?;
        drop(input);
        let ended = child.wait_with_output().context("wait for kubectl")?;
        let errors = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "kubectl apply: {errors}\n{manifests}");
        Ok(())
    }

    /// The last log lines of the manager, for the error of a wait that timed out.
    pub fn recent_log(&self) -> String {
        self.manager.recent_log()
    }
}

/// Builds the manager, unless it is already built. Returns its folder.
fn build() -> Result<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/cluster-api/build.sh");
    let built = Command::new(script).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let built = built.context("run testbed/cluster-api/build.sh")?;
    ensure!(built.status.success(), "testbed/cluster-api/build.sh ended with {}", built.status);
    let path = String::from_utf8(built.stdout).context("the path of the manager")?;
    Ok(path.trim_end().into())
}

fn manager(control_plane: &ControlPlane, program: PathBuf, port: u16) -> Process {
    let kubeconfig = control_plane.kubeconfig_path().to_owned();
    let directory = control_plane.directory().to_owned();
    Process::new("Cluster API", move || {
        let mut command = Command::new(&program);
        command
            .env("KUBECONFIG", &kubeconfig)
            .args(["--webhook-port", &port.to_string(), "--webhook-cert-dir"])
            .arg(&directory)
            // The certificate of the API server, which is valid for 127.0.0.1.
            .args(["--webhook-cert-name", "server.crt", "--webhook-key-name", "server.key"])
            .args(["--diagnostics-address", "0", "--health-addr", "0"])
            .args(["--kube-api-qps", "200", "--kube-api-burst", "400"])
            // All definitions are new here: there is nothing to migrate.
            .args(["--skip-crd-migration-phases", "StorageVersionMigration,CleanupManagedFields"]);
        command
    })
}

/// A free port outside the range from which the kernel picks ephemeral ports.
fn free_port() -> Result<u16> {
    let below_those = 20_000..30_000;
    let first = u16::try_from(std::process::id() % 10_000).unwrap_or_default();
    let ports = below_those.clone().cycle().skip(first.into()).take(below_those.len());
    let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().context("no port is free")
}

/// The webhooks as their project configures them, but called at 127.0.0.1 instead of by a Service.
fn on_loopback(manifests: &str, control_plane: &ControlPlane, port: u16) -> Result<String> {
    let service =
        "    service:\n      name: webhook-service\n      namespace: system\n      path: ";
    ensure!(manifests.contains(service), "the webhooks are not written as they were");
    let authority = std::fs::read(authority(control_plane)).context("read the authority")?;
    let called =
        format!("    caBundle: {}\n    url: https://127.0.0.1:{port}", STANDARD.encode(authority));
    Ok(manifests.replace(service, &called))
}

fn authority(control_plane: &ControlPlane) -> PathBuf {
    Path::new(control_plane.directory()).join("authority.crt")
}

/// Labels the providers' definitions with the contract version that they implement, as their releases do.
async fn label_contracts(client: Client) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client);
    for one in api.list_metadata(&ListParams::default()).await.context("list definitions")? {
        let name = one.name_any();
        let labels = match name.split_once('.') {
            Some((_, "infrastructure.cluster.x-k8s.io")) => {
                json!({ "cluster.x-k8s.io/v1beta1": "v1beta1" })
            }
            Some((_, "bootstrap.cluster.x-k8s.io" | "controlplane.cluster.x-k8s.io")) => {
                json!({ "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2" })
            }
            _ => continue,
        };
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        api.patch_metadata(&name, &PatchParams::default(), &patch).await.context("label it")?;
    }
    Ok(())
}
