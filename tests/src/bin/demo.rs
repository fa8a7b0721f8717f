//! `make demo`: nodes that fail, as an operator sees them today, and what bringup says.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bringup_azure_sim::scenario;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find};
use bringup_objects::report::definition;
use bringup_objects::{Node, NodeClaim};
use bringup_testbed::CrdSet;
use bringup_world::World;
use bringup_world::process::ControllerProcess;
use bringup_world::provider::Provider;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::wait::await_condition;

const NAMESPACE: &str = "bringup-system";
/// The end of a wait that only a broken program reaches.
const FOREVER: Duration = Duration::from_mins(5);

#[tokio::main]
async fn main() -> Result<()> {
    let bringup = std::env::var_os("BRINGUP").context("BRINGUP must name the program bringup")?;
    let bringup = PathBuf::from(bringup);
    say("Starting a real Kubernetes API server and a simulated Azure ...")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/demo.yaml");
    // Minutes pass in Azure while the demo lasts seconds: they are taken from the past, so that
    // kubectl's ages make sense.
    let start = Timestamp::now() - SignedDuration::from_mins(10);
    let world = World::start_at(scenario::load(&path)?, &[CrdSet::KarpenterAzure], start).await?;
    let demo = Demo { karpenter: Provider::new(&world), world, bringup };
    demo.karpenter.create_pool("default").await?;

    let (healthy, broken, cut_off) = ("default-h3lth", "default-x7k2p", "default-n0net");
    heading("Two NodeClaims on AzureLinux V3: images 202601.13.0 and 202601.27.0")?;
    demo.karpenter.launch(healthy, "default", "202601.13.0").await?;
    demo.karpenter.bootstrap(healthy)?;
    demo.fail(broken, "202601.27.0").await?;
    demo.join(healthy).await?;

    heading("$ kubectl describe nodeclaim default-x7k2p     (as Karpenter leaves it)")?;
    demo.describe(broken)?;

    heading("bringup is installed: its definition, and `bringup controller`")?;
    demo.install().await?;
    let began = Instant::now();
    let mut controller =
        ControllerProcess::start(&demo.bringup, &demo.world, NAMESPACE, &[]).await?;
    demo.verdict(broken).await?;
    say(&format!(
        "Started, and the verdict is on the claim: {:.1} s.",
        began.elapsed().as_secs_f64()
    ))?;

    heading("$ kubectl describe nodeclaim default-x7k2p     (as bringup leaves it)")?;
    controller.logged("oras").await?;
    demo.describe(broken)?;

    heading("Another node fails with the same code, and here the code is right")?;
    demo.fail(cut_off, "202601.13.0").await?;
    let began = Instant::now();
    demo.verdict(cut_off).await?;
    let took = began.elapsed().as_secs_f64();
    say(&format!("From Karpenter's Event to the verdict on the claim: {took:.1} s."))?;
    controller.logged("registry").await?;
    heading("$ kubectl get events --field-selector reason=CSEFailed")?;
    demo.kubectl(&[
        "get",
        "events",
        "--field-selector",
        "reason=CSEFailed",
        "-o",
        "custom-columns=OBJECT:.involvedObject.name,MESSAGE:.message",
    ])?;

    heading("Karpenter deletes what failed: VMs and claims")?;
    for claim in [broken, cut_off] {
        demo.karpenter.clean_up(claim).await?;
    }
    demo.kubectl(&["get", "nodeclaims"])?;

    heading("$ bringup why default-x7k2p     (there is no such claim any more)")?;
    demo.bringup(&["why", broken])?;
    heading("$ bringup why default-h3lth")?;
    demo.bringup(&["why", healthy])?;
    heading("$ bringup reports")?;
    demo.bringup(&["reports"])?;
    heading("$ curl -s .../metrics | grep bootstrap_failures_total")?;
    let metrics = metrics(controller.address())?;
    let failures =
        metrics.lines().filter(|line| line.starts_with("bringup_bootstrap_failures_total"));
    say(&failures.collect::<Vec<_>>().join("\n"))?;
    heading("What to try next")?;
    if std::env::var_os("KEEP").is_some_and(|keep| keep == "1") {
        demo.keep(&controller).await?;
    } else {
        say("make demo KEEP=1    keeps all of this up to look around\n\
             bringup explain 211 what the code means, on which images\n\
             docs/install.md     installs bringup in a cluster\n\
             Nothing is left running.")?;
    }
    controller.kill()
}

