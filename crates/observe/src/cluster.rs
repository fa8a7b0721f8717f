//! An index of the objects in Kubernetes that decisions need: claims, Machines, Nodes, reports, and
//! Karpenter's Events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_azure::id::Name;
use bringup_azure::{ProviderId, ResourceId};
use bringup_contract::bounds;
use bringup_objects::Node;
use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
use bringup_objects::report::BootstrapReport;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::profile::{Kind, NodeLocation};
use crate::snapshot::{Joined, Signal};
use crate::subject::{Place, Subject};

/// A unit of work that the controller reconciles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A subject, by its uid.
    Subject(String),
    /// A report whose subject may no longer exist, by namespace and name.
    Report(ReportKey),
    /// The deletion of reports that are too old or too many.
    Sweep,
}

/// The namespace and name of a report. The name alone is ambiguous: another namespace may contain the same
/// name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportKey {
    /// The report's namespace.
    pub namespace: String,
    /// The report's name.
    pub name: String,
}

impl ReportKey {
    /// The key of a report.
    pub fn of(report: &BootstrapReport) -> Self {
        Self { namespace: report.namespace().unwrap_or_default(), name: report.name_any() }
    }

    /// The key of a report of which only the metadata could be read.
    pub(crate) fn at(metadata: &ObjectMeta) -> Self {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}

/// A subject, and whether it still exists in Kubernetes.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The subject as it was last seen.
    pub subject: Arc<Subject>,
    /// Whether the subject no longer exists.
    pub departed: bool,
}

/// The index. Subjects are keyed by uid, because names are reused, also across kinds.
#[derive(Debug, Default)]
pub struct Cluster {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    subjects: HashMap<String, Entry>,
    /// The uid of a subject by its VM's provider ID in lower case.
    subject_at: HashMap<String, String>,
    nodes: HashMap<String, Arc<Node>>,
    node_at: HashMap<String, String>,
    /// The number of Nodes in each resource group: by subscription, then by group, in lower case.
    node_groups: HashMap<String, HashMap<String, usize>>,
    reports: HashMap<ReportKey, Arc<BootstrapReport>>,
    /// The keys of the reports whose target has this uid, in the order in which they were first seen.
    reports_about: HashMap<String, Vec<ReportKey>>,
    signals: HashMap<String, Signal>,
}

impl Cluster {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a subject. Returns its key, to be reconciled.
    pub fn seen(&self, subject: Subject) -> Option<Key> {
        let mut inner = self.lock();
        let known = inner.subjects.get(&subject.uid).map(|entry| &entry.subject);
        if known.is_some_and(|known| is_older(&subject.resource_version, &known.resource_version)) {
            return None;
        }
        let subject = subject.bounded();
        if let Place::Known(id) = &subject.place {
            inner.subject_at.insert(lower(&id.to_string()), subject.uid.clone());
        }
        let key = Key::Subject(subject.uid.clone());
        let entry = Entry { subject: Arc::new(subject), departed: false };
        inner.subjects.insert(entry.subject.uid.clone(), entry);
        Some(key)
    }

    /// Records that a subject was deleted. A subject whose Node had joined, or whose VM was never requested,
    /// is removed here. Its key is still returned, so that everything else that is stored about the subject
    /// is dropped too.
    pub fn gone(&self, uid: &str) -> Option<Key> {
        let mut inner = self.lock();
        let entry = inner.subjects.get_mut(uid)?;
        entry.departed = true;
        if !entry.subject.is_pending() {
            inner.forget(uid);
        }
        Some(Key::Subject(uid.to_owned()))
    }

    /// Records that the first list of a kind contains exactly these subjects: all others were deleted.
    pub fn only(&self, kind: Kind, uids: &HashSet<String>) -> Vec<Key> {
        let gone: Vec<String> = {
            let inner = self.lock();
            let entries = inner.subjects.iter().filter(|(_, entry)| !entry.departed);
            let of_kind = entries.filter(|(_, entry)| entry.subject.kind() == kind);
            of_kind.map(|(uid, _)| uid.clone()).filter(|uid| !uids.contains(uid)).collect()
        };
        gone.iter().filter_map(|uid| self.gone(uid)).collect()
    }

    /// Removes a subject that needs no more observation.
    pub fn forget(&self, uid: &str) {
        self.lock().forget(uid);
    }

