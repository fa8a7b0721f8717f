//! `make bench-scale`: the released controller in a cluster of ten thousand nodes: its resource usage in an
//! idle cluster, the speed of `bringup why`, and the delay until failures are reported.

mod fleet;
mod process;

use bringup_end_to_end::process::built;
use bringup_end_to_end::say;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::order::Order;
use bringup_end_to_end::stand_in_karpenter::StandInKarpenter;
use bringup_end_to_end::vm_fleet::Reads;
use bringup_objects::NodeClaim;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find};
use futures::StreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use process::Usage;
use serde_json::json;

const NAMESPACE: &str = "bringup-system";
const FLEET: usize = 10_000;
const PENDING: usize = 50;
/// The duration of the idle phase.
const IDLE: Duration = Duration::from_mins(1);
/// The number of batches of failures; a batch is not a storm.
const BATCHES: usize = 5;
const BATCH: usize = 20;
/// The scripts of pending claims never end; the scripts of other claims fail at once.
const SCENARIO: &str = "rules: [
    {name: pending, when: {namePrefix: aks-pending-}, boot: {script: hangs}},
    {name: failing, boot: {vmReadyAfter: 2s, script: {ends: {exitCode: 211, outerExitCode: 1, lasts: 1s, output: \"oras: command not found\\n+ exit 211\"}}}}]";

#[tokio::main]
async fn main() -> Result<()> {
    let program = built("BRINGUP", "bringup")?;
    let bed = TestBed::builder().scenario(SCENARIO).endpoints().start().await?;
    let bench = Bench { bed, program };
    bench.bed.karpenter.create_pool("default").await?;
    bench.bed.karpenter.create_pool("failing").await?;

    let took = fleet::fill(&bench.bed.client, FLEET).await?;
    say(&format!("{FLEET} NodeClaims and {FLEET} Nodes were made in {:.0} s", took.as_secs_f64()))?;
    for nth in 0..PENDING {
        bench.launch(&format!("pending-{nth}"), "default").await?;
    }
    let arguments = ["--reports-per-parent", "1000"];
    let mut controller = ControllerProcess::start(&bench.program, &bench.bed, &arguments).await?;
    controller.logged("leading").await?;
    bench.idle(&controller).await?;
    bench.why()?;
    bench.latency().await?;
    let usage = Usage::of(controller.id())?;
    say(&format!("at the end: {usage}"))?;
    ensure!(controller.terminate()? == Some(0), "the controller should end in good order");
    Ok(())
}

struct Bench {
    bed: TestBed,
    program: PathBuf,
}

impl Bench {
    /// Launches a claim whose script has been started.
    async fn launch(&self, claim: &str, pool: &str) -> Result<()> {
        let order = Order::of("202601.27.0");
        self.bed.launch(claim, pool, &order).await?;
        self.bed.vm_fleet().start_script(claim, &order)
    }

    /// The resource usage of the controller while only some claims are pending.
    async fn idle(&self, controller: &ControllerProcess) -> Result<()> {
        let began = Instant::now();
        let mut claims = Claims::follow(&self.bed.client, "karpenter.sh/nodepool=default");
        claims
            .until(|claims| {
                let told = |claim: &NodeClaim| status_of(claim) == Some("Unknown");
                claims.values().filter(|claim| told(claim)).count() == PENDING
            })
            .await?;
        say(&format!(
            "all {PENDING} pending claims are looked after {:.1} s after the controller leads; {}",
            began.elapsed().as_secs_f64(),
            Usage::of(controller.id())?,
        ))?;
        // The start of the controller is over by then.
        tokio::time::sleep(Duration::from_secs(15)).await;
        let (before, reads) = (Usage::of(controller.id())?, Reads::of(&self.bed.azure));
        tokio::time::sleep(IDLE).await;
        let (after, reads_after) = (Usage::of(controller.id())?, Reads::of(&self.bed.azure));
        let share =
            after.processor.saturating_sub(before.processor).as_secs_f64() / IDLE.as_secs_f64();
        say(&format!(
            "idle, {FLEET} nodes and {PENDING} pending claims: {:.2} % of a core over {} s (target: under 5), {after} (target: under 96 MB), {} reads of ARM",
            100.0 * share,
            IDLE.as_secs(),
            reads_after.of_vms.len() - reads.of_vms.len(),
        ))
    }

    /// The speed of the command line.
    fn why(&self) -> Result<()> {
        for claim in ["pending-7".to_owned(), fleet::name(4711)] {
            let mut took: Vec<Duration> = (0..5)
                .map(|_| run(&self.program, self.bed.kubeconfig(), &claim))
                .collect::<Result<_>>()?;
            took.sort_unstable();
            say(&format!(
                "bringup why {claim}: {:.0} ms, median of 5 (target: under 1000)",
                1000.0 * took[2].as_secs_f64()
            ))?;
        }
        Ok(())
    }

    /// The delay from ARM's and Karpenter's report of a failure to the condition on the claim.
    async fn latency(&self) -> Result<()> {
        let error = json!({ "code": "VMExtensionProvisioningError", "message": "VM has reported a failure" });
        let mut took = Vec::new();
        let mut claims = Claims::follow(&self.bed.client, "karpenter.sh/nodepool=failing");
        for batch in 0..BATCHES {
            let names: Vec<String> =
                (0..BATCH).map(|nth| format!("failing-{batch}-{nth}")).collect();
            for name in &names {
                self.launch(name, "failing").await?;
            }
            let mut visible = HashMap::new();
            let mut changes = self.bed.azure.changes();
            while visible.len() < names.len() {
                let failed = self.failed(&names);
                for name in failed
                    .into_iter()
                    .filter(|name| !visible.contains_key(name))
                    .collect::<Vec<_>>()
                {
                    visible.insert(name.clone(), Instant::now());
                    self.bed.karpenter.report_failure(&name, &error).await?;
                }
                tokio::select! {
                    () = self.bed.azure.changed(&mut changes) => {}
                    seen = claims.next() => seen?,
                }
            }
            claims
                .until(|claims| {
                    names.iter().all(|name| claims.get(name).and_then(status_of) == Some("False"))
                })
                .await?;
            for name in &names {
                took.push(claims.told[name].duration_since(visible[name]));
            }
        }
        took.sort_unstable();
        let at = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].as_secs_f64();
        say(&format!(
            "from the failure in ARM to the condition, {} failures told by Karpenter: p50 {:.2} s (target: under 1), p99 {:.2} s (target: under 3)",
            took.len(),
            at(50),
            at(99),
        ))
    }

    /// The claims that have failed in ARM.
    fn failed(&self, names: &[String]) -> Vec<String> {
        let resources = self.bed.azure.with(|azure| azure.resources());
        let failed: Vec<&str> = resources
            .iter()
            .filter(|resource| resource.state == "Failed")
            .map(|resource| resource.id.as_str())
            .collect();
        names
            .iter()
            .filter(|name| failed.contains(&StandInKarpenter::vm_path(name).as_str()))
            .cloned()
            .collect()
    }
}

/// Claims from a watch, and the time of each claim's first failed condition.
struct Claims {
    events: std::pin::Pin<
        Box<dyn futures::Stream<Item = watcher::Result<watcher::Event<NodeClaim>>> + Send>,
    >,
    seen: HashMap<String, NodeClaim>,
    told: HashMap<String, Instant>,
}

impl Claims {
    fn follow(client: &Client, labels: &str) -> Self {
        let config = watcher::Config::default().labels(labels);
        let events = Box::pin(watcher(Api::all(client.clone()), config));
        Self { events, seen: HashMap::new(), told: HashMap::new() }
    }

    async fn next(&mut self) -> Result<()> {
        let event = self.events.next().await.context("the watch goes on")?;
        if let watcher::Event::Apply(claim) | watcher::Event::InitApply(claim) =
            event.context("watch the claims")?
        {
            if status_of(&claim) == Some("False") {
                self.told.entry(claim.name_any()).or_insert_with(Instant::now);
            }
            self.seen.insert(claim.name_any(), claim);
        }
        Ok(())
    }

    async fn until(&mut self, are: impl Fn(&HashMap<String, NodeClaim>) -> bool) -> Result<()> {
        while !are(&self.seen) {
            self.next().await?;
        }
        Ok(())
    }
}

/// The status of bringup's condition on a claim.
fn status_of(claim: &NodeClaim) -> Option<&str> {
    let conditions = &claim.status.as_ref()?.conditions;
    find(conditions, BOOTSTRAP_SUCCEEDED).map(|held| held.status.as_str())
}

/// Runs `bringup why` and returns how long it took.
fn run(program: &Path, kubeconfig: &Path, claim: &str) -> Result<Duration> {
    let mut command = Command::new(program);
    command.args(["why", claim, "--namespace", NAMESPACE, "--kubeconfig"]).arg(kubeconfig);
    let began = Instant::now();
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let took = began.elapsed();
    ensure!(!output.stdout.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}
