//! A cluster of the examples in a management cluster that all tests here share.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_end_to_end::cluster_api::{ManagementCluster, StandInProvider, WorkloadCluster};
use bringup_end_to_end::process::built;
use bringup_end_to_end::test_bed::{Observer, controller};
use bringup_objects::BootstrapReport;
use bringup_observe::Settings;
use bringup_testbed::wait::{in_time, is_gone, until_object};
use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;

/// How far Azure's clock is behind the wall clock until machines are seen: the first read is due 45 s
/// after the VM exists, with a little more for each VM.
const BEHIND: Duration = Duration::from_secs(70);

/// The management cluster that all tests here share.
async fn management() -> Result<&'static ManagementCluster> {
    static MANAGEMENT: OnceCell<ManagementCluster> = OnceCell::const_new();
    MANAGEMENT.get_or_try_init(ManagementCluster::start).await
}

/// Machines by their names.
pub(crate) type Machines = BTreeMap<String, DynamicObject>;

/// The Machines that exist now, and the last state of all Machines that ever existed.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) present: Machines,
    pub(crate) last: Machines,
}

/// A cluster, with an Azure and a bringup of its own.
pub(crate) struct Cluster {
    management: &'static ManagementCluster,
    client: Client,
    azure: Simulator,
    name: &'static str,
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
    _observer: Observer,
    provider: StandInProvider,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// The cluster of the examples under another name. `outcomes` are the causes for which its first
    /// machines fail, in the order in which they are made; the others become Nodes.
    pub(crate) async fn start(name: &'static str, outcomes: &[&'static str]) -> Result<Self> {
        let management = management().await?;
        let plane = &management.control_plane;
        let client = plane.client();
        let rules: Vec<Value> =
            outcomes.iter().map(|cause| fails(cause)).chain([joins()]).collect();
        let scenario = scenario::parse(name, &json!({ "rules": rules }).to_string())?;
        let start = jiff::Timestamp::now() - jiff::SignedDuration::try_from(BEHIND)?;
        let azure = Simulator::new(scenario, Pace::Real, start);
        let kubeconfig = std::fs::read(plane.kubeconfig_path()).context("read the kubeconfig")?;
        let ours = json!({ "kind": "List", "apiVersion": "v1", "items": [
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } },
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("bringup-{name}") } },
            {
                "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                "metadata": { "name": format!("{name}-kubeconfig"), "namespace": name,
                              "labels": { "cluster.x-k8s.io/cluster-name": name } },
                "data": { "value": STANDARD.encode(kubeconfig) },
            },
        ] });
        management.apply(&ours.to_string())?;
        let provider = StandInProvider::start(WorkloadCluster {
            client: client.clone(),
            azure: azure.clone(),
            namespace: name.to_owned(),
            name: name.to_owned(),
            port: plane.url().rsplit(':').next().context("a port")?.parse()?,
            outcomes: outcomes.to_vec(),
        });
        let (send, seen) = watch::channel(Seen::default());
        let machines = follow(api(&client, name, "Machine"), send);
        let task = tokio::spawn(machines);
        let observer = observe(&client, &azure, name);
        let cluster =
            Self { management, client, azure, name, seen, task, _observer: observer, provider };
        cluster.apply_example("cluster.yaml", |text| text)?;
        Ok(cluster)
    }

    fn apply_example(&self, file: &str, change: impl Fn(String) -> String) -> Result<()> {
        let path = format!("{}/../examples/cluster-api/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let here = format!("namespace: {}", self.name);
        let text = text.replace("example", self.name).replace("namespace: default", &here);
        self.management.apply(&change(text))
    }

    /// Scales the MachineDeployment of the examples to this many machines, and lets time pass until their
    /// first read is due. Returns the machines.
    pub(crate) async fn grow(&self, machines: usize) -> Result<Machines> {
        let wanted = format!("replicas: {machines}");
        self.apply_example("nodes-linux.yaml", |text| text.replace("replicas: 3", &wanted))?;
        self.until("all machines to be made and seen", |seen| {
            // The provider has recorded the times of the VMs before the clock jumps.
            let is_made = |it: &DynamicObject| {
                let ready = condition(it, "InfrastructureReady");
                ready.is_some_and(|it| it["status"] == "True")
                    && condition(it, "BootstrapSucceeded").is_some()
            };
            seen.present.values().filter(|it| is_made(it)).count() == machines
        })
        .await?;
        let made = self.present();
        self.azure.advance(BEHIND);
        Ok(made)
    }

    /// What `bringup machine-health-check` prints for this cluster.
    pub(crate) fn health_check(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(built("BRINGUP", "bringup")?);
        command.args(["machine-health-check", "--cluster", self.name, "--namespace", self.name]);
        let ran = command.args(arguments).output().context("run bringup")?;
        ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        Ok(String::from_utf8(ran.stdout)?)
    }

    pub(crate) fn apply(&self, manifests: &str) -> Result<()> {
        self.management.apply(manifests)
    }

    /// A dry run of [`Self::apply`].
    pub(crate) fn dry_run(&self, manifests: &str) -> Result<()> {
        self.management.dry_run(manifests)
    }

    /// Waits until the Machines are as wanted.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Seen) -> bool) -> Result<()> {
        let mut seen = self.seen.clone();
        let found = async {
            tokio::select! {
                found = seen.wait_for(|seen| is(seen)) => {
                    found.map(drop).context("Machines are not watched any more")
                }
                failure = self.provider.failure() => Err(anyhow!("the providers: {failure}")),
            }
        };
        let found = in_time(what, found).await.map_err(Into::into).and_then(|found| found);
        found.with_context(|| {
            let present = self.present();
            let shown = present.values().map(|it| format!("{}: {:#}", it.name_any(), it.data));
            let shown: Vec<String> = shown.collect();
            format!("{}\n{}", shown.join("\n"), self.management.recent_log())
        })
    }

    /// The Machines that exist now.
    pub(crate) fn present(&self) -> Machines {
        self.seen.borrow().present.clone()
    }

    /// All Machines that ever existed, in their last state.
    pub(crate) fn last(&self) -> Machines {
        self.seen.borrow().last.clone()
    }

    /// The Kubernetes API of Machines.
    pub(crate) fn machines(&self) -> Api<DynamicObject> {
        api(&self.client, self.name, "Machine")
    }

    /// Waits until the check is as wanted.
    pub(crate) async fn until_check(
        &self,
        what: &str,
        is: impl Fn(&DynamicObject) -> bool,
    ) -> Result<()> {
        let checks = api(&self.client, self.name, "MachineHealthCheck");
        let name = format!("{}-bringup", self.name);
        let found = until_object(checks, &name, what, |check| check.is_some_and(&is)).await;
        found.map(drop).with_context(|| self.management.recent_log())
    }

    pub(crate) fn deployments(&self) -> Api<DynamicObject> {
        api(&self.client, self.name, "MachineDeployment")
    }

    pub(crate) fn reports(&self) -> Api<BootstrapReport> {
        Api::namespaced(self.client.clone(), self.name)
    }

    /// The report about a Machine.
    pub(crate) async fn report_of(&self, machine: &str) -> Result<BootstrapReport> {
        let reports = self.reports().list(&ListParams::default()).await?;
        let mut reports = reports.items.into_iter();
        let found = reports.find(|report| report.spec.target_ref.name == machine);
        found.with_context(|| format!("{machine} has a report"))
    }

    /// Waits until a report no longer exists.
    pub(crate) async fn until_gone(&self, report: &BootstrapReport) -> Result<()> {
        let name = report.name_any();
        until_object(self.reports(), &name, format!("the end of {name}"), is_gone).await?;
        Ok(())
    }
}

fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// Watches Machines, and sends their states.
async fn follow(machines: Api<DynamicObject>, send: watch::Sender<Seen>) {
    let mut events = watcher(machines, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(machine) | Event::InitApply(machine)) => send.send_modify(|seen| {
                seen.present.insert(machine.name_any(), machine.clone());
                seen.last.insert(machine.name_any(), machine);
            }),
            Ok(Event::Delete(machine)) => send.send_modify(|seen| {
                seen.present.remove(&machine.name_any());
                seen.last.insert(machine.name_any(), machine);
            }),
            Ok(Event::Init) => send.send_modify(|seen| seen.present.clear()),
            Ok(Event::InitDone) => {}
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// `bringup controller --machines`, for one namespace.
fn observe(client: &Client, azure: &Simulator, name: &str) -> Observer {
    let mut settings = Settings::new(&format!("bringup-{name}"), "test-0");
    settings.machines = true;
    settings.scopes = bringup_end_to_end::scopes();
    settings.only_namespace = Some(name.to_owned());
    Observer::start(controller(azure, client.clone(), settings))
}

/// A VM whose `bringup-node wait` reports that the bootstrap failed, and why.
fn fails(cause: &str) -> Value {
    let line = format!(",\"cause\":\"{cause}\",\"conf\":\"high\"");
    let mut rule = life(31, &line);
    rule["name"] = json!(cause);
    rule["when"] = json!({ "tags": { "case": cause } });
    rule
}

/// Any other VM: it becomes a Node.
fn joins() -> Value {
    life(0, "")
}

fn life(exit: i32, more: &str) -> Value {
    let line = format!(
        "BRINGUP-NODE/1 {{\"v\":1,\"kind\":\"wait\",\"exit\":{exit},\"name\":\"X\"{more},\"end\":1}}"
    );
    json!({
        "name": "joins",
        "boot": {
            "bootstrap": "user-data", "vmReadyAfter": "1s", "agentReadyAfter": "1s", "goneAfter": "1s",
            "script": { "ends": { "exitCode": exit, "lasts": "2s", "json": "absent", "output": line } },
        },
    })
}

pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one["type"] == kind)
}

/// Whether a Machine has a Node, also by bringup's condition.
pub(crate) fn is_up(machine: &DynamicObject) -> bool {
    let said = condition(machine, "BootstrapSucceeded");
    said.is_some_and(|it| it["status"] == "True")
        && !machine.data["status"]["nodeRef"].is_null()
        && machine.metadata.deletion_timestamp.is_none()
}

/// The Machine that failed for this cause.
pub(crate) fn of_cause<'a>(machines: &'a Machines, cause: &str) -> Option<&'a DynamicObject> {
    machines.values().find(|machine| {
        condition(machine, "BootstrapSucceeded").is_some_and(|it| it["reason"] == cause)
    })
}
