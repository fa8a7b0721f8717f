//! Watches of everything that machines depend on.

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

use super::index::{Claim, Index, Machine};
use super::{Flex, Key};

/// What happened to an object.
enum Seen<K> {
    /// It is so.
    There(K),
    /// It is not there any more.
    Gone(K),
    /// The one of this name is not there any more; its last state cannot be read.
    GoneUnread(String),
    /// These are all.
    All(BTreeSet<String>),
}

/// Follows one kind of object for ever, with a pause after each trouble.
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
                warn!(kind = %K::kind(&()), %error, "cannot be watched");
                continue;
            }
        };
        match unreadable.pass(&K::kind(&()), event) {
            unreadable::Seen::Init => names.clear(),
            unreadable::Seen::InitApply(object) => {
                names.insert(object.name_any());
                handle(Seen::There(object));
            }
            // What was known of it stays: its VM must not be taken for an orphan.
            unreadable::Seen::Unread(metadata) => names.extend(metadata.name),
            unreadable::Seen::InitDone => handle(Seen::All(std::mem::take(&mut names))),
            unreadable::Seen::Apply(object) => handle(Seen::There(object)),
            unreadable::Seen::Delete(object) => handle(Seen::Gone(object)),
            unreadable::Seen::DeleteUnread(metadata) => {
                handle(Seen::GoneUnread(metadata.name.unwrap_or_default()));
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
                Seen::There(class) => {
                    let name = class.name_any();
                    index.classes.insert(name.clone(), class);
                    vec![name]
                }
                Seen::Gone(class) => {
                    index.classes.remove(&class.name_any());
                    vec![class.name_any()]
                }
                Seen::GoneUnread(name) => {
                    index.classes.remove(&name);
                    vec![name]
                }
                Seen::All(names) => {
                    index.classes_are_listed = true;
                    missing(&mut index.classes, &names)
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
                Seen::There(machine) => {
                    let name = machine.name_any();
                    self.store.noticed(&machine);
                    index.machines.insert(name.clone(), Machine::of(&machine));
                    self.agenda.plan_now(Key::Machine(name));
                    Vec::new()
                }
                Seen::Gone(machine) => {
                    let name = machine.name_any();
                    index.machines.remove(&name);
                    self.agenda.plan_now(Key::Class(machine.spec.node_class));
                    vec![name]
                }
                Seen::GoneUnread(name) => {
                    if let Some(machine) = index.machines.remove(&name) {
                        self.agenda.plan_now(Key::Class(machine.class));
                    }
                    vec![name]
                }
                Seen::All(names) => {
                    index.machines_are_listed = true;
                    missing(&mut index.machines, &names)
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
                Seen::There(claim) => {
                    let Some(known) = Claim::of(&claim) else { return };
                    let name = claim.name_any();
                    let before = index.claims.insert(name.clone(), known.clone());
                    // Most changes of a claim are none to its machine.
                    if before.as_ref() == Some(&known) {
                        return;
                    }
                    vec![name]
                }
                Seen::Gone(claim) => gone(&mut index, claim.name_any()),
                Seen::GoneUnread(name) => gone(&mut index, name),
                Seen::All(names) => {
                    index.claims_are_listed = true;
                    let machines = index.machines.keys().cloned();
                    for machine in machines.collect::<Vec<_>>() {
                        self.agenda.plan_now(Key::Machine(machine));
                    }
                    missing(&mut index.claims, &names)
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
            Seen::There(node) => {
                if let Some(visit) = self.visitor(&node) {
                    self.agenda.plan_now(Key::Node(visit));
                }
            }
            Seen::Gone(node) => drop(self.greeted().remove(&node.name_any())),
            Seen::GoneUnread(name) => drop(self.greeted().remove(&name)),
            Seen::All(names) => self.greeted().retain(|name| names.contains(name)),
        })
        .await;
    }
}

/// Drops what is not among all there are; its names.
fn missing<T>(
    known: &mut std::collections::BTreeMap<String, T>,
    all: &BTreeSet<String>,
) -> Vec<String> {
    let gone: Vec<String> = known.keys().filter(|name| !all.contains(*name)).cloned().collect();
    for name in &gone {
        known.remove(name);
    }
    gone
}