    /// Stores a Node, and returns the key of the subject that the Node belongs to.
    pub fn node_seen(&self, node: Node) -> Option<Key> {
        let name = node.name_any();
        let mut inner = self.lock();
        let place = node.spec.provider_id.as_deref().map(lower);
        if let Some(place) = &place {
            inner.node_at.insert(place.clone(), name.clone());
        }
        let owner = place.and_then(|place| inner.subject_at.get(&place).cloned());
        let group = group_of(&node);
        let before = inner.nodes.insert(name, Arc::new(node));
        inner.not_in(before.as_deref().and_then(group_of));
        if let Some((subscription, group)) = group {
            let groups = inner.node_groups.entry(subscription).or_default();
            let count = groups.entry(group).or_default();
            *count = count.saturating_add(1);
        }
        owner.map(Key::Subject)
    }

    /// Removes a deleted Node, and returns the key of its subject.
    pub fn node_gone(&self, name: &str) -> Option<Key> {
        let mut inner = self.lock();
        let node = inner.nodes.remove(name)?;
        inner.not_in(group_of(&node));
        let place = node.spec.provider_id.as_deref().map(lower)?;
        inner.node_at.remove(&place);
        inner.subject_at.get(&place).cloned().map(Key::Subject)
    }

    /// Whether one of the cluster's Nodes is in a resource group of a subscription.
    pub fn has_node_in(&self, subscription: &Name, is: impl Fn(&str) -> bool) -> bool {
        let inner = self.lock();
        let groups = inner.node_groups.get(&lower(subscription.as_str()));
        groups.is_some_and(|groups| groups.keys().any(|group| is(group)))
    }

    /// Removes all Nodes but these, and returns the keys of their subjects.
    pub fn only_nodes(&self, names: &HashSet<String>) -> Vec<Key> {
        let gone: Vec<String> = {
            let inner = self.lock();
            inner.nodes.keys().filter(|name| !names.contains(*name)).cloned().collect()
        };
        gone.iter().filter_map(|name| self.node_gone(name)).collect()
    }

    /// Stores a report. Returns the keys that it affects.
    pub fn report_seen(&self, report: BootstrapReport) -> Vec<Key> {
        let report = bounded(report);
        let key = ReportKey::of(&report);
        let mut inner = self.lock();
        let version = |report: &BootstrapReport| report.resource_version().unwrap_or_default();
        let known = inner.reports.get(&key);
        if known.is_some_and(|known| is_older(&version(&report), &version(known))) {
            return Vec::new();
        }
        let uid = report.spec.target_ref.uid.clone();
        let before = known.map(|known| known.spec.target_ref.uid.clone());
        if let Some(before) = before.filter(|before| *before != uid) {
            inner.not_about(&before, &key);
        }
        let about = inner.reports_about.entry(uid.clone()).or_default();
        if !about.contains(&key) {
            about.push(key.clone());
        }
        inner.reports.insert(key.clone(), Arc::new(report));
        vec![Key::Subject(uid), Key::Report(key)]
    }

    /// Removes a deleted report.
    pub fn report_gone(&self, key: &ReportKey) {
        let mut inner = self.lock();
        if let Some(report) = inner.reports.remove(key) {
            inner.not_about(&report.spec.target_ref.uid, key);
        }
    }

    /// Removes all reports but these.
    pub fn only_reports(&self, keys: &HashSet<ReportKey>) {
        let gone: Vec<ReportKey> = {
            let inner = self.lock();
            inner.reports.keys().filter(|key| !keys.contains(key)).cloned().collect()
        };
        for key in gone {
            self.report_gone(&key);
        }
    }

    /// Stores Karpenter's Event that a claim's VM failed.
    pub fn signalled(&self, uid: &str, signal: Signal) -> Key {
        let mut inner = self.lock();
        let known = inner.signals.entry(uid.to_owned()).or_insert_with(|| signal.clone());
        if known.stamped > signal.stamped {
            *known = signal;
        }
        Key::Subject(uid.to_owned())
    }

    /// Records that Karpenter's Event was deleted. The stored text remains as long as the claim is known.
    pub fn unsignalled(&self, uid: &str) {
        let mut inner = self.lock();
        if !inner.subjects.contains_key(uid) {
            inner.signals.remove(uid);
        }
    }

    /// Records that Events from Karpenter exist for exactly these claims.
    pub fn only_signalled(&self, uids: &HashSet<String>) {
        let mut inner = self.lock();
        let Inner { subjects, signals, .. } = &mut *inner;
        signals.retain(|uid, _| uids.contains(uid) || subjects.contains_key(uid));
    }

    /// A subject by its uid.
    pub fn subject(&self, uid: &str) -> Option<Entry> {
        self.lock().subjects.get(uid).cloned()
    }

