//! Runs `AzureFlexMachine`s: each key that is due gets one effect; classes are checked as they change.

mod blame;
pub(crate) mod classes;
mod duties;
mod ending;
mod index;
mod metrics;
pub(crate) mod nodes;
mod noting;
mod store;
mod sweeping;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use bringup_flex::class::Class;
use bringup_flex::engine::{ArmCloud, Bootstrap, Engine, Next, StoreError, Sweeper};
use bringup_flex::machine::Around;
use bringup_flex::time::later;
use bringup_objects::Readable;
use bringup_objects::flex::machine::{AzureFlexMachine, Phase, Place};
use bringup_objects::karpenter::NodeClaim;
use bringup_runtime::agenda::Agenda;
use bringup_runtime::recorder::Recorder;
use bringup_runtime::set_aside::SetAside;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::OnceCell;
use tracing::warn;

use self::classes::{Classes, Known, Refusal};
use self::index::{Claim, Index};
use self::noting::NotingCloud;
use self::store::KubeStore;
use crate::inquiries::Inquiries;
use crate::joining;
use crate::key::unusable_key;
use crate::ledger::Ledger;
use crate::tokens::Tokens;

pub use self::classes::is_ready;
pub use self::metrics::FlexMetrics;

/// How many machines are in hand at once.
const HANDS: usize = 32;
/// The pause after the store did not do what it was asked.
const AGAIN: SignedDuration = SignedDuration::from_secs(2);
/// The pause after something that we may not do.
const DENIED: SignedDuration = SignedDuration::from_mins(1);

/// The pause after an error of Kubernetes: a right that is missing is not there two seconds later
/// either.
fn pause(error: &kube::Error) -> SignedDuration {
    match error {
        kube::Error::Api(status) if status.code == 403 => DENIED,
        _ => AGAIN,
    }
}

/// What Azure answered to the last call of a machine, if it is an error that was not known before.
fn new_error<'a>(
    before: Option<&'a AzureFlexMachine>,
    after: &'a AzureFlexMachine,
) -> Option<&'a str> {
    let error = |machine: &'a AzureFlexMachine| {
        machine.status.as_ref()?.call.as_ref()?.last_error.as_deref()
    };
    error(after).filter(|new| before.and_then(error) != Some(*new))
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Class(String),
    Machine(String),
    Node(String),
}

/// Whose machines they are, and where things are kept.
#[derive(Debug, Clone)]
pub struct Home {
    /// The cluster's id, in the tags of everything in Azure.
    pub cluster: String,
    /// Where what has to be remembered is kept.
    pub namespace: String,
    /// The identity of this replica.
    pub identity: String,
}

/// Runs machines.
pub struct Flex<B> {
    cluster: String,
    client: Client,
    arm: Arm,
    clock: Arc<dyn Clock>,
    agenda: Agenda<Key>,
    index: Arc<Mutex<Index>>,
    /// Machines that were refused because of their class, by class.
    refusals: Mutex<BTreeMap<String, Refusal>>,
    /// Nodes whose token was withdrawn.
    greeted: Mutex<BTreeSet<String>>,
    engine: Engine<KubeStore, NotingCloud<Arc<B>>>,
    bootstrap: Arc<B>,
    /// The uid of the namespace kube-system, in the names of everything in Azure.
    cluster_uid: OnceCell<String>,
    store: KubeStore,
    classes: Classes,
    inquiries: Inquiries,
    sweeper: Sweeper,
    ledger: Ledger,
    recorder: Recorder,
    tokens: Tokens,
    metrics: FlexMetrics,
    set_aside: SetAside<Key>,
    /// A public key whose private half was thrown away.
    key: String,
}

impl<B: Bootstrap> Flex<B> {
    /// Machines of a cluster.
    pub fn new(client: Client, arm: Arm, clock: Arc<dyn Clock>, home: &Home, bootstrap: B) -> Self {
        let ledger = Ledger::new(client.clone(), &home.namespace);
        let store = KubeStore::new(client.clone(), ledger.clone());
        let recorder = Recorder::new(client.clone(), &home.identity);
        let bootstrap = Arc::new(bootstrap);
        let cloud = ArmCloud::new(arm.clone(), &home.cluster, bootstrap.clone());
        let cloud = NotingCloud::new(cloud, ledger.clone(), clock.clone());
        Self {
            cluster: home.cluster.clone(),
            agenda: Agenda::new(clock.clone()),
            index: Arc::default(),
            refusals: Mutex::default(),
            greeted: Mutex::default(),
            sweeper: Sweeper::new(arm.clone(), &home.cluster),
            engine: Engine::new(store.clone(), cloud),
            bootstrap,
            cluster_uid: OnceCell::new(),
            store,
            classes: Classes::new(client.clone(), recorder.clone()),
            inquiries: Inquiries::new(arm.clone(), clock.clone()),
            ledger,
            recorder,
            tokens: Tokens::new(client.clone()),
            metrics: FlexMetrics::default(),
            set_aside: SetAside::default(),
            key: unusable_key(),
            client,
            arm,
            clock,
        }
    }

