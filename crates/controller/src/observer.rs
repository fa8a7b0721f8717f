//! The shell around [`crate::plan`]: takes whoever is due, looks at everything, does one step.

use std::sync::Arc;

use bringup_azure::Priority;
use bringup_azure::clock::Clock;
use bringup_objects::cluster_api::AnyCondition;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, find};
use bringup_objects::report::BootstrapReport;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use tracing::warn;

use crate::agenda::Agenda;
use crate::cluster::{Cluster, Entry, Key};
use crate::collect::Collect;
use crate::faces::{events, report};
use crate::health::advice;
use crate::kinds;
use crate::listening::{Heard, Lines};
use crate::log;
use crate::lost::ActivityMemo;
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::plan::Step;
use crate::settings::Settings;
use crate::subject::{Kind, Subject};
use crate::view::View;
use crate::watch::Watches;
use crate::writer::{Writer, Written};

/// How many are worked on at once: more than are ever pending. Nearly all of them wait for their
/// turn to read, in ten kilobytes each; whoever is urgent must not wait behind them for a place.
const AT_ONCE: usize = 16_384;
/// How soon after a new report it is seen whether there are too many.
const SWEEP_SOON: SignedDuration = SignedDuration::from_secs(5);
/// The pauses after errors, and between writes of a condition that somebody keeps dropping.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// When to come back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    Now,
    At(Timestamp),
    Never,
}

/// Observes.
pub struct Observer {
    pub(crate) settings: Settings,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) agenda: Arc<Agenda<Key>>,
    pub(crate) collect: Collect,
    pub(crate) writer: Writer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) watches: Watches,
    pub(crate) activity: ActivityMemo,
    pub(crate) lines: Lines,
    memories: Memories,
}