    /// The Node of a subject, found by the VM's ID or by the Node's name.
    pub fn node_of(&self, subject: &Subject) -> Option<Arc<Node>> {
        match subject.profile.node {
            NodeLocation::ThisCluster => {}
            NodeLocation::WorkloadCluster => return None,
        }
        let inner = self.lock();
        let by_place = match &subject.place {
            Place::Known(id) => inner.node_at.get(&lower(&id.to_string())),
            Place::NotSaid | Place::Malformed(_) => None,
        };
        let by_name = || {
            let name = subject.node_name.clone().or_else(|| subject.vm_name())?;
            inner.nodes.get(&name.to_ascii_lowercase())
        };
        by_place.and_then(|name| inner.nodes.get(name)).or_else(by_name).cloned()
    }

    /// The newest report of a subject: its target has the subject's kind and uid, and it is in the namespace
    /// where such reports belong.
    pub fn report_of(&self, subject: &Subject) -> Option<Arc<BootstrapReport>> {
        let mut about = self.reports_about(&subject.uid);
        about.retain(|report| {
            report.spec.target_ref.kind == subject.kind().word()
                && subject
                    .namespace
                    .as_ref()
                    .is_none_or(|own| report.namespace().as_ref() == Some(own))
        });
        // Names are stable, so an older report is about another VM.
        about.into_iter().max_by_key(|report| report.finished_at())
    }

    /// The reports whose target has this uid.
    pub fn reports_about(&self, uid: &str) -> Vec<Arc<BootstrapReport>> {
        let inner = self.lock();
        let about = inner.reports_about.get(uid).into_iter().flatten();
        about.filter_map(|key| inner.reports.get(key).cloned()).collect()
    }

    /// A report by its key.
    pub fn report(&self, key: &ReportKey) -> Option<Arc<BootstrapReport>> {
        self.lock().reports.get(key).cloned()
    }

    /// How many other subjects of this subject's parent failed, by cause. Only for machines, because a
    /// controller replaces them.
    pub fn alike(&self, subject: &Subject) -> HashMap<String, usize> {
        alike(subject, self.lock().reports.values().map(AsRef::as_ref))
    }

    /// All reports.
    pub fn reports(&self) -> Vec<Arc<BootstrapReport>> {
        self.lock().reports.values().cloned().collect()
    }

    /// Karpenter's Event about a subject.
    pub fn signal_of(&self, uid: &str) -> Option<Signal> {
        self.lock().signals.get(uid).cloned()
    }
}

impl Inner {
    /// Decrements the number of Nodes in a resource group.
    fn not_in(&mut self, group: Option<(String, String)>) {
        let Some((subscription, group)) = group else { return };
        if let Some(groups) = self.node_groups.get_mut(&subscription)
            && let Some(count) = groups.get_mut(&group)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                groups.remove(&group);
            }
        }
    }

    /// Removes a report from those about this uid.
    fn not_about(&mut self, uid: &str, key: &ReportKey) {
        if let Some(about) = self.reports_about.get_mut(uid) {
            about.retain(|known| known != key);
            if about.is_empty() {
                self.reports_about.remove(uid);
            }
        }
    }

    fn forget(&mut self, uid: &str) {
        let Some(entry) = self.subjects.remove(uid) else { return };
        self.signals.remove(uid);
        if let Place::Known(id) = &entry.subject.place {
            let place = lower(&id.to_string());
            // Another subject may have this provider ID by now.
            if self.subject_at.get(&place).is_some_and(|there| there == uid) {
                self.subject_at.remove(&place);
            }
        }
    }
}

/// The report with its times bounded: the API server would refuse to store it again otherwise.
fn bounded(mut report: BootstrapReport) -> BootstrapReport {
    let bound = |time: &mut Time| time.0 = bounds::time(time.0);
    report.spec.created_at.iter_mut().for_each(bound);
    let Some(status) = &mut report.status else { return report };
    status.finished_at.iter_mut().for_each(bound);
    if let Some(cse) = &mut status.cse {
        cse.started_at.iter_mut().chain(&mut cse.ended_at).for_each(bound);
    }
    let lines = status.root_evidence.iter_mut().chain(&mut status.evidence);
    lines.flat_map(|line| &mut line.at).for_each(bound);
    status.timeline.iter_mut().map(|moment| &mut moment.at).for_each(bound);
    status.conditions.iter_mut().map(|held| &mut held.last_transition_time).for_each(bound);
    report
}

