//! A world with the real Karpenter: a control plane with its controllers and its scheduler, a
//! simulated Azure whose VMs join by the real agent, `bringup controller --flex`, and Karpenter with
//! bringup as its provider.

mod downloads;
mod guests;
mod nodes;
mod registration;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{HttpsServer, ProgramRunner};
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_testbed::{ControlPlane, CrdSet};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

pub use guests::{Guests, NO_MODULES};
pub use registration::Registration;

use self::nodes::Kubelets;
use crate::program::{Process, built};

/// Where reports are.
pub const NAMESPACE: &str = "bringup-system";
/// The id of the cluster.
pub const CLUSTER: &str = "world";

/// The end of a wait that only a broken program reaches.
pub const FOREVER: Duration = Duration::from_mins(20);
/// How much of what happened in Azure is shown when something went wrong.
const SHOWN: usize = 60;

/// Whether such a world can be started here. If not, it says so in one line.
pub fn can_start() -> bool {
    let missing = ["go", "curl", "setpriv"].into_iter().find(|name| {
        let tried = Command::new(name)
            .arg(if *name == "go" { "version" } else { "--version" })
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        !tried.is_ok_and(|status| status.success())
    });
    if let Some(name) = missing {
        let _ = writeln!(std::io::stderr(), "Karpenter's tests skipped: there is no {name}");
    }
    missing.is_none() && crate::guest::can_boot()
}

/// Everything but the two programs under test.
pub struct Ground {
    /// The real control plane.
    pub control_plane: ControlPlane,
    /// The simulated Azure. Its clock is the wall's, as that of all other components here.
    pub azure: Simulator,
    /// The insides of its VMs.
    pub guests: Arc<Guests>,
    https: HttpsServer,
    authority: Vec<u8>,
    _programs: ProgramRunner,
    _kubelets: Kubelets,
}

