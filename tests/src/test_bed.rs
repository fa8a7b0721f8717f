//! One test's part of a shared API server: an Azure of its own, claims that no other test looks
//! after, and a controller that looks after nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bringup_azure::clock::Clock;
use bringup_azure::{Arm as Client_, Cloud};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::scenario::{self, Scenario};
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::Controller;
use bringup_objects::report::{BootstrapReport, definition};
use bringup_objects::{Node, NodeClaim};
use bringup_observe::Settings;
use bringup_observe::claims::NodeClassKind;
use bringup_runtime::effect_hook::EffectHook;
use bringup_testbed::{ControlPlane, CrdSet};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::nodes::NodeFollower;
use crate::provider::Provider;

/// The end of a wait that only a broken test reaches.
const FOREVER: Duration = Duration::from_mins(4);

/// The simulator's clock as the controller's.
#[derive(Debug, Clone)]
pub struct SimulatedClock(pub Simulator);

#[async_trait]
impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.0.clock().now()
    }

    async fn reach(&self, moment: Timestamp) {
        self.0.clock().reach(moment).await;
    }
}

/// One test's part of the world.
pub struct Stage {
    /// May do everything.
    pub client: Client,
    /// The simulated Azure.
    pub azure: Simulator,
    /// Karpenter.
    pub karpenter: Provider,
    /// The settings that controllers get.
    pub settings: Settings,
    name: String,
    _nodes: NodeFollower,
}

/// A controller that runs until it is dropped.
pub struct Running {
    task: JoinHandle<()>,
    /// It.
    pub controller: Arc<Controller>,
}

impl Running {
    /// Whether it has ended, which it never should.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The API server that all tests of a program share.
pub async fn shared() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED.get_or_try_init(own).await
}

/// An API server for one test, whose objects would disturb the others.
pub async fn own() -> Result<ControlPlane> {
    let started = ControlPlane::builder().crds([CrdSet::KarpenterAzure]).start().await?;
    started.install_definitions([definition()]).await?;
    Ok(started)
}

impl Stage {
    /// A stage whose Azure follows a scenario. The name has to be its own.
    pub async fn set(name: &str, scenario: &str) -> Result<Self> {
        let scenario = scenario::parse(name, scenario)?;
        let stage = Self::on(shared().await?.client(), name, scenario).await?;
        stage.karpenter.create_pool(name).await?;
        Ok(stage)
    }

    /// The same with a clock that is an hour behind: minutes that pass in Azure do not make claims
    /// old, which the API server stamps by the wall's clock.
    pub async fn set_behind(name: &str, scenario: &str) -> Result<Self> {
        Self::on_behind(shared().await?.client(), name, scenario).await
    }

    /// The same on an API server of its own.
    pub async fn on_behind(client: Client, name: &str, scenario: &str) -> Result<Self> {
        let scenario = scenario::parse(name, scenario)?;
        let start = Timestamp::now() - SignedDuration::from_hours(1);
        let stage = Self::starting(client, name, scenario, start).await?;
        stage.karpenter.create_pool(name).await?;
        Ok(stage)
    }

    /// A stage on an API server of its own; its pool is not made yet.
    pub async fn on(client: Client, name: &str, scenario: Scenario) -> Result<Self> {
        Self::starting(client, name, scenario, Timestamp::now()).await
    }

