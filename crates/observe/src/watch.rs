//! Watches: every change in Kubernetes updates the index, and the affected keys are scheduled.

mod machines;
mod trust;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use bringup_azure::clock::Clock;
use bringup_diagnosis::redaction::redact;
use bringup_objects::report::BootstrapReport;
use bringup_objects::{Node, NodeClaim, Readable};
use bringup_runtime::agenda::Agenda;
use bringup_runtime::health::Health;
use bringup_runtime::rights::Right;
use bringup_runtime::unreadable::{Seen, Unreadable};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event as KubernetesEvent;
use kube::runtime::watcher::{Config, Error, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::cluster::{Cluster, Key, ReportKey};
use crate::kinds::Kinds;
use crate::profile::Kind;
use crate::snapshot::Signal;
use crate::watch::trust::Foreign;

/// The reason of the Event with which Karpenter's Azure provider reports a failed VM, before it deletes the
/// VM.
const SIGNAL: &str = "AsyncProvisioningError";

/// The dependencies of the watches.
#[derive(Clone)]
pub struct Watches {
    /// The client of the API server.
    pub client: Client,
    /// The namespace of reports about cluster-scoped subjects.
    pub namespace: String,
    /// Converts objects to subjects.
    pub kinds: Kinds,
    /// Whether Machines of Cluster API are observed too. Their reports are in the Machines' own namespaces.
    pub machines: bool,
    /// If set, only Machines in this namespace are observed.
    pub only_namespace: Option<String>,
    /// The index that the watches update.
    pub cluster: Arc<Cluster>,
    /// The queue of keys to reconcile.
    pub agenda: Arc<Agenda<Key>>,
    /// Receives problems of the watches.
    pub health: Health,
    /// The source of the present time.
    pub clock: Arc<dyn Clock>,
    /// Which first lists are complete. The observer decides nothing before.
    pub ready: Arc<watch::Sender<Listed>>,
}

/// Which first lists are complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Whether the list of Nodes is complete.
    pub nodes: bool,
    /// Whether the list of reports is complete.
    pub reports: bool,
    /// The kinds whose list of subjects is complete, or that the controller does not observe.
    pub subjects: BTreeSet<Kind>,
}

impl Listed {
    /// Whether enough lists are complete to decide anything.
    pub fn is_enough(&self) -> bool {
        self.nodes && self.reports
    }

    /// Whether all subjects of a kind are known, so that an unknown subject does not exist.
    pub fn has_all_of(&self, kind: &str) -> bool {
        // A kind that bringup does not observe counts as known.
        Kind::named(kind).is_none_or(|kind| self.subjects.contains(&kind))
    }
}

impl Watches {
    /// Watches everything until the returned future is dropped.
    pub async fn run(&self) {
        let machines = async {
            if self.machines {
                Box::pin(self.cluster_api()).await;
            } else {
                self.all_known(Kind::Machine);
            }
        };
        tokio::join!(self.claims(), self.nodes(), self.reports(), self.events(), machines);
    }

    async fn claims(&self) {
        let api: Api<Readable<NodeClaim>> = Api::all(self.client.clone());
        let mut uids = HashSet::new();
        let seen = |claim: NodeClaim| {
            let subject = self.kinds.claim(&claim.trimmed());
            subject.and_then(|subject| self.cluster.seen(subject))
        };
        self.follow(api, Config::default(), Right::NodeClaims, |event| match event {
            Seen::Init => uids.clear(),
            Seen::InitApply(claim) => {
                uids.extend(claim.uid());
                self.plan(seen(claim));
            }
            Seen::InitDone => {
                self.plan(self.cluster.only(Kind::NodeClaim, &std::mem::take(&mut uids)));
                self.all_known(Kind::NodeClaim);
            }
            Seen::Apply(claim) => self.plan(seen(claim)),
            Seen::Delete(claim) => {
                let uid = claim.uid();
                // The claim's last state contains the time of its deletion.
                seen(claim);
                self.plan(uid.and_then(|uid| self.cluster.gone(&uid)));
            }
            Seen::Unread(metadata) | Seen::DeleteUnread(metadata) => self.forget(metadata.uid),
        })
        .await;
    }

    async fn nodes(&self) {
        let api: Api<Readable<Node>> = Api::all(self.client.clone());
        let mut names = HashSet::new();
        self.follow(api, Config::default(), Right::Nodes, |event| match event {
            Seen::Init => names.clear(),
            Seen::InitApply(node) => {
                names.insert(node.name_any());
                self.plan(self.cluster.node_seen(node.trimmed()));
            }
            // The Node exists, but cannot be parsed.
            Seen::Unread(metadata) => names.extend(metadata.name),
            Seen::InitDone => {
                self.plan(self.cluster.only_nodes(&std::mem::take(&mut names)));
                self.ready.send_modify(|listed| listed.nodes = true);
            }
            Seen::Apply(node) => self.plan(self.cluster.node_seen(node.trimmed())),
            Seen::Delete(node) => self.plan(self.cluster.node_gone(&node.name_any())),
            Seen::DeleteUnread(metadata) => {
                self.plan(metadata.name.and_then(|name| self.cluster.node_gone(&name)));
            }
        })
        .await;
    }