/// Whether one version of an object is older than another. The answer to a write may arrive after the watch
/// has delivered a later version, and must not replace that version.
fn is_older(version: &str, known: &str) -> bool {
    match (version.parse::<u64>(), known.parse::<u64>()) {
        (Ok(version), Ok(known)) => version < known,
        // Versions that are not numbers cannot be compared.
        _ => false,
    }
}

/// How many other subjects of this subject's parent failed, by cause. Only for machines, because a controller
/// replaces them.
pub fn alike<'a>(
    subject: &Subject,
    reports: impl IntoIterator<Item = &'a BootstrapReport>,
) -> HashMap<String, usize> {
    let mut causes = HashMap::new();
    let can_be_replaced = subject.profile.bears(REPLACEMENT_USEFUL);
    let Some(parent) = subject.parent.as_ref().filter(|_| can_be_replaced) else {
        return causes;
    };
    for report in reports {
        let same = report.spec.parent_ref.as_ref().is_some_and(|known| {
            known.kind == parent.kind
                && known.name == parent.name
                && report.metadata.namespace == subject.namespace
        });
        if same && report.spec.target_ref.uid != subject.uid {
            let cause = report.cause().unwrap_or_default().to_owned();
            *causes.entry(cause).or_default() += 1;
        }
    }
    causes
}

/// A Node as the fields that a verdict needs.
pub fn joined(node: &Node) -> Joined {
    Joined { name: node.name_any(), ready: node.is_ready() }
}

fn group_of(node: &Node) -> Option<(String, String)> {
    let id: ProviderId = node.spec.provider_id.as_deref()?.parse().ok()?;
    let id = ResourceId::from(&id.instance);
    Some((lower(id.subscription().as_str()), lower(id.resource_group().as_str())))
}

fn lower(id: &str) -> String {
    id.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use bringup_objects::NodeClaim;
    use serde_json::json;

    use super::*;
    use crate::claims::{self, default_classes};

    fn claim(version: &str, uid: &str, conditions: &serde_json::Value) -> Subject {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": "a", "uid": uid, "resourceVersion": version },
            "spec": { "nodeClassRef": { "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "d" } },
            "status": { "conditions": conditions },
        }))
        .unwrap();
        claims::subject(&claim, &default_classes()).unwrap()
    }

    #[test]
    fn the_late_answer_to_a_write_does_not_undo_what_the_watch_has_told() {
        let cluster = Cluster::default();
        let ours = json!([{ "type": "BootstrapSucceeded", "status": "False", "reason": "X", "message": "", "lastTransitionTime": "2026-01-27T14:32:00Z" }]);
        let (written, wiped) = (claim("10", "u", &ours), claim("11", "u", &json!([])));
        assert!(cluster.seen(wiped).is_some());
        assert!(cluster.seen(written).is_none());
        assert!(cluster.subject("u").unwrap().subject.conditions.is_empty());
        let another = claim("9", "other", &ours);
        assert!(cluster.seen(another).is_some(), "another claim of that name");
    }

    #[test]
    fn a_claim_that_is_gone_is_kept_only_if_it_was_pending() {
        let cluster = Cluster::default();
        let launched = json!([{ "type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "2026-01-27T14:32:00Z" }]);
        cluster.seen(claim("1", "u", &json!([])));
        let key = Some(Key::Subject("u".to_owned()));
        assert_eq!(cluster.gone("u"), key, "who remembers something of it is to forget it");
        assert!(cluster.subject("u").is_none());
        assert_eq!(cluster.gone("u"), None, "it was told once");
        cluster.seen(claim("1", "u", &launched));
        assert_eq!(cluster.gone("other"), None, "it is another one's end");
        assert_eq!(cluster.gone("u"), key);
        assert!(cluster.subject("u").unwrap().departed);
    }

    #[test]
    fn what_karpenter_said_of_claims_that_nobody_knows_goes_with_its_events() {
        let cluster = Cluster::default();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let signal = Signal { stamped: at, heard: at, text: String::new() };
        cluster.seen(claim("1", "known", &json!([])));
        for uid in ["known", "over", "missed"] {
            cluster.signalled(uid, signal.clone());
        }
        cluster.unsignalled("known");
        cluster.unsignalled("over");
        let is_remembered = |uid: &str| cluster.signal_of(uid).is_some();
        assert!(is_remembered("known") && !is_remembered("over") && is_remembered("missed"));
        cluster.only_signalled(&HashSet::new());
        assert!(is_remembered("known") && !is_remembered("missed"));
    }
}