    async fn starting(
        client: Client,
        name: &str,
        scenario: Scenario,
        start: Timestamp,
    ) -> Result<Self> {
        let azure = Simulator::new(scenario, Pace::Real, start);
        let namespace = format!("bringup-{name}");
        let object = Namespace {
            metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.context("make the namespace")?;
        let class = format!("Class{name}");
        let karpenter = Provider::with_class(client.clone(), azure.clone(), &class);
        let mut settings = Settings::new(&namespace, "test-0");
        settings.scopes = crate::scopes();
        settings.classes =
            vec![NodeClassKind { group: "karpenter.azure.com".to_owned(), kind: class }];
        let prefix = format!("aks-{name}-");
        Ok(Self {
            _nodes: NodeFollower::start(azure.clone(), client.clone(), &prefix),
            client,
            azure,
            karpenter,
            settings,
            name: name.to_owned(),
        })
    }

    /// The name of a claim of this stage; its pool has the stage's name.
    pub fn claim_name(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// The pool of this stage.
    pub fn pool(&self) -> &str {
        &self.name
    }

    /// An ARM client in process, with a budget of its own.
    pub fn arm(&self) -> Client_ {
        Client_::new(
            Cloud::Public.endpoint(),
            Arc::new(AnyToken("observer")),
            Arc::new(InProcess::new(self.azure.clone())),
            Arc::new(SimulatedClock(self.azure.clone())),
        )
    }

    /// A controller that observes this stage.
    pub fn observe(&self) -> Running {
        self.observe_with(self.client.clone(), EffectHook::default())
    }

    /// A controller of this stage that does not run yet.
    pub fn controller(&self, identity: &str, witness: EffectHook) -> Controller {
        let mut settings = self.settings.clone();
        identity.clone_into(&mut settings.identity);
        self.controller_with(settings, self.client.clone(), witness)
    }

    fn controller_with(
        &self,
        settings: Settings,
        client: Client,
        witness: EffectHook,
    ) -> Controller {
        let clock = Arc::new(SimulatedClock(self.azure.clone()));
        Controller::new(settings, client, self.arm(), clock).with_effect_hook(witness)
    }

    /// A controller with rights of its own, and a witness.
    pub fn observe_with(&self, client: Client, witness: EffectHook) -> Running {
        let controller = self.controller_with(self.settings.clone(), client, witness);
        let controller = Arc::new(controller);
        let task = tokio::spawn({
            let controller = controller.clone();
            async move { controller.observe().await }
        });
        Running { task, controller }
    }

    /// The claims of the cluster.
    pub fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    /// Waits until a claim is as wanted.
    pub async fn claim_when(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&NodeClaim) -> bool,
    ) -> Result<NodeClaim> {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut found = self
            .when(self.claims(), config, what, |claims: &[NodeClaim]| claims.iter().any(&is))
            .await?;
        found.pop().context("the claim is there")
    }

    /// Waits until the reports of this stage are as wanted.
    pub async fn reports_when(
        &self,
        what: &str,
        are: impl Fn(&[BootstrapReport]) -> bool,
    ) -> Result<Vec<BootstrapReport>> {
        let api: Api<BootstrapReport> =
            Api::namespaced(self.client.clone(), &self.settings.namespace);
        self.when(api, watcher::Config::default(), what, are).await
    }

    /// The only report, once it has been announced.
    pub async fn report(&self) -> Result<BootstrapReport> {
        let mut reports = self
            .reports_when("one report, announced", |reports| {
                reports.len() == 1 && reports[0].is_announced()
            })
            .await?;
        reports.pop().context("the report is there")
    }

    /// Our Events about an object.
    pub async fn events(&self, about: &str) -> Result<Vec<Event>> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let found = events.list(&ListParams::default()).await.context("list Events")?;
        let ours = found.items.into_iter().filter(|event| {
            event.reporting_controller.as_deref() == Some("bringup")
                && event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about)
        });
        Ok(ours.collect())
    }

    /// Waits until a Node exists.
    pub async fn node_when_there(&self, claim: &str) -> Result<Node> {
        let api: Api<Node> = Api::all(self.client.clone());
        let config = watcher::Config::default().fields(&format!("metadata.name=aks-{claim}"));
        let mut nodes = self
            .when(api, config, "a Node", |nodes: &[Node]| nodes.iter().any(Node::is_ready))
            .await?;
        nodes.pop().context("the Node is there")
    }

    /// Watches objects until they are as wanted.
    pub async fn when<K>(
        &self,
        api: Api<K>,
        config: watcher::Config,
        what: &str,
        are: impl Fn(&[K]) -> bool,
    ) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        watched(api, config, FOREVER, what, are).await
    }
}

/// Watches objects until they are as wanted, but no longer than `limit`.
pub async fn watched<K>(
    api: Api<K>,
    config: watcher::Config,
    limit: Duration,
    what: &str,
    are: impl Fn(&[K]) -> bool,
) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let watching = async {
        let mut seen: BTreeMap<String, K> = BTreeMap::new();
        let mut events = std::pin::pin!(watcher(api, config));
        let mut complete = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => seen.clear(),
                Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                    seen.insert(object.name_any(), object);
                }
                Ok(watcher::Event::InitDone) => complete = true,
                Ok(watcher::Event::Delete(object)) => {
                    seen.remove(&object.name_any());
                }
                // The limit also applies when no answer arrives.
                Err(_) => tokio::task::yield_now().await,
            }
            let all: Vec<K> = seen.values().cloned().collect();
            if complete && are(&all) {
                return Ok(all);
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(limit, watching)
        .await
        .with_context(|| format!("waited in vain for {what}"))?
}