    /// The same, counted where everything else is.
    #[must_use]
    pub fn with_metrics(mut self, metrics: FlexMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn greeted(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.greeted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, BTreeMap<String, Refusal>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs for ever, as the only replica that does. When the future is dropped, everything it does
    /// is dropped.
    pub async fn run(&self) {
        let _running = self.metrics.run(self.index.clone());
        Box::pin(async { tokio::join!(self.watch(), self.work(), self.sweep_for_ever()) }).await;
    }

    async fn work(&self) {
        let mut hands = FuturesUnordered::new();
        loop {
            tokio::select! {
                key = self.agenda.next(), if hands.len() < HANDS => hands.push(self.handle(key)),
                Some(()) = hands.next() => {}
            }
        }
    }

    async fn handle(&self, key: Key) {
        let step = async {
            match &key {
                Key::Class(name) => self.check(name).await,
                Key::Machine(name) => self.pass(name).await,
                Key::Node(name) => self.visit(name).await,
            }
        };
        let next = self.set_aside.guard(&key, self.clock.now(), self.metrics.panics(), step).await;
        let next = next.unwrap_or_else(Some);
        self.agenda.done(&key, next);
    }

    /// One effect for a machine; when it is due again.
    async fn pass(&self, name: &str) -> Option<Timestamp> {
        let now = self.clock.now();
        let before = self.store.machine(name).await;
        let place = self.place(name).await;
        let refused = match (&before, &place) {
            (Some(machine), Some(place)) => self.bootstrap.check(machine, place).await.err(),
            _ => None,
        };
        let is_evidence = self.is_evidence(name).await;
        let around = Around { place: place.as_ref(), is_evidence, refused: refused.as_deref() };
        let passed = self.engine.pass(name, around, now).await;
        if let (Ok(_), Some(after)) = (&passed, self.store.machine(name).await) {
            self.metrics.passed(before.as_ref(), &after);
            if let Some(why) = new_error(before.as_ref(), &after) {
                warn!(machine = name, why, "Azure did not do or say what it was asked");
            }
        }
        let next = match passed {
            Ok(Next::Now) | Err(StoreError::Conflict) => return Some(now),
            Ok(Next::At(at)) => Some(at),
            Ok(Next::Never) => None,
            Err(StoreError::Failed(why)) => {
                warn!(machine = name, why, "the machine could not be stored");
                return Some(later(now, AGAIN));
            }
            Err(StoreError::Denied(why)) => {
                warn!(machine = name, why, "the machine may not be stored");
                return Some(later(now, DENIED));
            }
        };
        self.blame(name).await;
        // Whichever is sooner.
        let owed = self.owe(name, now).await;
        [next, owed].into_iter().flatten().min()
    }

    /// Where a machine is to be, if that is to be decided now.
    async fn place(&self, name: &str) -> Option<Place> {
        let machine = self.store.machine(name).await?;
        let phase = machine.status.as_ref().map_or(Phase::Planned, |status| status.phase);
        if !matches!(phase, Phase::Planned | Phase::Gone) {
            return None;
        }
        let (generation, class) = {
            let index = self.index();
            let class = index.classes.get(&machine.spec.node_class);
            let class = class.filter(|class| is_ready(class))?;
            (class.metadata.generation, Class::of(&class.spec).ok()?)
        };
        match self.inquiries.resolved(&class).await {
            Ok(image) => {
                let uid = machine.metadata.uid.as_deref().unwrap_or_default();
                match self.cluster_uid().await {
                    Ok(cluster) => {
                        Some(Place { image, ..class.place(name, uid, &cluster, &self.key) })
                    }
                    Err(error) => {
                        warn!(machine = name, %error, "cannot read namespace kube-system, whose uid is part of the names in Azure");
                        let again = later(self.clock.now(), pause(&error));
                        self.agenda.plan(Key::Machine(name.to_owned()), again);
                        None
                    }
                }
            }
            Err(trouble) => {
                self.refused(&machine.spec.node_class, generation, &trouble);
                self.agenda.plan(Key::Machine(name.to_owned()), later(self.clock.now(), AGAIN));
                None
            }
        }
    }

    /// The uid of the namespace kube-system, which no other cluster has.
    async fn cluster_uid(&self) -> Result<String, kube::Error> {
        let read = || async {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            Ok(namespaces.get("kube-system").await?.uid().unwrap_or_default())
        };
        self.cluster_uid.get_or_try_init(read).await.cloned()
    }

    /// Whether a machine's VM is still needed to find out why it failed.
    async fn is_evidence(&self, name: &str) -> bool {
        let Some(machine) = self.store.machine(name).await else { return false };
        let status = machine.status.unwrap_or_default();
        let index = self.index();
        let claim = index.machines.get(name).and_then(|machine| index.claim_of(machine));
        // A claim that has not been listed yet may still want it.
        let is_open = machine.spec.claim_ref.is_some() && !index.claims_are_listed;
        status.phase == Phase::CleanVm
            && status.accepted_at.is_some()
            && claim.map_or(is_open, |claim| !claim.is_registered && claim.verdict.is_none())
    }

    /// The claims and machines of a class. They are listed, and not looked up: what has not been seen
    /// yet needs the class all the same.
    async fn needed_by(&self, class: &str) -> Result<Vec<String>, kube::Error> {
        let all = ListParams::default();
        let machines: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let machines = machines.list(&all).await?.items.into_iter();
        let machines = machines.filter(|machine| machine.spec.node_class == class);
        let claims: Api<Readable<NodeClaim>> = Api::all(self.client.clone());
        let claims = match claims.list(&all).await {
            Ok(found) => found.items,
            // Karpenter is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let claims = claims.iter().filter(|claim| match &claim.0 {
            Ok(claim) => Claim::of(claim).is_some_and(|it| it.class == class),
            // It may be one of this class.
            Err(_) => true,
        });
        let names: BTreeSet<String> =
            claims.map(ResourceExt::name_any).chain(machines.map(|it| it.name_any())).collect();
        Ok(names.into_iter().collect())
    }

    /// Looks after a class; when to look again.
    async fn check(&self, name: &str) -> Option<Timestamp> {
        match self.settle(name).await {
            Ok(next) => next,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => None,
            Err(error) => {
                warn!(class = name, %error, "the class could not be settled");
                Some(later(self.clock.now(), pause(&error)))
            }
        }
    }

    async fn settle(&self, name: &str) -> Result<Option<Timestamp>, kube::Error> {
        let Some(class) = self.index().classes.get(name).cloned() else { return Ok(None) };
        let needed = match &class.metadata.deletion_timestamp {
            Some(_) => self.needed_by(name).await?,
            None => Vec::new(),
        };
        let now = self.clock.now();
        if let Some(next) = self.classes.part(&class, &needed, now).await? {
            return Ok(next);
        }
        if self.classes.hold(&class).await? {
            return Ok(None);
        }
        let mut known = Known { refusal: self.refusals().get(name).cloned(), ..Known::default() };
        if let Ok(meant) = Class::of(&class.spec) {
            let cluster = joining::cluster_version(&self.client).await?;
            known.version = meant
                .kubernetes_version
                .as_deref()
                .and_then(|version| bringup_flex::class::skew(version, &cluster));
            known.found = Some(self.inquiries.class(&meant).await);
        }
        self.classes.tell(&class, &known, now).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use bringup_objects::flex::machine::{Call, FlexMachineStatus};

    use super::*;

    #[test]
    fn an_error_of_azure_is_told_when_it_is_new() {
        let machine = |last_error: Option<&str>| {
            let last_error = last_error.map(str::to_owned);
            let call = Some(Call { last_error, ..Call::default() });
            let status = Some(FlexMachineStatus { call, ..FlexMachineStatus::default() });
            AzureFlexMachine { status, ..AzureFlexMachine::default() }
        };
        let (none, one, two) = (machine(None), machine(Some("one")), machine(Some("two")));
        assert_eq!(new_error(None, &one), Some("one"));
        assert_eq!(new_error(Some(&none), &one), Some("one"));
        assert_eq!(new_error(Some(&one), &two), Some("two"));
        assert_eq!(new_error(Some(&one), &one), None, "it is known");
        assert_eq!(new_error(Some(&one), &none), None, "it is over");
    }
}