    async fn reports(&self) {
        let api: Api<Readable<BootstrapReport>> = if self.machines {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.namespace)
        };
        let mut keys = HashSet::new();
        let mut foreign = Foreign::default();
        self.follow(api, Config::default(), Right::Reports, |event| match event {
            Seen::Init => keys.clear(),
            Seen::InitApply(report) => {
                if foreign.ours(&report, &self.namespace) {
                    keys.insert(ReportKey::of(&report));
                    self.plan(self.cluster.report_seen(without_managers(report)));
                }
            }
            Seen::InitDone => {
                self.cluster.only_reports(&std::mem::take(&mut keys));
                self.ready.send_modify(|listed| listed.reports = true);
            }
            Seen::Apply(report) => {
                if foreign.ours(&report, &self.namespace) {
                    self.plan(self.cluster.report_seen(without_managers(report)));
                }
            }
            Seen::Delete(report) => self.cluster.report_gone(&ReportKey::of(&report)),
            Seen::Unread(metadata) | Seen::DeleteUnread(metadata) => {
                self.cluster.report_gone(&ReportKey::at(&metadata));
            }
        })
        .await;
    }

    async fn events(&self) {
        let api: Api<Readable<KubernetesEvent>> = Api::all(self.client.clone());
        let fields = format!("reason={SIGNAL},involvedObject.kind=NodeClaim");
        let mut uids = HashSet::new();
        self.follow(api, Config::default().fields(&fields), Right::Events, |event| match event {
            Seen::Init => uids.clear(),
            Seen::InitApply(event) => {
                uids.extend(event.involved_object.uid.clone());
                self.plan(self.signal(&event));
            }
            Seen::InitDone => self.cluster.only_signalled(&std::mem::take(&mut uids)),
            Seen::Apply(event) => self.plan(self.signal(&event)),
            Seen::Delete(event) => {
                if let Some(uid) = &event.involved_object.uid {
                    self.cluster.unsignalled(uid);
                }
            }
            // Without the Event's content, its claim is unknown.
            Seen::Unread(_) | Seen::DeleteUnread(_) => {}
        })
        .await;
    }

    fn signal(&self, event: &KubernetesEvent) -> Option<Key> {
        let about = &event.involved_object;
        let uid = about.uid.as_deref()?;
        let stamped =
            event.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0);
        let text = redact(event.message.as_deref().unwrap_or_default()).text.into_string();
        Some(self.cluster.signalled(uid, Signal { stamped, heard: self.agenda.now(), text }))
    }

    /// Records that all subjects of a kind are known: from now on, reports beyond the limits can be deleted.
    fn all_known(&self, kind: Kind) {
        self.ready.send_modify(|listed| listed.subjects.extend([kind]));
        self.agenda.plan_now(Key::Sweep);
    }

    /// Drops a subject that can no longer be parsed.
    fn forget(&self, uid: Option<String>) {
        if let Some(uid) = uid {
            self.cluster.forget(&uid);
            self.agenda.plan_now(Key::Subject(uid));
        }
    }

    fn plan(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.agenda.plan_now(key);
        }
    }

    /// Watches one kind of object, and retries after a pause when the watch fails.
    async fn follow<K>(
        &self,
        api: Api<Readable<K>>,
        config: Config,
        right: Right,
        mut handle: impl FnMut(Seen<K>),
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut unreadable = Unreadable::default();
        let stream = watcher(api, config).default_backoff();
        let mut stream = std::pin::pin!(stream.into_stream());
        while let Some(next) = stream.next().await {
            match next {
                Ok(event) => {
                    // `Init` arrives before any request is sent.
                    if !matches!(event, Event::Init) {
                        self.health.may(right);
                        self.health.waits(right.name(), None);
                    }
                    handle(unreadable.pass(&K::kind(&()), event));
                }
                Err(error) => self.trouble(right, &K::kind(&()), error),
            }
        }
    }

    fn trouble(&self, right: Right, kind: &str, error: Error) {
        match error {
            Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404 => {
                if right == Right::NodeClaims {
                    self.all_known(Kind::NodeClaim);
                }
                let why = format!("the definition of {kind} is not installed");
                self.health.waits(right.name(), Some(&why));
            }
            Error::InitialListFailed(error)
            | Error::WatchStartFailed(error)
            | Error::WatchFailed(error) => self.health.failed(right, &error),
            // kube restarts these watches itself.
            Error::WatchError(_) | Error::NoResourceVersion => {}
        }
    }
}

fn without_managers(mut report: BootstrapReport) -> BootstrapReport {
    report.metadata.managed_fields = None;
    report
}
