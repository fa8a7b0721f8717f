//! Watches all objects that machines depend on: each change updates the index and makes keys due.

use std::collections::BTreeSet;
use std::fmt::Debug;

use bringup_flex::engine::Bootstrap;
use bringup_objects::Readable;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_objects::karpenter::NodeClaim;
use bringup_runtime::unreadable::{self, Unreadable};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::claims::{is_of_our_class, plain};
use super::flex::{Flex, Key};
use super::index::{Index, Machine};

/// A change of an object, as a watch delivers it.
enum Seen<K> {
    /// The object exists, in this state.
    Exists(K),
    /// The object was deleted; its last state.
    Deleted(K),
    /// The object with this name was deleted; its last state cannot be parsed.
    DeletedUnread(String),
    /// The names of all existing objects.
    Listed(BTreeSet<String>),
}

/// Watches one kind of object until the returned future is dropped, with a pause after each error.
async fn follow<K>(api: Api<Readable<K>>, mut handle: impl FnMut(Seen<K>))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    let mut stream = std::pin::pin!(stream);
    let mut names = BTreeSet::new();
    let mut unreadable = Unreadable::default();
    while let Some(next) = stream.next().await {
        let event = match next {
            Ok(event) => event,
            Err(error) => {
                warn!(kind = %K::kind(&()), %error, "watch failed; trying again");
                continue;
            }
        };
        match unreadable.pass(&K::kind(&()), event) {
            unreadable::Seen::Init => names.clear(),
            unreadable::Seen::InitApply(object) => {
                names.insert(object.name_any());
                handle(Seen::Exists(object));
            }
            // The object cannot be parsed. Its state in the index stays, so that its VM does not count as an
            // orphan.
            unreadable::Seen::Unread(metadata) => names.extend(metadata.name),
            unreadable::Seen::InitDone => handle(Seen::Listed(std::mem::take(&mut names))),
            unreadable::Seen::Apply(object) => handle(Seen::Exists(object)),
            unreadable::Seen::Delete(object) => handle(Seen::Deleted(object)),
            unreadable::Seen::DeleteUnread(metadata) => {
                handle(Seen::DeletedUnread(metadata.name.unwrap_or_default()));
            }
        }
    }
}

impl<B: Bootstrap> Flex<B> {
    pub(super) async fn watch(&self) {
        tokio::join!(self.classes(), self.machines(), self.claims(), self.nodes());
    }

    async fn classes(&self) {
        let api: Api<Readable<AzureFlexNodeClass>> = Api::all(self.client.clone());
        follow(api, |seen| {
            let mut index = self.index();
            let changed: Vec<String> = match seen {
                Seen::Exists(class) => {
                    let name = class.name_any();
                    index.classes.insert(name.clone(), class);
                    vec![name]
                }
                Seen::Deleted(class) => {
                    index.classes.remove(&class.name_any());
                    vec![class.name_any()]
                }
                Seen::DeletedUnread(name) => {
                    index.classes.remove(&name);
                    vec![name]
                }
                Seen::Listed(names) => {
                    index.classes_are_listed = true;
                    drop_missing(&mut index.classes, &names)
                }
            };
            for name in changed {
                for machine in index.of_class(&name) {
                    self.agenda.plan_now(Key::Machine(machine));
                }
                self.agenda.plan_now(Key::Class(name));
            }
        })
        .await;
    }

    async fn machines(&self) {
        let api: Api<Readable<AzureFlexMachine>> = Api::all(self.client.clone());
        follow(api, |seen| {
            let mut index = self.index();
            let gone = match seen {
                Seen::Exists(machine) => {
                    let name = machine.name_any();
                    self.store.watched(&machine);
                    index.machines.insert(name.clone(), Machine::of(&machine));
                    self.agenda.plan_now(Key::Machine(name));
                    Vec::new()
                }
                Seen::Deleted(machine) => {
                    let name = machine.name_any();
                    index.machines.remove(&name);
                    self.agenda.plan_now(Key::Class(machine.spec.node_class));
                    vec![name]
                }
                Seen::DeletedUnread(name) => {
                    if let Some(machine) = index.machines.remove(&name) {
                        self.agenda.plan_now(Key::Class(machine.class));
                    }
                    vec![name]
                }
                Seen::Listed(names) => {
                    index.machines_are_listed = true;
                    drop_missing(&mut index.machines, &names)
                }
            };
            for name in gone {
                self.store.forget(&name);
                self.agenda.plan_now(Key::Machine(name));
            }
        })
        .await;
    }

    async fn claims(&self) {
        let api: Api<Readable<NodeClaim>> = Api::all(self.client.clone());
        let gone = |index: &mut Index, name: String| {
            if let Some(claim) = index.claims.remove(&name) {
                self.agenda.plan_now(Key::Class(claim.class));
            }
            vec![name]
        };
        follow(api, |seen| {
            let mut index = self.index();
            let changed: Vec<String> = match seen {
                Seen::Exists(claim) => {
                    if !is_of_our_class(&claim) {
                        return;
                    }
                    let (name, known) = (claim.name_any(), plain(&claim));
                    let before = index.claims.insert(name.clone(), known.clone());
                    // Most changes of a claim do not affect its machine.
                    if before.as_ref() == Some(&known) {
                        return;
                    }
                    vec![name]
                }
                Seen::Deleted(claim) => gone(&mut index, claim.name_any()),
                Seen::DeletedUnread(name) => gone(&mut index, name),
                Seen::Listed(names) => {
                    index.claims_are_listed = true;
                    let machines = index.machines.keys().cloned();
                    for machine in machines.collect::<Vec<_>>() {
                        self.agenda.plan_now(Key::Machine(machine));
                    }
                    drop_missing(&mut index.claims, &names)
                }
            };
            for name in changed {
                for machine in index.machines_for(&name) {
                    self.agenda.plan_now(Key::Machine(machine.clone()));
                }
            }
        })
        .await;
    }

    async fn nodes(&self) {
        let api: Api<Readable<Node>> = Api::all(self.client.clone());
        follow(api, |seen| match seen {
            Seen::Exists(node) => {
                if self.needs_reconciling(&node) {
                    self.agenda.plan_now(Key::Node(node.name_any()));
                }
            }
            Seen::Deleted(node) => drop(self.memory().tokens_withdrawn.remove(&node.name_any())),
            Seen::DeletedUnread(name) => drop(self.memory().tokens_withdrawn.remove(&name)),
            Seen::Listed(names) => {
                self.memory().tokens_withdrawn.retain(|name| names.contains(name));
            }
        })
        .await;
    }
}

/// Removes the objects that no longer exist, and returns their names.
fn drop_missing<T>(
    known: &mut std::collections::BTreeMap<String, T>,
    all: &BTreeSet<String>,
) -> Vec<String> {
    let gone: Vec<String> = known.keys().filter(|name| !all.contains(*name)).cloned().collect();
    for name in &gone {
        known.remove(name);
    }
    gone
}