struct Demo {
    world: World,
    karpenter: Provider,
    bringup: PathBuf,
}

impl Demo {
    /// A claim whose script fails, as Karpenter tells it.
    async fn fail(&self, claim: &str, image: &str) -> Result<()> {
        self.karpenter.launch(claim, "default", image).await?;
        let error = self.karpenter.bootstrap(claim)?.context("the demo's node should fail")?;
        self.karpenter.report_failure(claim, &error).await
    }

    /// Waits for the Node of a claim, and says that it is there.
    async fn join(&self, claim: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.world.control_plane.client());
        let ready = |node: Option<&Node>| node.is_some_and(Node::is_ready);
        let name = format!("aks-{claim}");
        tokio::time::timeout(FOREVER, await_condition(nodes, &name, ready))
            .await
            .context("waited in vain for the healthy Node")??;
        self.karpenter.register(claim).await
    }

    /// What an administrator does once.
    async fn install(&self) -> Result<()> {
        self.world.control_plane.install_definitions([definition()]).await?;
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(self.world.control_plane.client());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .context("make the namespace")?;
        Ok(())
    }

    /// Waits for the verdict on a claim.
    async fn verdict(&self, claim: &str) -> Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.world.control_plane.client());
        let is_told = |claim: Option<&NodeClaim>| {
            let status = claim.and_then(|claim| claim.status.as_ref());
            let verdict = status.and_then(|status| find(&status.conditions, BOOTSTRAP_SUCCEEDED));
            verdict.is_some_and(|verdict| verdict.status == "False")
        };
        tokio::time::timeout(FOREVER, await_condition(claims, claim, is_told))
            .await
            .context("waited in vain for a verdict")??;
        Ok(())
    }

    /// Conditions and Events of a claim, as kubectl shows them.
    fn describe(&self, claim: &str) -> Result<()> {
        let mut kubectl = self.world.control_plane.kubectl()?;
        let described = output(kubectl.args(["describe", "nodeclaim", claim]), &[0])?;
        let start = described.find("  Conditions:").unwrap_or(0);
        say(described[start..].trim_end())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<()> {
        say(output(self.world.control_plane.kubectl()?.args(arguments), &[0])?.trim_end())
    }

    /// `bringup`, which ends with 10 where it names a cause.
    fn bringup(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.bringup);
        command.args(arguments).env("KUBECONFIG", self.world.kubeconfig());
        say(output(&mut command, &[0, 10])?.trim_end())
    }

    /// Says how to look around, and waits for Ctrl-C.
    async fn keep(&self, controller: &ControllerProcess) -> Result<()> {
        let kubectl = self.world.control_plane.kubectl()?;
        say(&format!(
            "export KUBECONFIG={kubeconfig}\n\
             {kubectl} get nodeclaims,bootstrapreports -A\n\
             {bringup} why default-n0net\n\
             curl -s http://{address}/metrics\n\
             Ctrl-C ends everything and leaves nothing behind.",
            kubeconfig = self.world.kubeconfig().display(),
            kubectl = kubectl.get_program().display(),
            bringup = self.bringup.display(),
            address = controller.address(),
        ))?;
        tokio::signal::ctrl_c().await.context("wait for Ctrl-C")
    }
}

/// What the controller serves on `/metrics`.
fn metrics(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).context("connect to the controller")?;
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("read the metrics")?;
    Ok(answer)
}

fn say(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").context("write to standard output")
}

fn heading(text: &str) -> Result<()> {
    say(&format!("\n== {text}"))
}

/// What a program prints, if it ends as expected.
fn output(command: &mut Command, expected: &[i32]) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let code = output.status.code().unwrap_or(-1);
    anyhow::ensure!(
        expected.contains(&code),
        "{command:?} ended with {code}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
