//! The environment of a test: a real control plane, a simulated Azure, and one clock for both.

mod builder;
mod endpoints;

use std::convert::Infallible;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bringup_azure_sim::azure::Azure;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::Controller;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find};
use bringup_objects::report::BootstrapReport;
use bringup_objects::{Node, NodeClaim, flex};
use bringup_observe::Settings;
use bringup_runtime::effect_hook::EffectHook;
use bringup_testbed::wait::{objects, until, until_object};
use bringup_testbed::{ControlPlane, CrdSet};
use futures::{Stream, stream};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use serde::Serialize;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

pub use builder::Builder;

use self::endpoints::Endpoints;
use crate::arm::{self, Arm};
use crate::nodes::NodeFollower;
use crate::order::Order;
use crate::simulated_clock::SimulatedClock;
use crate::stand_in_karpenter::StandInKarpenter;

/// A real control plane and a simulated Azure: a whole cluster, or a test's part of a shared cluster.
///
/// # Guarantees
/// - Everything that only this test bed uses ends when it is dropped: processes, files, tasks.
/// - Test beds that share a control plane do not see each other's objects.
pub struct TestBed {
    /// A client with all permissions.
    pub client: Client,
    /// The simulated Azure. The controllers use its clock too.
    pub azure: Simulator,
    /// The stand-in for Karpenter and its Azure provider.
    pub karpenter: StandInKarpenter,
    /// The settings of the controllers that run in the process of the test.
    pub settings: Settings,
    name: String,
    control_plane: Plane,
    endpoints: Option<Endpoints>,
    _nodes: Option<NodeFollower>,
}

/// The control plane of a test bed.
enum Plane {
    Own(Box<ControlPlane>),
    Shared(&'static ControlPlane),
}

impl Plane {
    fn own(control_plane: ControlPlane) -> Self {
        Self::Own(Box::new(control_plane))
    }

    fn get(&self) -> &ControlPlane {
        match self {
            Self::Own(own) => own,
            Self::Shared(shared) => shared,
        }
    }
}

/// The control plane that all tests of a program share.
pub async fn shared() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_try_init(async || builder::control_plane(&[CrdSet::KarpenterAzure]).await).await
}

/// Like [`shared`], with the definitions of Cluster API.
pub async fn shared_with_machines() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_try_init(async || builder::control_plane(&builder::WITH_MACHINES).await).await
}

/// Like [`shared`], with the definitions of flex machines, for tests without a flex controller.
pub async fn shared_with_flex() -> Result<&'static ControlPlane> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let plane = shared().await?;
    INSTALLED.get_or_try_init(|| plane.install_definitions(flex::definitions())).await?;
    Ok(plane)
}

/// An observer in the process of the test, which stops when this value is dropped.
pub struct Observer {
    task: JoinHandle<()>,
    /// The running controller.
    pub controller: Arc<Controller>,
}

impl Observer {
    /// Starts the observer.
    pub fn start(controller: Controller) -> Self {
        let controller = Arc::new(controller);
        let observed = controller.clone();
        Self { task: tokio::spawn(async move { observed.observe().await }), controller }
    }

    /// Whether the observer has ended, which must never happen.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A controller that reaches Azure in process and uses Azure's clock.
pub fn controller(azure: &Simulator, client: Client, settings: Settings) -> Controller {
    let clock = Arc::new(SimulatedClock(azure.clone()));
    Controller::new(settings, client, arm::client(azure, "observer"), clock)
}

/// The result of `read` after each change in Azure.
pub fn azure_states<S>(
    azure: &Simulator,
    read: impl FnMut(&mut Azure) -> S,
) -> impl Stream<Item = Result<S, Infallible>> {
    let state = (azure.clone(), azure.changes(), read, true);
    stream::unfold(state, async |(azure, mut changes, mut read, is_first)| {
        if !is_first {
            azure.changed(&mut changes).await;
        }
        let found = azure.with(&mut read);
        Some((Ok(found), (azure, changes, read, false)))
    })
}

impl TestBed {
    /// A builder for a test bed with other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A part of the shared control plane, with a pool and an Azure that follows `scenario`.
    pub async fn named(name: &str, scenario: &str) -> Result<Self> {
        Self::builder().named(name).scenario(scenario).start().await
    }

    /// The control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        self.control_plane.get()
    }

    /// The name of the test bed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of a claim of this test bed.
    pub fn claim_name(&self, name: impl Display) -> String {
        format!("{}-{name}", self.name)
    }

    /// The pool of the test bed, which has the same name.
    pub fn pool(&self) -> &str {
        &self.name
    }

    /// The current time of the clock that all parts of the test bed share.
    pub fn now(&self) -> Timestamp {
        self.azure.clock().now()
    }

    /// A plain client of ARM, in process.
    pub fn arm(&self) -> Arm {
        Arm::new(self.azure.clone())
    }

    /// A controller that is not started yet.
    pub fn controller(&self, identity: &str, hook: EffectHook) -> Controller {
        let settings = Settings { identity: identity.to_owned(), ..self.settings.clone() };
        controller(&self.azure, self.client.clone(), settings).with_effect_hook(hook)
    }

