//! The real Karpenter with bringup as its provider, on a control plane with its controllers and its scheduler
//! and a simulated Azure whose VMs join with the real agent.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use crate::flex_guests::{self, Guests, GuestsBed};
use crate::process::{Process, built};
use crate::{TestBed, controller_process};

/// The cluster ID.
pub const CLUSTER: &str = "world";

/// The number of lines of Azure's journal that are shown after a failure.
const SHOWN: usize = 60;

/// Whether Karpenter can be built and its VMs can run here. Otherwise prints the reason.
pub fn can_run() -> bool {
    flex_guests::can_run("karpenter")
}

/// Karpenter and `bringup controller --flex`, each of which can be killed.
pub struct RealKarpenter {
    /// A second Karpenter, with another class.
    another: Process,
    program: PathBuf,
    karpenter: Process,
    controller: Process,
    /// The test bed of both programs.
    pub bed: GuestsBed,
}

impl RealKarpenter {
    /// Starts all programs. `scenario` returns the scenario of Azure, given the ways in which VMs can boot.
    pub async fn start(scenario: impl FnOnce(&Guests) -> String) -> Result<Self> {
        let build = tokio::task::spawn_blocking(build_karpenter);
        let bed = GuestsBed::start(scenario).await?;
        let metadata = ObjectMeta { name: Some("karpenter".to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(bed.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.context("a namespace")?;
        let program = build.await.context("build Karpenter")??;
        let all = Self {
            controller: controller(&bed)?,
            another: karpenter(&bed, program.with_file_name("karpenter-kwok")),
            karpenter: karpenter(&bed, program.clone()),
            program,
            bed,
        };
        all.start_controller().await?;
        all.start_karpenter()?;
        Ok(all)
    }

    /// Starts bringup, and waits until it is ready.
    pub async fn start_controller(&self) -> Result<()> {
        let from = self.controller.lines();
        self.controller.start(self.bed.control_plane())?;
        let is_it = |line: &str| line.contains("listening");
        self.controller.logged(from, "listening", is_it).await.map(drop)
    }

    /// Starts Karpenter.
    pub fn start_karpenter(&self) -> Result<()> {
        self.karpenter.start(self.bed.control_plane())
    }

    /// Starts a second Karpenter in addition to ours: the build of Karpenter's own project, with its class.
    pub fn start_another_karpenter(&self) -> Result<()> {
        let file = self.program.with_file_name("kwoknodeclasses.yaml");
        let plane = self.bed.control_plane();
        let applied = plane.kubectl()?.arg("apply").arg("-f").arg(&file).output();
        let applied = applied.context("run kubectl")?;
        let errors = String::from_utf8_lossy(&applied.stderr).into_owned();
        ensure!(applied.status.success(), "kubectl apply -f {}: {errors}", file.display());
        let waited = plane
            .kubectl()?
            .args(["wait", "--for", "condition=Established", "--timeout", "60s"])
            .arg("crd/kwoknodeclasses.karpenter.kwok.sh")
            .output();
        ensure!(waited.context("run kubectl")?.status.success(), "the class is not served");
        self.another.start(plane)
    }

    /// Kills bringup with SIGKILL.
    pub fn kill_controller(&self) {
        self.controller.kill();
    }

    /// Kills Karpenter with SIGKILL.
    pub fn kill_karpenter(&self) {
        self.karpenter.kill();
    }

    /// The recent logs, for the error of a wait that timed out.
    pub fn recent_logs(&self) -> String {
        let azure = self.bed.azure.with(|azure| {
            let lines: Vec<&str> = azure.journal().text().lines().collect();
            lines[lines.len().saturating_sub(SHOWN)..].join("\n")
        });
        let programs = [&self.controller, &self.karpenter, &self.another].map(Process::recent_log);
        format!("{}\n--- Azure\n{azure}", programs.join("\n"))
    }
}

fn controller(bed: &GuestsBed) -> Result<Process> {
    let join = bed.directory().join("flex-join.json");
    std::fs::write(&join, bed.join_settings().to_string()).context("write the join settings")?;
    let join = join.to_str().context("a path is text")?;
    let listen = provider_address(bed);
    let arguments = [
        "--azure-credential",
        "workload-identity",
        "--flex",
        "--flex-cluster",
        CLUSTER,
        "--flex-listen",
        &listen,
        "--flex-join",
        join,
        // The controller runs as an administrator here, whom no policy limits.
        "--flex-without-policy",
    ];
    let program = built("BRINGUP", "bringup")?;
    controller_process::process(&program, bed, bed.kubeconfig(), &[], &arguments)
}

fn provider_address(bed: &TestBed) -> String {
    format!("unix://{}", bed.directory().join("provider.sock").display())
}

fn karpenter(bed: &TestBed, program: PathBuf) -> Process {
    let (kubeconfig, address) = (bed.kubeconfig().to_owned(), provider_address(bed));
    Process::new("Karpenter", move || {
        let mut command = Command::new(&program);
        command
            .env("KUBECONFIG", &kubeconfig)
            .env("PROVIDER_ADDRESS", &address)
            // There is only one replica, and a restarted one begins at once.
            .env("DISABLE_LEADER_ELECTION", "true")
            .env("SYSTEM_NAMESPACE", "karpenter")
            .env("FEATURE_GATES", "StaticCapacity=true")
            .env("BATCH_IDLE_DURATION", "200ms")
            .env("BATCH_MAX_DURATION", "1s")
            .env("METRICS_PORT", "0")
            .env("HEALTH_PROBE_PORT", "0");
        command
    })
}

fn build_karpenter() -> Result<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../karpenter/build.sh");
    let built = Command::new(script).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let built = built.context("run karpenter/build.sh")?;
    ensure!(built.status.success(), "karpenter/build.sh ended with {}", built.status);
    let path = String::from_utf8(built.stdout).context("the path of Karpenter")?;
    Ok(path.trim_end().into())
}
