//! `make demo`: failing nodes as an operator sees them without bringup, and with bringup.

use bringup_end_to_end::process::built;
use bringup_end_to_end::say;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::order::Order;
use bringup_objects::report::definition;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

#[tokio::main]
async fn main() -> Result<()> {
    let bringup = built("BRINGUP", "bringup")?;
    say("Starting a real Kubernetes API server and a simulated Azure ...")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/demo.yaml");
    // Minutes pass in Azure while the demo lasts seconds: Azure's clock starts in the past, so that kubectl's
    // ages make sense.
    let past = SignedDuration::from_mins(10);
    let bed = TestBed::builder()
        .scenario_file(&path)
        .behind(past)
        .endpoints()
        .not_installed()
        .start()
        .await?;
    let demo = Demo { bed, bringup };
    let karpenter = &demo.bed.karpenter;
    karpenter.create_pool("default").await?;

    let (healthy, broken, cut_off) = ("default-h3lth", "default-x7k2p", "default-n0net");
    heading("Two NodeClaims on AzureLinux V3: images 202601.13.0 and 202601.27.0")?;
    karpenter.launch(healthy, "default", "202601.13.0").await?;
    karpenter.bootstrap(healthy)?;
    demo.bed.fail(broken, &Order::of("202601.27.0")).await?;
    demo.join(healthy).await?;

    heading("$ kubectl describe nodeclaim default-x7k2p     (as Karpenter leaves it)")?;
    demo.describe(broken)?;

    heading("bringup is installed: its definition, and `bringup controller`")?;
    demo.install().await?;
    let began = Instant::now();
    let mut controller = ControllerProcess::start(&demo.bringup, &demo.bed, &[]).await?;
    demo.bed.failed_claim(broken).await?;
    say(&format!(
        "Started, and the verdict is on the claim: {:.1} s.",
        began.elapsed().as_secs_f64()
    ))?;

    heading("$ kubectl describe nodeclaim default-x7k2p     (as bringup leaves it)")?;
    controller.logged("oras").await?;
    demo.describe(broken)?;

    heading("Another node fails with the same code, and here the code is right")?;
    demo.bed.fail(cut_off, &Order::of("202601.13.0")).await?;
    let began = Instant::now();
    demo.bed.failed_claim(cut_off).await?;
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
        karpenter.clean_up(claim).await?;
    }
    demo.kubectl(&["get", "nodeclaims"])?;

    heading("$ bringup why default-x7k2p     (there is no such claim any more)")?;
    demo.bringup(&["why", broken])?;
    if let Some(directory) = std::env::var_os("BRINGUP_SCREENSHOTS") {
        demo.screenshot(&Path::new(&directory).join("why.svg"), &["why", broken])?;
    }
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
    controller.kill();
    Ok(())
}

struct Demo {
    bed: TestBed,
    bringup: PathBuf,
}

impl Demo {
    /// Waits for the Node of a claim, and registers it as Karpenter does.
    async fn join(&self, claim: &str) -> Result<()> {
        self.bed.ready_node(claim).await?;
        self.bed.karpenter.register(claim).await
    }

    /// The steps that an administrator takes once.
    async fn install(&self) -> Result<()> {
        self.bed.control_plane().install_definitions([definition()]).await?;
        let name = Some(self.bed.settings.namespace.clone());
        let metadata = ObjectMeta { name, ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(self.bed.client.clone());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .context("make the namespace")?;
        Ok(())
    }

    /// Conditions and Events of a claim, as kubectl shows them.
    fn describe(&self, claim: &str) -> Result<()> {
        let mut kubectl = self.bed.control_plane().kubectl()?;
        let described = output(kubectl.args(["describe", "nodeclaim", claim]), &[0])?;
        let start = described.find("  Conditions:").unwrap_or(0);
        say(described[start..].trim_end())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<()> {
        say(output(self.bed.control_plane().kubectl()?.args(arguments), &[0])?.trim_end())
    }

    /// Runs `bringup`, which exits with 10 if it names a cause.
    fn bringup(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.bringup);
        command.args(arguments).env("KUBECONFIG", self.bed.kubeconfig());
        say(output(&mut command, &[0, 10])?.trim_end())
    }

    /// Renders the output of `bringup` in a terminal as an image, below the command line.
    fn screenshot(&self, path: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.bringup);
        command.args(arguments).env("KUBECONFIG", self.bed.kubeconfig()).env("CLICOLOR_FORCE", "1");
        let answer = output(&mut command, &[0, 10])?;
        let screen = format!("$ bringup {}\n{}", arguments.join(" "), answer.trim_end());
        let terminal = anstyle_svg::Term::new().min_width_px(720);
        std::fs::write(path, terminal.render_svg(&screen))
            .with_context(|| format!("write {}", path.display()))
    }

    /// Prints how to explore the cluster, and waits for Ctrl-C.
    async fn keep(&self, controller: &ControllerProcess) -> Result<()> {
        let kubectl = self.bed.control_plane().kubectl()?;
        say(&format!(
            "export KUBECONFIG={kubeconfig}\n\
             {kubectl} get nodeclaims,bootstrapreports -A\n\
             {bringup} why default-n0net\n\
             curl -s http://{address}/metrics\n\
             Ctrl-C ends everything and leaves nothing behind.",
            kubeconfig = self.bed.kubeconfig().display(),
            kubectl = kubectl.get_program().display(),
            bringup = self.bringup.display(),
            address = controller.address(),
        ))?;
        tokio::signal::ctrl_c().await.context("wait for Ctrl-C")
    }
}

/// The metrics of the controller.
fn metrics(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).context("connect to the controller")?;
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("read the metrics")?;
    Ok(answer)
}

fn heading(text: &str) -> Result<()> {
    say(&format!("\n== {text}"))
}

/// The output of a program, if its exit code is expected.
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