impl Ground {
    /// Starts it. `scenario` says what Azure is like, given how its VMs can boot.
    pub async fn start(scenario: impl FnOnce(&Guests) -> String) -> Result<Self> {
        let control_plane = ControlPlane::builder()
            .with_controller_manager()
            .with_scheduler()
            // Karpenter's own definitions of what both define; the class of the other one.
            .crds([CrdSet::KarpenterAzure, CrdSet::Karpenter])
            .start()
            .await
            .context("start the control plane")?;
        let definitions = bringup_objects::flex::definitions();
        let definitions = definitions.into_iter().chain([bringup_objects::report::definition()]);
        control_plane.install_definitions(definitions).await.context("install our definitions")?;
        let client = control_plane.client();
        let version = client.apiserver_version().await.context("ask for the version")?.git_version;
        let folder = control_plane.directory().join("guests");
        let agent = built("BRINGUP_NODE", "bringup-node")?;
        let guests = Guests::prepare(&folder, &agent, &version).await;
        let guests = Arc::new(guests.context("prepare the insides of machines")?);
        let scenario = scenario::parse("the world's", &scenario(&guests))?;
        let azure = Simulator::new(scenario, Pace::Real, Timestamp::now());
        let https = HttpsServer::start(
            azure.clone(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            &control_plane.directory().join("azure-ca.pem"),
        )
        .await
        .context("start the simulator's HTTPS endpoint")?;
        let authority = std::fs::read(control_plane.directory().join("authority.crt"))
            .context("read the authority of the API server")?;
        Ok(Self {
            _programs: ProgramRunner::start(azure.clone()),
            _kubelets: Kubelets::start(azure.clone(), client, guests.clone()),
            control_plane,
            azure,
            guests,
            https,
            authority,
        })
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// The certificate that signs the API server's, as PEM.
    pub fn authority(&self) -> &[u8] {
        &self.authority
    }
}

/// The whole world.
pub struct FlexWorld {
    /// Another Karpenter, with another class.
    another: Process,
    program: PathBuf,
    karpenter: Process,
    controller: Process,
    /// What they run on.
    pub ground: Ground,
}

impl FlexWorld {
    /// Starts it all. `scenario` says what Azure is like, given how its VMs can boot.
    pub async fn start(scenario: impl FnOnce(&Guests) -> String) -> Result<Self> {
        let build = tokio::task::spawn_blocking(build_karpenter);
        let ground = Ground::start(scenario).await?;
        let namespaces: Api<Namespace> = Api::all(ground.client());
        for name in [NAMESPACE, "karpenter"] {
            let namespace = Namespace {
                metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
                ..Namespace::default()
            };
            namespaces.create(&PostParams::default(), &namespace).await.context("a namespace")?;
        }
        let socket = ground.control_plane.directory().join("provider.sock");
        let program = build.await.context("build Karpenter")??;
        let world = Self {
            controller: controller(&ground, &socket)?,
            another: karpenter(&ground, &socket, program.with_file_name("karpenter-kwok")),
            karpenter: karpenter(&ground, &socket, program.clone()),
            program,
            ground,
        };
        world.start_controller().await?;
        world.start_karpenter()?;
        Ok(world)
    }

    /// Starts bringup, and waits until it serves.
    pub async fn start_controller(&self) -> Result<()> {
        let from = self.controller.lines();
        self.controller.start(&self.ground.control_plane)?;
        self.controller.said(from, "listening").await
    }

    /// Starts Karpenter.
    pub fn start_karpenter(&self) -> Result<()> {
        self.karpenter.start(&self.ground.control_plane)
    }

    /// Starts another Karpenter beside ours: that of Karpenter's own project, with its class.
    pub fn start_another_karpenter(&self) -> Result<()> {
        let file = self.program.with_file_name("kwoknodeclasses.yaml");
        let plane = &self.ground.control_plane;
        let applied = plane.kubectl()?.arg("apply").arg("-f").arg(&file).output();
        let applied = applied.context("run kubectl")?;
        let told = String::from_utf8_lossy(&applied.stderr).into_owned();
        ensure!(applied.status.success(), "kubectl apply -f {}: {told}", file.display());
        let waited = plane
            .kubectl()?
            .args(["wait", "--for", "condition=Established", "--timeout", "60s"])
            .arg("crd/kwoknodeclasses.karpenter.kwok.sh")
            .output();
        ensure!(waited.context("run kubectl")?.status.success(), "the class is not served");
        self.another.start(plane)
    }

    /// Ends bringup at once, as SIGKILL does.
    pub fn kill_controller(&self) {
        self.controller.kill();
    }

    /// Ends Karpenter at once, as SIGKILL does.
    pub fn kill_karpenter(&self) {
        self.karpenter.kill();
    }

    /// The recent logs, for the error of a wait that timed out.
    pub fn told(&self) -> String {
        let azure = self.ground.azure.with(|azure| {
            let lines: Vec<&str> = azure.journal().text().lines().collect();
            lines[lines.len().saturating_sub(SHOWN)..].join("\n")
        });
        let programs = [&self.controller, &self.karpenter, &self.another].map(Process::told);
        format!("{}\n--- Azure\n{azure}", programs.join("\n"))
    }
}

fn controller(ground: &Ground, socket: &Path) -> Result<Process> {
    let directory = ground.control_plane.directory();
    let token = directory.join("federated-token");
    std::fs::write(&token, "signed by nobody").context("write the federated token")?;
    let join = directory.join("flex-join.json");
    let settings = ground.guests.join_settings(ground.control_plane.url(), ground.authority());
    std::fs::write(&join, settings.to_string()).context("write what machines join with")?;
    let program = built("BRINGUP", "bringup")?;
    let endpoint = ground.https.endpoint();
    let authority = directory.join("azure-ca.pem");
    let kubeconfig = ground.control_plane.kubeconfig_path().to_owned();
    let listen = format!("unix://{}", socket.display());
    Ok(Process::new("bringup", move || {
        let mut command = Command::new(&program);
        command
            .arg("controller")
            .args(["--namespace", NAMESPACE, "--listen", "127.0.0.1:0", "--identity", "one"])
            .args(["--azure-credential", "workload-identity", "--azure-endpoint", &endpoint])
            .arg("--azure-ca-file")
            .arg(&authority)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["--flex", "--flex-cluster", CLUSTER, "--flex-listen", &listen, "--flex-join"])
            .arg(&join)
            // It runs as an administrator here, whom no policy limits.
            .arg("--flex-without-policy")
            .env("AZURE_CLIENT_ID", "11111111-1111-1111-1111-111111111111")
            .env("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222")
            .env("AZURE_FEDERATED_TOKEN_FILE", &token)
            .env("AZURE_AUTHORITY_HOST", &endpoint);
        command
    }))
}

fn karpenter(ground: &Ground, socket: &Path, program: PathBuf) -> Process {
    let kubeconfig = ground.control_plane.kubeconfig_path().to_owned();
    let address = format!("unix://{}", socket.display());
    Process::new("Karpenter", move || {
        let mut command = Command::new(&program);
        command
            .env("KUBECONFIG", &kubeconfig)
            .env("PROVIDER_ADDRESS", &address)
            // There is one, and the next one begins at once.
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
