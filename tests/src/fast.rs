//! A part of a shared API server like [`crate::stage`], with an Azure whose clock runs faster than
//! the wall's, and many claims in it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_objects::NodeClaim;
use bringup_observe::Settings;
use bringup_observe::claims::NodeClassKind;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use tokio::task::JoinHandle;

use crate::nodes::NodeFollower;
use crate::order::Order;
use crate::provider::Provider;
use crate::stage::shared;
use crate::vm_fleet::{VmFleet, controller};

/// How many requests Karpenter has under way at once.
const HANDS: usize = 32;

/// One test's part of the world, in which time flies.
pub struct Fast {
    /// May do everything.
    pub client: Client,
    /// The simulated Azure, whose clock is also the controller's.
    pub azure: Simulator,
    /// Karpenter, as far as Kubernetes is concerned.
    pub karpenter: Provider,
    /// Karpenter, as far as Azure is concerned.
    pub vm_fleet: VmFleet,
    /// The settings that the controller gets.
    pub settings: Settings,
    name: String,
    _nodes: NodeFollower,
}

/// A task that is aborted when its handle is dropped.
#[derive(Debug)]
pub struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Fast {
    /// A stage whose Azure follows a scenario, so many times faster than the wall's clock. The
    /// name has to be its own.
    pub async fn set(name: &str, scenario: &str, times: f64) -> Result<Self> {
        let client = shared().await?.client();
        let mut scenario = scenario::parse(name, scenario)?;
        // The API server goes by the wall's clock: it has to be about the same time there.
        scenario.start = Timestamp::now();
        let azure = Simulator::new(scenario, Pace::Times(times), Timestamp::now());
        let namespace = format!("bringup-{name}");
        let object = Namespace {
            metadata: ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.context("make the namespace")?;
        let class = format!("Class{name}");
        let karpenter = Provider::with_class(client.clone(), azure.clone(), &class);
        karpenter.create_pool(name).await?;
        let mut settings = Settings::new(&namespace, "test-0");
        settings.scopes = crate::scopes();
        settings.classes =
            vec![NodeClassKind { group: "karpenter.azure.com".to_owned(), kind: class }];
        Ok(Self {
            _nodes: NodeFollower::start(azure.clone(), client.clone(), &format!("aks-{name}-")),
            vm_fleet: VmFleet::new(azure.clone()),
            client,
            azure,
            karpenter,
            settings,
            name: name.to_owned(),
        })
    }

    /// A controller that observes this stage through `client`.
    pub fn observe_with(&self, client: Client) -> Running {
        let controller = controller(&self.azure, client, self.settings.clone());
        Running(tokio::spawn(async move { controller.observe().await }))
    }

    /// The name of a claim of this stage.
    pub fn claim_name(&self, nth: usize) -> String {
        format!("{}-{nth}", self.name)
    }

    /// Does something for each of so many claims, with all hands.
    pub async fn each<F>(&self, claims: usize, work: impl Fn(String) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        stream::iter((0..claims).map(|nth| work(self.claim_name(nth))))
            .buffer_unordered(HANDS)
            .try_collect()
            .await
    }

    /// Makes a claim, its NIC and its VM, and says so in the status.
    pub async fn launch(&self, claim: &str, order: &Order) -> Result<()> {
        self.karpenter.claim(claim, Some(&self.name)).await?;
        self.vm_fleet.put_vm(claim, &self.name, order)?;
        self.karpenter.accepted(claim, &Provider::vm_path(claim), &order.image()).await
    }

    /// Waits until ARM shows so many VMs of this stage in a state.
    pub async fn until_vms_are(&self, state: &str, many: usize) {
        self.until_resources(many, |id| id.contains("/virtualMachines/"), state).await;
    }

    /// Waits until ARM shows a claim's VM in a state.
    pub async fn until_vm_is(&self, claim: &str, state: &str) {
        let path = Provider::vm_path(claim);
        self.until_resources(1, |id| id == path, state).await;
    }

    async fn until_resources(&self, many: usize, are: impl Fn(&str) -> bool, state: &str) {
        let mut changes = self.azure.changes();
        loop {
            let found = self.azure.with(|azure| {
                let all = azure.resources();
                all.iter().filter(|found| found.state == state && are(&found.id)).count()
            });
            if found >= many {
                return;
            }
            self.azure.changed(&mut changes).await;
        }
    }

    /// Waits until a claim's Node is there.
    pub async fn until_joined(&self, claim: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let exists = |node: Option<&Node>| node.is_some();
        in_time(await_condition(nodes, &format!("aks-{claim}"), exists))
            .await?
            .context("a Node")?;
        Ok(())
    }

    /// Waits until a claim is as wanted.
    pub async fn claim_when(&self, claim: &str, is: impl Fn(&NodeClaim) -> bool) -> Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let wanted = |claim: Option<&NodeClaim>| claim.is_some_and(&is);
        in_time(await_condition(claims, claim, wanted)).await?.context("a claim")?;
        Ok(())
    }
}

/// Gives up after a time that only a broken test needs.
async fn in_time<T>(work: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(Duration::from_mins(10), work).await.context("waited in vain")
}
