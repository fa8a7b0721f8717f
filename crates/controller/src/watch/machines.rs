//! Watches of Cluster API: Machines, the provider's objects behind them, and where clusters are.

use std::collections::HashSet;

use bringup_objects::cluster_api::{AzureCluster, AzureMachine, Machine};
use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};

use super::Watches;
use crate::health::Right;
use crate::kinds::{machine_resource, provided_resource, read};
use crate::machines::PROVIDED;
use crate::subject::{Kind, Subject};

/// The definitions whose absence is said.
const SAID: [&str; 2] = ["Machine", PROVIDED[0]];

impl Watches {
    /// Watches everything of Cluster API, for ever. Where it is not installed, that is said, and it is
    /// noticed when it is.
    pub(super) async fn cluster_api(&self) {
        tokio::join!(
            self.machines(),
            self.provided(PROVIDED[0]),
            self.provided(PROVIDED[1]),
            self.azure_clusters()
        );
    }

    async fn machines(&self) {
        let land = &self.kinds.land;
        let mut uids = HashSet::new();
        self.follow_any(&machine_resource(), Right::Machines, |event| match event {
            Event::Init => uids.clear(),
            Event::InitApply(object) => {
                uids.extend(object.uid());
                self.plan_subject(read::<Machine>(object).and_then(|it| land.machine_seen(it)));
            }
            Event::InitDone => self.plan(self.cluster.only(Kind::Machine, &uids)),
            Event::Apply(object) => {
                self.plan_subject(read::<Machine>(object).and_then(|it| land.machine_seen(it)));
            }
            Event::Delete(object) => {
                let Some(machine) = read::<Machine>(object) else { return };
                // Its last state, with the moment of its deletion, counts.
                if let Some(subject) = land.machine_seen(machine.clone()) {
                    self.cluster.seen(subject);
                }
                land.machine_gone(&machine);
                self.plan(machine.metadata.uid.as_deref().and_then(|uid| self.cluster.gone(uid)));
            }
        })
        .await;
    }

    async fn provided(&self, kind: &str) {
        let land = &self.kinds.land;
        self.follow_any(&provided_resource(kind), Right::Provided, |event| match event {
            Event::InitApply(object) | Event::Apply(object) => {
                let object = read::<AzureMachine>(object);
                self.plan_subject(object.and_then(|object| land.provided_seen(kind, object)));
            }
            Event::Delete(object) => {
                if let Some(object) = read::<AzureMachine>(object) {
                    land.provided_gone(kind, &object);
                }
            }
            Event::Init | Event::InitDone => {}
        })
        .await;
    }

    async fn azure_clusters(&self) {
        let resource = provided_resource("AzureCluster");
        self.follow_any(&resource, Right::Provided, |event| {
            let (Event::InitApply(object) | Event::Apply(object)) = event else { return };
            let Some(cluster) = read::<AzureCluster>(object) else { return };
            for subject in self.kinds.land.cluster_seen(&cluster) {
                self.plan_subject(Some(subject));
            }
        })
        .await;
    }

    fn plan_subject(&self, subject: Option<Subject>) {
        self.plan(subject.and_then(|subject| self.cluster.seen(subject)));
    }

    /// Follows one kind of object that we have no type for.
    async fn follow_any(
        &self,
        resource: &ApiResource,
        right: Right,
        mut handle: impl FnMut(Event<DynamicObject>),
    ) {
        let api: Api<DynamicObject> = match &self.only_namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let stream = watcher(api, Config::default()).default_backoff();
        let mut stream = std::pin::pin!(stream);
        while let Some(next) = stream.next().await {
            match next {
                Ok(event) => {
                    // `Init` comes before anything was asked.
                    if !matches!(event, Event::Init) {
                        self.health.may(right);
                        self.health.waits(right.name(), None);
                    }
                    handle(event);
                }
                // What comes with another definition is not said beside it.
                Err(Error::InitialListFailed(kube::Error::Api(status)))
                    if status.code == 404 && !SAID.contains(&resource.kind.as_str()) => {}
                Err(error) => self.trouble(right, &resource.kind, error),
            }
        }
    }
}
