//! The effects of a step: reports, conditions and Events.

use bringup_contract::bounds::TimeMath as _;
use bringup_objects::cluster_api::AnyCondition;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, find};
use bringup_objects::report::BootstrapReport;
use bringup_runtime::health::advice;
use jiff::SignedDuration;
use kube::api::DynamicObject;
use tracing::warn;

use super::{LONGEST_PAUSE, Next, Observer, SHORTEST_PAUSE, growing};
use crate::cluster::{Entry, Key, ReportKey};
use crate::kinds;
use crate::log;
use crate::outputs::{events, report};
use crate::profile::{Kind, NodeLocation};
use crate::subject::Subject;
use crate::writer::Written;

/// How soon after a new report the limits on reports are checked.
const SWEEP_SOON: SignedDuration = SignedDuration::from_secs(5);

/// The most bytes in the name of a Kubernetes object.
const LONGEST_NAME: usize = 253;

impl Observer {
    /// Creates the report, unless the subject or its Node has changed since the verdict.
    pub(super) async fn publish(
        &self,
        subject: &Subject,
        mut report: BootstrapReport,
    ) -> kube::Result<Next> {
        if self.is_outdated(subject, &report).await? {
            return Ok(Next::Now);
        }
        if let Some(parent) = &subject.parent
            && let Some((api_version, uid)) = self.writer.parent(parent).await
        {
            report::own(&mut report, &api_version, &parent.kind, &parent.name, &uid);
        }
        match self.writer.create_report(&report).await? {
            Written::Done(report) => {
                self.cluster.report_seen(report);
                // Delayed, so that one sweep covers all subjects that are reported meanwhile: a sweep reads
                // every report.
                self.agenda.plan(Key::Sweep, self.clock.now().plus(SWEEP_SOON));
            }
            Written::Stale(report) => drop(self.cluster.report_seen(report)),
            Written::Gone => {}
        }
        Ok(Next::Now)
    }

    /// Stores an object that was just read as the present state of its subject.
    fn seen(&self, kind: Kind, object: DynamicObject) {
        if let Some(subject) = self.watches.kinds.subject(kind, object) {
            self.cluster.seen(subject);
        }
    }

    /// Whether the subject or its Node has changed since the verdict was made.
    async fn is_outdated(&self, subject: &Subject, report: &BootstrapReport) -> kube::Result<bool> {
        let object = self.writer.read_again(subject).await?;
        match object.filter(|object| object.metadata.uid.as_deref() == Some(&subject.uid)) {
            Some(object) => {
                let before = self.cluster.subject(&subject.uid);
                self.seen(subject.kind(), object);
                let after = self.cluster.subject(&subject.uid);
                let state = |entry: Option<Entry>| {
                    entry.map(|entry| {
                        (entry.subject.registered, entry.subject.deleting, entry.departed)
                    })
                };
                if state(before) != state(after) {
                    return Ok(true);
                }
            }
            None => {
                self.cluster.gone(&subject.uid);
            }
        }
        if subject.profile.node == NodeLocation::WorkloadCluster {
            return Ok(false); // its Node is in another cluster
        }
        // No Node has a longer name, and the API server refuses requests for longer names.
        let name = report.spec.node_name.as_ref().filter(|name| name.len() <= LONGEST_NAME);
        let Some(name) = name else { return Ok(false) };
        let node = self.writer.node(&name.to_ascii_lowercase()).await?;
        let ready = node.as_ref().is_some_and(bringup_objects::Node::is_ready);
        if let Some(node) = node {
            self.cluster.node_seen(node.trimmed());
        }
        Ok(ready)
    }

    pub(crate) async fn revise(&self, report: BootstrapReport) -> kube::Result<Next> {
        self.replace(report).await?;
        Ok(Next::Now)
    }

    /// Replaces a report; returns whether this process wrote it.
    async fn replace(&self, report: BootstrapReport) -> kube::Result<bool> {
        let (present, is_ours) = match self.writer.replace_report(&report).await? {
            Written::Done(report) => (report, true),
            Written::Stale(report) => (report, false),
            Written::Gone => {
                self.cluster.report_gone(&ReportKey::of(&report));
                return Ok(false);
            }
        };
        for key in self.cluster.report_seen(present) {
            self.agenda.plan_now(key);
        }
        Ok(is_ours)
    }

