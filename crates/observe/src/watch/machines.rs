//! Watches of Cluster API: Machines, the provider's objects behind them, and the objects that Machines share.

use std::collections::HashSet;
use std::fmt::Debug;

use bringup_contract::bounds::TimeMath as _;
use bringup_objects::Readable;
use bringup_objects::cluster_api::{
    AzureCluster, AzureMachine, AzureMachinePool, Cluster, Machine,
};
use bringup_runtime::rights::Right;
use bringup_runtime::unreadable::{Seen, Unreadable};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::Watches;
use crate::machines::{INFRA_KINDS, Named, SharedObject};
use crate::profile::Kind;
use crate::shape::{MACHINE, Schemas, Shape};
use crate::subject::Subject;

/// The definitions whose absence is reported.
const SAID: [&str; 2] = [MACHINE, INFRA_KINDS[0]];
/// The longest pause between two reads of the published schemas.
const SCHEMAS_EACH: SignedDuration = SignedDuration::from_mins(5);
/// The pause if a served kind has no published schema yet.
const SCHEMAS_SOON: SignedDuration = SignedDuration::from_secs(5);

impl Watches {
    /// Watches all objects of Cluster API until the returned future is dropped. If Cluster API is not
    /// installed, the watches report that, and start once it is installed.
    pub(super) async fn cluster_api(&self) {
        let mut schemas = Schemas::default();
        let next = self.learn(&mut schemas).await;
        tokio::join!(
            self.machines(),
            self.infra_machines(INFRA_KINDS[0], Right::InfraMachines),
            self.infra_machines(INFRA_KINDS[1], Right::PoolMachines),
            self.shared_objects::<Cluster>(Right::Clusters),
            self.shared_objects::<AzureCluster>(Right::InfraClusters),
            self.shared_objects::<AzureMachinePool>(Right::Pools),
            self.keep_learning(schemas, next)
        );
    }

    /// Reads the schemas of conditions, and returns when to read them again. If the read fails, the earlier
    /// schemas stay.
    async fn learn(&self, schemas: &mut Schemas) -> Timestamp {
        let learnt = schemas.refresh(&self.client, &self.kinds.machines.shapes).await;
        match &learnt {
            Ok(_) => self.health.may(Right::Schemas),
            Err(error) => self.health.failed(Right::Schemas, error),
        }
        let is_complete = learnt.unwrap_or(true);
        self.clock.now().plus(if is_complete { SCHEMAS_EACH } else { SCHEMAS_SOON })
    }

    async fn keep_learning(&self, mut schemas: Schemas, mut next: Timestamp) {
        loop {
            tokio::select! {
                () = self.clock.reach(next) => {}
                () = self.kinds.machines.shapes.doubted() => {}
            }
            next = self.learn(&mut schemas).await;
        }
    }

    async fn machines(&self) {
        let machines = &self.kinds.machines;
        let mut uids = HashSet::new();
        self.follow_any(MACHINE, Right::Machines, |event: Seen<Machine>| match event {
            Seen::Init => uids.clear(),
            Seen::InitApply(machine) => {
                uids.extend(machine.uid());
                self.plan_subject(machines.machine_seen(machine));
            }
            Seen::InitDone => {
                let uids = std::mem::take(&mut uids);
                machines.only_machines(&uids);
                self.plan(self.cluster.only(Kind::Machine, &uids));
                self.all_known(Kind::Machine);
            }
            Seen::Apply(machine) => self.plan_subject(machines.machine_seen(machine)),
            Seen::Delete(machine) => {
                // The Machine's last state contains the time of its deletion.
                if let Some(subject) = machines.machine_seen(machine.clone()) {
                    self.cluster.seen(subject);
                }
                machines.machine_gone(&machine);
                self.plan(machine.metadata.uid.as_deref().and_then(|uid| self.cluster.gone(uid)));
            }
            Seen::Unread(metadata) | Seen::DeleteUnread(metadata) => {
                self.forget(metadata.uid.clone());
                machines.machine_gone(&Machine { metadata: *metadata, ..Machine::default() });
            }
        })
        .await;
    }

