//! Runs `AzureFlexMachine`s: whoever is due gets one effect; classes are checked as they change.

mod classes;
mod key;
pub mod pools;
mod store;
mod sweeping;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use bringup_flex::class::Class;
use bringup_flex::engine::{ArmCloud, Bootstrap, Engine, Next, StoreError, Sweeper};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::SignedDuration;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use tracing::warn;

use self::classes::Classes;
use self::key::unusable_key;
use self::store::KubeStore;
use crate::agenda::Agenda;

/// How many machines are in hand at once.
const HANDS: usize = 32;
/// The pause after the store did not do what it was asked.
const AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// Who is due.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Class(String),
    Machine(String),
}

/// What is known of the cluster, by name.
#[derive(Debug, Default)]
struct Index {
    classes: BTreeMap<String, AzureFlexNodeClass>,
    /// Machines and the class of each.
    machines: BTreeMap<String, String>,
}

/// Runs machines.
pub struct Flex<B> {
    client: Client,
    clock: Arc<dyn Clock>,
    agenda: Agenda<Key>,
    index: Mutex<Index>,
    engine: Engine<KubeStore, ArmCloud<B>>,
    store: KubeStore,
    classes: Classes,
    sweeper: Sweeper,
    /// Whoever made it has thrown the private half away.
    key: String,
}

impl<B: Bootstrap> Flex<B> {
    /// Machines of the cluster with this id.
    pub fn new(
        client: Client,
        arm: Arm,
        clock: Arc<dyn Clock>,
        cluster: &str,
        bootstrap: B,
    ) -> Self {
        let store = KubeStore::new(client.clone());
        Self {
            agenda: Agenda::new(clock.clone()),
            index: Mutex::default(),
            sweeper: Sweeper::new(arm.clone(), cluster),
            engine: Engine::new(store.clone(), ArmCloud::new(arm, cluster, bootstrap)),
            store,
            classes: Classes::new(client.clone()),
            key: unusable_key(),
            client,
            clock,
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs for ever, as the only one who does. Dropped, everything it does is dropped.
    pub async fn run(&self) {
        tokio::join!(
            self.watch_classes(),
            self.watch_machines(),
            self.work(),
            self.sweep_for_ever()
        );
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
        let next = match &key {
            Key::Class(name) => self.check(name).await,
            Key::Machine(name) => self.pass(name).await,
        };
        self.agenda.done(&key, next);
    }

    /// One effect for a machine; when it is due again.
    async fn pass(&self, name: &str) -> Option<jiff::Timestamp> {
        let now = self.clock.now();
        let place = {
            let index = self.index();
            let class = index.machines.get(name).and_then(|class| index.classes.get(class));
            let class = class.filter(|class| classes::is_ready(class));
            class.and_then(|class| Class::of(&class.spec).ok())
        };
        let uid = self.store.uid(name).await;
        let place = place.zip(uid).map(|(class, uid)| class.place(name, &uid, &self.key));
        match self.engine.pass(name, place.as_ref(), now).await {
            Ok(Next::Now) | Err(StoreError::Conflict) => Some(now),
            Ok(Next::At(at)) => Some(at),
            Ok(Next::Never) => None,
            Err(StoreError::Failed(why)) => {
                warn!(machine = name, why, "the machine could not be stored");
                Some(now + AGAIN)
            }
        }
    }

    async fn check(&self, name: &str) -> Option<jiff::Timestamp> {
        let (class, machines) = {
            let index = self.index();
            let class = index.classes.get(name).cloned()?;
            let of_class = index.machines.iter().filter(|(_, class)| *class == name);
            (class, of_class.map(|(machine, _)| machine.clone()).collect::<BTreeSet<_>>())
        };
        match self.classes.settle(&class, &machines, self.clock.now()).await {
            Ok(next) => next,
            Err(error) => {
                warn!(class = name, %error, "the class could not be settled");
                Some(self.clock.now() + AGAIN)
            }
        }
    }

    async fn watch_classes(&self) {
        let api: Api<AzureFlexNodeClass> = Api::all(self.client.clone());
        let mut events = pin!(watcher(api, watcher::Config::default()));
        loop {
            let (name, class) = match events.try_next().await {
                Ok(Some(watcher::Event::Apply(class) | watcher::Event::InitApply(class))) => {
                    (class.name_any(), Some(class))
                }
                Ok(Some(watcher::Event::Delete(class))) => (class.name_any(), None),
                Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => continue,
                Ok(None) => return,
                Err(error) => {
                    warn!(%error, "classes cannot be watched");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let of_class: Vec<String> = {
                let mut index = self.index();
                match class {
                    Some(class) => index.classes.insert(name.clone(), class),
                    None => index.classes.remove(&name),
                };
                let of_class = index.machines.iter().filter(|(_, class)| **class == name);
                of_class.map(|(machine, _)| machine.clone()).collect()
            };
            self.agenda.plan_now(Key::Class(name));
            for machine in of_class {
                self.agenda.plan_now(Key::Machine(machine));
            }
        }
    }

    async fn watch_machines(&self) {
        let api: Api<AzureFlexMachine> = Api::all(self.client.clone());
        let mut events = pin!(watcher(api, watcher::Config::default()));
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Apply(machine) | watcher::Event::InitApply(machine))) => {
                    let (name, class) = (machine.name_any(), machine.spec.node_class.clone());
                    self.store.noticed(&machine);
                    self.index().machines.insert(name.clone(), class);
                    self.agenda.plan_now(Key::Machine(name));
                }
                Ok(Some(watcher::Event::Delete(machine))) => {
                    let name = machine.name_any();
                    self.store.forget(&name);
                    let class = self.index().machines.remove(&name);
                    self.agenda.plan_now(Key::Machine(name));
                    if let Some(class) = class {
                        self.agenda.plan_now(Key::Class(class));
                    }
                }
                Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => {}
                Ok(None) => return,
                Err(error) => {
                    warn!(%error, "machines cannot be watched");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}