    pub(super) async fn apply(
        &self,
        subject: &Subject,
        conditions: Vec<Condition>,
    ) -> kube::Result<Next> {
        let now = self.clock.now();
        // The verdict is either new, or another writer had dropped it.
        let verdict = find(&conditions, BOOTSTRAP_SUCCEEDED);
        let uid = &subject.uid;
        let times = match self.memories.applied(uid) {
            Some((at, times)) if now < at.plus(LONGEST_PAUSE) => {
                let earliest = if times > 1 { at.plus(growing(times - 1)) } else { at };
                if now < earliest {
                    return Ok(Next::At(earliest));
                }
                times + 1
            }
            _ => 1,
        };
        let is_reassertion = subject.conditions.len() < conditions.len() && times > 1;
        match self.writer.apply_conditions(subject, &conditions).await? {
            Written::Done(object) => {
                if self.settings.dry_run {
                    let pretended = Some(conditions.clone());
                    self.memories.remember(uid, |memory| memory.pretended = pretended);
                } else {
                    self.seen(subject.kind(), object);
                }
                let quick = if is_reassertion { times } else { 1 };
                self.memories.remember(uid, |memory| memory.applied = Some((now, quick)));
                if is_reassertion {
                    self.metrics.reasserted();
                } else if let Some(verdict) = verdict {
                    self.metrics.told(subject, verdict, now);
                }
            }
            Written::Stale(object) => self.seen(subject.kind(), object),
            Written::Gone => drop(self.cluster.gone(uid)),
        }
        Ok(Next::Now)
    }

    /// Creates the Event that a subject has no room for our conditions.
    pub(super) async fn warn(&self, subject: &Subject) -> kube::Result<Next> {
        let event = events::no_room(subject, &self.settings.identity, self.clock.now());
        self.writer.create_event(&event).await?;
        self.memories.remember(&subject.uid, |memory| memory.warned = true);
        Ok(Next::Now)
    }

    /// Handles a failed write of conditions: each further attempt comes later. Meanwhile the subject is still
    /// observed and reported.
    pub(super) fn unless_refused(&self, uid: &str, written: kube::Result<Next>) -> Next {
        let refused = match written {
            Ok(next) => {
                self.memories.remember(uid, |memory| memory.refused = None);
                return next;
            }
            Err(error) => advice(&error),
        };
        warn!(uid, error = %refused, "writing conditions failed; retrying");
        let now = self.clock.now();
        self.memories.remember(uid, |memory| {
            let times = memory.refused.map_or(1, |(_, times)| times + 1);
            memory.refused = Some((now.plus(growing(times)), times));
        });
        Next::Now
    }

    /// Writes the verdict to the infrastructure machine as well.
    pub(super) async fn mirror(
        &self,
        subject: &Subject,
        condition: &AnyCondition,
    ) -> kube::Result<Next> {
        if self.settings.dry_run {
            return Ok(Next::Never);
        }
        let Some(mirror) = &subject.mirror else { return Ok(Next::Never) };
        let Some(written) = self.writer.mirror(subject, mirror, condition).await? else {
            // The infrastructure machine was deleted; the watch will deliver the deletion.
            return Ok(Next::At(self.clock.now().plus(SHORTEST_PAUSE)));
        };
        if let Some(object) = kinds::read(written)
            && let Some(subject) =
                self.watches.kinds.machines.infra_machine_seen(&mirror.shape.resource.kind, object)
        {
            self.cluster.seen(subject);
        }
        Ok(Next::Now)
    }

    /// Creates the Events, then records in the report that they exist. The Events are the same, whichever
    /// replica creates them.
    pub(crate) async fn announce(&self, report: &BootstrapReport) -> kube::Result<Next> {
        let now = self.clock.now();
        let instance = &self.settings.identity;
        if let Some(event) = events::on_target(report, instance, now) {
            self.writer.create_event(&event).await?;
        }
        let owner = report.metadata.owner_references.as_ref().and_then(|owners| owners.first());
        if let Some(owner) = owner
            && let Some(event) = events::on_parent(report, &owner.uid, instance, now)
        {
            let count = self.reports_sharing_event(report);
            self.writer.create_or_count_event(&event, count).await?;
        }
        // Only the replica that recorded the announcement logs and counts it.
        if self.replace(report::announced(report, now)).await? {
            log::verdict(report);
            self.metrics.announced(report, now);
        }
        Ok(Next::Now)
    }

    /// How many reports share one Event. The number comes from the reports themselves, so that no report
    /// counts twice.
    fn reports_sharing_event(&self, report: &BootstrapReport) -> i32 {
        let wanted = events::shared(report);
        let reports = self.cluster.reports();
        let sharing = reports.iter().filter(|other| events::shared(other) == wanted).count();
        i32::try_from(sharing).unwrap_or(i32::MAX)
    }
}
