//! The work loop: reconciles each key that is due (a class, a machine or a Node).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use bringup_flex::engine::{ArmCloud, Bootstrap, Engine, Sweeper};
use bringup_runtime::agenda::Agenda;
use bringup_runtime::recorder::Recorder;
use bringup_runtime::set_aside::SetAside;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::Client;
use tokio::sync::OnceCell;

use super::claims::KubeClaims;
use super::classes::Classes;
use super::index::Index;
use super::memory::Memory;
use super::metrics::FlexMetrics;
use super::recording::RecordingCloud;
use super::store::KubeStore;
use crate::inquiries::Inquiries;
use crate::key::unusable_key;
use crate::ledger::Ledger;
use crate::tokens::Tokens;

/// How many keys are reconciled at once.
const WORKERS: usize = 32;

/// A unit of work that the reconciler handles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Class(String),
    Machine(String),
    Node(String),
}

/// The cluster of the machines, and the location of this replica's ledger.
#[derive(Debug, Clone)]
pub struct Replica {
    /// The cluster's ID, in the tags of every resource in Azure.
    pub cluster: String,
    /// The namespace of the ledger.
    pub namespace: String,
    /// The identity of this replica.
    pub identity: String,
}

/// The reconciler of `AzureFlexMachine`s.
pub struct Flex<B> {
    pub(super) cluster: String,
    pub(super) client: Client,
    pub(super) arm: Arm,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) agenda: Agenda<Key>,
    index: Arc<Mutex<Index>>,
    memory: Mutex<Memory>,
    pub(super) engine: Engine<KubeStore, RecordingCloud<Arc<B>>, KubeClaims>,
    pub(super) bootstrap: Arc<B>,
    /// The uid of the namespace kube-system, from which the names of all resources in Azure are derived.
    pub(super) cluster_uid: OnceCell<String>,
    pub(super) store: KubeStore,
    pub(super) classes: Classes,
    pub(super) inquiries: Inquiries,
    pub(super) sweeper: Sweeper,
    pub(super) ledger: Ledger,
    pub(super) recorder: Recorder,
    pub(super) tokens: Tokens,
    pub(super) metrics: FlexMetrics,
    set_aside: SetAside<Key>,
    /// A public SSH key whose private key was dropped.
    pub(super) key: String,
}

impl<B: Bootstrap> Flex<B> {
    /// The reconciler of the machines of a cluster.
    pub fn new(
        client: Client,
        arm: Arm,
        clock: Arc<dyn Clock>,
        replica: &Replica,
        bootstrap: B,
    ) -> Self {
        let ledger = Ledger::new(client.clone(), &replica.namespace);
        let store = KubeStore::new(client.clone(), ledger.clone());
        let recorder = Recorder::new(client.clone(), &replica.identity);
        let bootstrap = Arc::new(bootstrap);
        let cloud = ArmCloud::new(arm.clone(), &replica.cluster, bootstrap.clone());
        let cloud = RecordingCloud::new(cloud, ledger.clone(), clock.clone());
        let claims = KubeClaims::new(client.clone(), recorder.clone(), clock.clone());
        Self {
            cluster: replica.cluster.clone(),
            agenda: Agenda::new(clock.clone()),
            index: Arc::default(),
            memory: Mutex::default(),
            sweeper: Sweeper::new(arm.clone(), &replica.cluster),
            engine: Engine::new(store.clone(), cloud, claims),
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

    /// Sets the metrics of the process.
    #[must_use]
    pub fn with_metrics(mut self, metrics: FlexMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reconciles until the returned future is dropped, which cancels all work. Only one replica at a time
    /// may run this.
    pub async fn run(&self) {
        let _running = self.metrics.run(self.index.clone());
        Box::pin(async { tokio::join!(self.watch(), self.work(), self.sweep_for_ever()) }).await;
    }

    async fn work(&self) {
        let mut workers = FuturesUnordered::new();
        loop {
            tokio::select! {
                key = self.agenda.next(), if workers.len() < WORKERS => {
                    workers.push(self.reconcile(key));
                }
                Some(()) = workers.next() => {}
            }
        }
    }

    /// Reconciles a key, and schedules it again.
    async fn reconcile(&self, key: Key) {
        let reconciled = async {
            match &key {
                Key::Class(name) => self.reconcile_class(name).await,
                Key::Machine(name) => self.reconcile_machine(name).await,
                Key::Node(name) => self.reconcile_node(name).await,
            }
        };
        let now = self.clock.now();
        let next = self.set_aside.guard(&key, now, self.metrics.panics(), reconciled).await;
        let next = next.unwrap_or_else(Some);
        self.agenda.done(&key, next);
    }
}