    async fn infra_machines(&self, kind: &'static str, right: Right) {
        let machines = &self.kinds.machines;
        let mut names = HashSet::new();
        self.follow_any(kind, right, |event: Seen<AzureMachine>| match event {
            Seen::Init => names.clear(),
            Seen::InitApply(object) => {
                names.insert(name_of(&object));
                self.plan_subject(machines.infra_machine_seen(kind, object));
            }
            Seen::InitDone => machines.only_infra_machines(kind, &std::mem::take(&mut names)),
            Seen::Apply(object) => self.plan_subject(machines.infra_machine_seen(kind, object)),
            Seen::Delete(object) => self.plan_subject(machines.infra_machine_gone(kind, &object)),
            Seen::Unread(metadata) | Seen::DeleteUnread(metadata) => {
                let object = AzureMachine { metadata: *metadata, ..AzureMachine::default() };
                self.plan_subject(machines.infra_machine_gone(kind, &object));
            }
        })
        .await;
    }

    /// Watches one kind of object that many Machines share.
    async fn shared_objects<A: SharedObject + Followed>(&self, right: Right) {
        let machines = &self.kinds.machines;
        let mut names = HashSet::new();
        self.follow_any(A::KIND, right, |event: Seen<A>| {
            let changed = match event {
                Seen::Init => {
                    names.clear();
                    Vec::new()
                }
                Seen::InitApply(object) => {
                    names.insert(name_of(&object));
                    machines.shared_seen(object)
                }
                // The object cannot be parsed. Its last record stays, because that record may show that the
                // Cluster is paused.
                Seen::Unread(metadata) => {
                    names.insert(name_in(&metadata));
                    Vec::new()
                }
                Seen::InitDone => {
                    let mut changed = machines.only_shared::<A>(&std::mem::take(&mut names));
                    changed.extend(machines.listed(A::KIND));
                    changed
                }
                Seen::Apply(object) => machines.shared_seen(object),
                Seen::Delete(object) => machines.shared_gone::<A>(&name_of(&object)),
                Seen::DeleteUnread(metadata) => machines.shared_gone::<A>(&name_in(&metadata)),
            };
            self.plan_subjects(changed);
        })
        .await;
    }

    fn plan_subjects(&self, subjects: Vec<Subject>) {
        for subject in subjects {
            self.plan_subject(Some(subject));
        }
    }

    fn plan_subject(&self, subject: Option<Subject>) {
        self.plan(subject.and_then(|subject| self.cluster.seen(subject)));
    }

    /// Watches one kind of object in the version that is served. Starts again whenever the kind's definition
    /// changes.
    async fn follow_any<K>(&self, kind: &'static str, right: Right, mut handle: impl FnMut(Seen<K>))
    where
        K: Followed,
    {
        let shapes = &self.kinds.machines.shapes;
        loop {
            let shape = shapes.of(kind);
            tokio::select! {
                () = self.follow_as(&shape, right, &mut handle) => {}
                () = shapes.other_than(&shape) => {}
            }
        }
    }

    async fn follow_as<K>(&self, shape: &Shape, right: Right, handle: &mut impl FnMut(Seen<K>))
    where
        K: Followed,
    {
        let resource = &shape.resource;
        let api: Api<Readable<K>> = match &self.only_namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let mut unreadable = Unreadable::default();
        let stream = watcher(api, Config::default()).default_backoff();
        let mut stream = std::pin::pin!(stream);
        while let Some(next) = stream.next().await {
            match next {
                Ok(event) => {
                    // `Init` arrives before any request is sent.
                    if !matches!(event, Event::Init) {
                        self.health.may(right);
                        self.health.waits(right.name(), None);
                    }
                    handle(unreadable.pass(&resource.kind, event));
                }
                Err(error) => {
                    let is_absent = is_answered(&error, &[404]);
                    if is_answered(&error, &[403, 404]) {
                        // A kind that cannot be listed counts as listed, so that no decision waits for it.
                        self.plan_subjects(self.kinds.machines.listed(&resource.kind));
                    }
                    if is_absent {
                        // The kind may be served in another version.
                        self.kinds.machines.shapes.doubt();
                    }
                    // Several definitions are installed together, so one message about their absence is
                    // enough.
                    if !is_absent || SAID.contains(&resource.kind.as_str()) {
                        self.trouble(right, &resource.kind, error);
                    }
                }
            }
        }
    }
}

/// A kind that can be watched in any version that is served.
trait Followed:
    Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
    + Clone
    + DeserializeOwned
    + Debug
    + Send
    + 'static
{
}

impl<K> Followed for K where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static
{
}

fn name_of(object: &impl Resource) -> Named {
    name_in(object.meta())
}

fn name_in(metadata: &ObjectMeta) -> Named {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// Whether the API server answered with one of these status codes.
fn is_answered(error: &Error, codes: &[u16]) -> bool {
    let (Error::InitialListFailed(error)
    | Error::WatchStartFailed(error)
    | Error::WatchFailed(error)) = error
    else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if codes.contains(&status.code))
}