    /// Starts an observer with all permissions.
    pub fn observe(&self) -> Observer {
        self.observe_with(self.client.clone(), EffectHook::default())
    }

    /// Starts an observer with the permissions of `client`; `hook` runs after each effect.
    pub fn observe_with(&self, client: Client, hook: EffectHook) -> Observer {
        let controller = controller(&self.azure, client, self.settings.clone());
        Observer::start(controller.with_effect_hook(hook))
    }

    /// The claims of the cluster.
    pub fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    /// The reports of this test bed.
    pub fn reports(&self) -> Api<BootstrapReport> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    /// Waits until a claim meets a condition.
    pub async fn claim_when(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&NodeClaim) -> bool,
    ) -> Result<NodeClaim> {
        let what = format!("{name}: {what}");
        let found = until_object(self.claims(), name, what, |claim| claim.is_some_and(&is));
        found.await?.context("the claim exists")
    }

    /// Launches a claim of the pool whose script fails, and reports the failure like Karpenter.
    pub async fn fail(&self, claim: &str, order: &Order) -> Result<()> {
        self.karpenter.fail(claim, self.pool(), order).await
    }

    /// Waits until the condition of a claim shows a failure.
    pub async fn failed_claim(&self, claim: &str) -> Result<NodeClaim> {
        let has_failed = |claim: &NodeClaim| {
            let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
            find(conditions, BOOTSTRAP_SUCCEEDED).is_some_and(|held| held.status == "False")
        };
        self.claim_when(claim, "a verdict", has_failed).await
    }

    /// The report on a claim, once it meets a condition. Its name is not known in advance.
    pub async fn report_when(
        &self,
        claim: &str,
        is: impl Fn(&BootstrapReport) -> bool,
    ) -> Result<BootstrapReport> {
        let is_it = |report: &BootstrapReport| report.spec.target_ref.name == claim && is(report);
        let what = format!("a report on {claim}");
        let reports = self.reports_when(&what, |reports| reports.iter().any(is_it)).await?;
        reports.into_iter().find(is_it).context("the report exists")
    }

    /// The report on a claim, once it has been announced.
    pub async fn report_of(&self, claim: &str) -> Result<BootstrapReport> {
        self.report_when(claim, BootstrapReport::is_announced).await
    }

    /// Waits until the reports of this test bed meet a condition.
    pub async fn reports_when(
        &self,
        what: &str,
        are: impl Fn(&[BootstrapReport]) -> bool,
    ) -> Result<Vec<BootstrapReport>> {
        let states = objects(self.reports(), watcher::Config::default());
        Ok(until(what, states, |all| are(all)).await?)
    }

    /// The only report, once it has been announced.
    pub async fn report(&self) -> Result<BootstrapReport> {
        let is_announced = |all: &[BootstrapReport]| all.len() == 1 && all[0].is_announced();
        let mut reports = self.reports_when("one report, announced", is_announced).await?;
        reports.pop().context("the report exists")
    }

    /// bringup's Events about an object.
    pub async fn events(&self, about: &str) -> Result<Vec<Event>> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let found = events.list(&ListParams::default()).await.context("list Events")?;
        let ours = found.items.into_iter().filter(|event| {
            event.reporting_controller.as_deref() == Some("bringup")
                && event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about)
        });
        Ok(ours.collect())
    }

    /// Waits until the Node of a claim is ready.
    pub async fn ready_node(&self, claim: &str) -> Result<Node> {
        let (nodes, name) = (Api::all(self.client.clone()), format!("aks-{claim}"));
        let is_ready = |node: Option<&Node>| node.is_some_and(Node::is_ready);
        let found = until_object(nodes, &name, format!("a Node of {claim}"), is_ready);
        found.await?.context("the Node exists")
    }

    /// Waits until the result of `read` in Azure meets a condition.
    pub async fn azure_when<S: Serialize>(
        &self,
        what: &str,
        read: impl FnMut(&mut Azure) -> S,
        is: impl FnMut(&S) -> bool,
    ) -> Result<S> {
        Ok(until(what, azure_states(&self.azure, read), is).await?)
    }

    /// A directory that is deleted with the test bed.
    pub fn directory(&self) -> &Path {
        self.control_plane().directory()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane().kubeconfig_path()
    }

    /// The HTTPS address of ARM and of the token endpoints. Empty without [`Builder::endpoints`].
    pub fn azure_endpoint(&self) -> String {
        self.endpoints.as_ref().map(Endpoints::azure).unwrap_or_default()
    }

    /// The certificate that signs the one of [`Self::azure_endpoint`].
    pub fn azure_ca_file(&self) -> PathBuf {
        self.directory().join(endpoints::CA_FILE)
    }

    /// The URL for advancing the clock and injecting faults.
    pub fn control_endpoint(&self) -> String {
        self.endpoints.as_ref().map(Endpoints::control).unwrap_or_default()
    }
}