impl Observer {
    /// Puts an observer together.
    pub fn new(
        settings: Settings,
        watches: Watches,
        collect: Collect,
        writer: Writer,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Self {
        Self {
            settings,
            cluster: watches.cluster.clone(),
            agenda: watches.agenda.clone(),
            collect,
            writer,
            clock,
            metrics,
            watches,
            activity: ActivityMemo::default(),
            lines: Lines::default(),
            memories: Memories::default(),
        }
    }

    /// Observes for ever. Dropped, everything it does is dropped with it.
    pub async fn run(&self) {
        tokio::join!(self.watches.run(), self.work());
    }

    async fn work(&self) {
        let mut listed = self.watches.ready.subscribe();
        // The sender lives as long as we do.
        let _ = listed.wait_for(|listed| listed.is_enough()).await;
        self.agenda.plan_now(Key::Sweep);
        let mut working = FuturesUnordered::new();
        loop {
            tokio::select! {
                key = self.agenda.next(), if working.len() < AT_ONCE => {
                    working.push(self.attend(key));
                }
                Some(()) = working.next(), if !working.is_empty() => {}
            }
        }
    }

    async fn attend(&self, key: Key) {
        let next = match &key {
            Key::Subject(uid) => self.subject(uid).await,
            Key::Report(name) => self.report(name).await,
            Key::Sweep => self.sweep().await,
        };
        let next = match next {
            Ok(next) => next,
            Err(error) => self.pause(&key, &error),
        };
        let at = match next {
            Next::Now => Some(self.clock.now()),
            Next::At(at) => Some(at),
            Next::Never => None,
        };
        self.agenda.done(&key, at);
    }

    /// After an error: later, and later each time.
    fn pause(&self, key: &Key, error: &kube::Error) -> Next {
        warn!(?key, error = %advice(error), "a step failed; trying again");
        let errors = match key {
            Key::Subject(uid) => self.memories.failed(uid),
            Key::Report(_) | Key::Sweep => 3,
        };
        Next::At(self.clock.now() + growing(errors))
    }

    async fn subject(&self, uid: &str) -> kube::Result<Next> {
        let Some(view) = self.view(uid) else {
            self.memories.forget(uid);
            self.lines.hang_up(uid);
            return Ok(Next::Never);
        };
        let step = view.snapshot(self.clock.now(), &self.settings.namespace).next_step();
        let View { subject, departed, node, report, signal, memory, .. } = view;
        let observation = memory.observation;
        let is_up = node.as_deref().is_some_and(bringup_objects::Node::is_ready)
            || subject.registered.is_some();
        if is_up {
            self.lines.hang_up(uid);
        }
        let next = match step {
            Step::Rest => {
                if departed {
                    self.cluster.forget(uid);
                    // What is still to be done about its report is not its business any more.
                    if let Some(report) = report {
                        self.agenda.plan_now(Key::Report(report.name_any()));
                    }
                }
                self.memories.settle(uid, departed, is_up);
                self.lines.hang_up(uid);
                return Ok(Next::Never);
            }
            Step::Wait(until) => return Ok(Next::At(until)),
            Step::Look(priority) => {
                // Who is told of first is read first, however many are told of at once.
                let since = match &signal {
                    Some(signal) if memory.looks.signalled == 0 => signal.heard,
                    _ => self.clock.now(),
                };
                let look =
                    self.collect.look(&subject, observation, signal.as_ref(), priority, since);
                let goes_on = |step: &Step| match step {
                    Step::Look(other) => *other >= priority,
                    // What is about to be gone is read before anything is written.
                    Step::Apply(_) => priority < Priority::Forced,
                    _ => false,
                };
                let Some(seen) = self.as_long_as(uid, goes_on, look).await else {
                    return Ok(Next::Now);
                };
                self.memories.remember(uid, |memory| {
                    if is_up {
                        memory.looks.joined += 1;
                    } else {
                        memory.looks.pending += 1;
                    }
                    memory.looks.signalled += usize::from(signal.is_some());
                    memory.looks.told_of = subject.told_of;
                    memory.looks.deleting += usize::from(departed || subject.deleting.is_some());
                    memory.observation = Some(seen);
                });
                self.lines.follow(uid, Heard::Failure, Heard::Followed);
                Next::Now
            }
            Step::Deepen(priority) => {
                let seen = observation.unwrap_or_default();
                let seen = self.collect.deepen(&subject, seen, node.as_deref(), priority).await;
                self.memories.remember(uid, |memory| memory.observation = Some(seen));
                // Should no verdict come of it, it is not to alarm us with every new line.
                self.lines.follow(uid, Heard::Followed, Heard::Deaf);
                Next::Now
            }
            Step::Listen => self.listen(&subject).await,
            Step::Publish(report) => self.publish(&subject, *report).await?,
            Step::Revise(report) => self.revise(*report).await?,
            Step::Apply(conditions) => {
                let goes_on =
                    |step: &Step| !matches!(step, Step::Look(Priority::Event | Priority::Deletion));
                let apply = self.apply(&subject, conditions);
                self.as_long_as(uid, goes_on, apply).await.unwrap_or(Ok(Next::Now))?
            }
            Step::Warn => self.warn(&subject).await?,
            Step::Mirror(condition) => self.mirror(&subject, &condition).await?,
            Step::Announce => match report {
                Some(report) => self.announce(&report).await?,
                None => Next::Never,
            },
        };
        self.memories.remember(uid, |memory| memory.errors = 0);
        Ok(next)
    }

    /// Everything that is seen of a subject now.
    fn view(&self, uid: &str) -> Option<View> {
        let Entry { subject, departed } = self.cluster.subject(uid)?;
        let (subject, memory) = self.memories.recall(subject);
        Some(View {
            departed,
            node: self.cluster.node_of(&subject),
            report: self.cluster.report_of(&subject.uid),
            signal: self.cluster.signal_of(&subject.uid),
            alike: self.cluster.alike(&subject),
            ear: self.lines.ear(&subject.uid),
            subject,
            memory,
        })
    }

    /// What work brings that may have to wait for its turn, unless something else has to be done
    /// first by now: Karpenter says that it failed, it is being deleted, its Node has come.
    pub(crate) async fn as_long_as<T>(
        &self,
        uid: &str,
        goes_on: impl Fn(&Step) -> bool,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let key = Key::Subject(uid.to_owned());
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.agenda.recalled(&key) => {}
            }
            let view = self.view(uid)?;
            let step = view.snapshot(self.clock.now(), &self.settings.namespace).next_step();
            if !goes_on(&step) {
                return None;
            }
        }
    }

    /// Creates the report, unless what it says is no longer so: a last look at claim and Node.
    async fn publish(&self, subject: &Subject, mut report: BootstrapReport) -> kube::Result<Next> {
        if self.has_turned(subject, &report).await? {
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
                // Soon, and once for all who are reported meanwhile: it looks at every report.
                self.agenda.plan(Key::Sweep, self.clock.now() + SWEEP_SOON);
            }
            Written::Stale(report) => drop(self.cluster.report_seen(report)),
            Written::Gone => {}
        }
        Ok(Next::Now)
    }

    /// An object was read: it is what its subject is now.
    fn seen(&self, kind: Kind, object: DynamicObject) {
        if let Some(subject) = self.watches.kinds.subject(kind, object) {
            self.cluster.seen(subject);
        }
    }

    /// Whether the claim or the Node say something else now than when the verdict was made.
    async fn has_turned(&self, subject: &Subject, report: &BootstrapReport) -> kube::Result<bool> {
        let object = self.writer.read_again(subject).await?;
        match object.filter(|object| object.metadata.uid.as_deref() == Some(&subject.uid)) {
            Some(object) => {
                let before = self.cluster.subject(&subject.uid);
                self.seen(subject.kind, object);
                let after = self.cluster.subject(&subject.uid);
                let turned = |entry: Option<Entry>| {
                    entry.map(|entry| {
                        (entry.subject.registered, entry.subject.deleting, entry.departed)
                    })
                };
                if turned(before) != turned(after) {
                    return Ok(true);
                }
            }
            None => {
                self.cluster.gone(&subject.uid);
            }
        }
        if subject.kind == Kind::Machine {
            return Ok(false); // its Node is in another cluster
        }
        let Some(name) = &report.spec.node_name else { return Ok(false) };
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

    /// Writes a report anew; whether it was us is answered.
    async fn replace(&self, report: BootstrapReport) -> kube::Result<bool> {
        let (present, is_ours) = match self.writer.replace_report(&report).await? {
            Written::Done(report) => (report, true),
            Written::Stale(report) => (report, false),
            Written::Gone => {
                self.cluster.report_gone(&report.name_any());
                return Ok(false);
            }
        };
        for key in self.cluster.report_seen(present) {
            self.agenda.plan_now(key);
        }
        Ok(is_ours)
    }

    async fn apply(&self, subject: &Subject, conditions: Vec<Condition>) -> kube::Result<Next> {
        let now = self.clock.now();
        // What was there before was dropped by somebody, or it is new.
        let verdict = find(&conditions, BOOTSTRAP_SUCCEEDED);
        let uid = &subject.uid;
        let times = match self.memories.applied(uid) {
            Some((at, times)) if now < at + LONGEST_PAUSE => {
                let earliest = if times > 1 { at + growing(times - 1) } else { at };
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
                    self.seen(subject.kind, object);
                }
                let quick = if is_reassertion { times } else { 1 };
                self.memories.remember(uid, |memory| memory.applied = Some((now, quick)));
                if is_reassertion {
                    self.metrics.reasserted();
                } else if let Some(verdict) = verdict {
                    self.metrics.told(subject, verdict, now);
                }
            }
            Written::Stale(object) => self.seen(subject.kind, object),
            Written::Gone => drop(self.cluster.gone(uid)),
        }
        Ok(Next::Now)
    }

    /// Says that a subject has no room for what is to be said of it.
    async fn warn(&self, subject: &Subject) -> kube::Result<Next> {
        let event = events::no_room(subject, &self.settings.identity, self.clock.now());
        self.writer.create_event(&event).await?;
        self.memories.remember(&subject.uid, |memory| memory.warned = true);
        Ok(Next::Now)
    }

    /// Says the same on the provider's object.
    async fn mirror(&self, subject: &Subject, condition: &AnyCondition) -> kube::Result<Next> {
        if self.settings.dry_run {
            return Ok(Next::Never);
        }
        let Some(mirror) = &subject.mirror else { return Ok(Next::Never) };
        if let Some(object) = self.writer.mirror(subject, mirror, condition).await?
            && let Some(object) = kinds::read(object)
            && let Some(subject) =
                self.watches.kinds.land.provided_seen(&mirror.shape.resource.kind, object)
        {
            self.cluster.seen(subject);
        }
        Ok(Next::Now)
    }

    /// Makes the Events, then notes that they exist. Each is the same whoever makes it.
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
            let count = self.alike(report);
            self.writer.create_or_count_event(&event, count).await?;
        }
        // Said and counted by whoever noted it: a second one finds it noted.
        if self.replace(report::announced(report, now)).await? {
            log::verdict(report);
            self.metrics.announced(report, now);
        }
        Ok(Next::Now)
    }

    /// How many reports share one Event: counted from the reports, so that nobody counts twice.
    fn alike(&self, report: &BootstrapReport) -> i32 {
        let wanted = events::shared(report);
        let reports = self.cluster.reports();
        let alike = reports.iter().filter(|other| events::shared(other) == wanted).count();
        i32::try_from(alike).unwrap_or(i32::MAX)
    }
}

/// A pause that doubles each time.
fn growing(times: u32) -> SignedDuration {
    let factor = 1_i32 << times.saturating_sub(1).min(5);
    (SHORTEST_PAUSE * factor).min(LONGEST_PAUSE)
}
