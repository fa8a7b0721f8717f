//! The effectful part of [`crate::plan`]: takes the next key that is due, reads a snapshot, and does the one
//! step that follows from the snapshot.

mod effects;
mod looking;
mod reports;

use std::sync::Arc;

use bringup_azure::clock::Clock;
use bringup_azure::{Arm, Priority};
use bringup_contract::bounds::TimeMath as _;
use bringup_objects::report::BootstrapReport;
use bringup_runtime::agenda::Agenda;
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::{Health, Pulse, advice};
use bringup_runtime::set_aside::SetAside;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::watch;
use tracing::warn;

use self::reports::ActivityMemo;
use crate::cluster::{Cluster, Entry, Key, ReportKey, joined};
use crate::collect::Collect;
use crate::console_watch::{Finding, WatchedConsoles};
use crate::kinds::Kinds;
use crate::machines::MachineIndex;
use crate::memory::Memories;
use crate::metrics::ObserverMetrics;
use crate::plan::Step;
use crate::read_scope::ReadScope;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::watch::{Listed, Watches};
use crate::writer::Writer;

/// How many keys are reconciled at once: more subjects than are ever pending. Nearly all reconciliations wait
/// for their turn to read Azure, and each waiting one takes ten kilobytes of memory; an urgent one must not
/// wait behind them for a free slot.
const AT_ONCE: usize = 16_384;
/// The pauses after errors, and between writes of a condition that another writer keeps dropping.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// The pause after the API server refused a report as invalid.
const INVALID_PAUSE: SignedDuration = SignedDuration::from_mins(30);

/// When to reconcile a key again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    Now,
    At(Timestamp),
    Never,
}

/// Reconciles subjects and their reports: observes, decides, and does one effect at a time.
pub struct Observer {
    pub(crate) settings: Settings,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) agenda: Arc<Agenda<Key>>,
    pub(crate) collect: Collect,
    pub(crate) writer: Writer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: ObserverMetrics,
    pub(crate) watches: Watches,
    pub(crate) activity: ActivityMemo,
    pub(crate) consoles: WatchedConsoles,
    memories: Memories,
    set_aside: SetAside<Key>,
}

impl Observer {
    /// An observer that reads Azure with `arm`, and reports failed watches and missing rights to `health`.
    pub fn new(
        settings: Settings,
        client: Client,
        arm: Arm,
        clock: Arc<dyn Clock>,
        health: Health,
        hook: EffectHook,
        metrics: ObserverMetrics,
    ) -> Self {
        let cluster = Arc::new(Cluster::default());
        let agenda = Arc::new(Agenda::new(clock.clone()));
        let watches = Watches {
            client: client.clone(),
            namespace: settings.namespace.clone(),
            kinds: Kinds::new(
                settings.classes.clone(),
                MachineIndex::new(settings.machine_deadline),
            ),
            machines: settings.machines,
            only_namespace: settings.only_namespace.clone(),
            cluster: cluster.clone(),
            agenda: agenda.clone(),
            health: health.clone(),
            clock: clock.clone(),
            ready: Arc::new(watch::Sender::default()),
        };
        let reach = ReadScope::limited(
            settings.scopes.clone(),
            cluster.clone(),
            client.clone(),
            clock.clone(),
        );
        let collect =
            Collect::new(arm, client.clone(), clock.clone(), health.clone(), hook.clone())
                .with_signatures(settings.signatures.clone())
                .with_read_scope(reach);
        let writer = Writer::new(
            client,
            &settings.namespace,
            health,
            hook,
            metrics.clone(),
            clock.clone(),
            settings.dry_run,
        );
        Self {
            settings,
            cluster,
            agenda,
            collect,
            writer,
            clock,
            metrics,
            watches,
            activity: ActivityMemo::default(),
            consoles: WatchedConsoles::default(),
            memories: Memories::default(),
            set_aside: SetAside::default(),
        }
    }

    /// Runs until the returned future is dropped. Dropping the future cancels all work that is under way.
    pub async fn run(&self) {
        let _leading = self.metrics.lead(self.cluster.clone());
        tokio::join!(self.watches.run(), self.work());
    }

    async fn work(&self) {
        let mut listed = self.watches.ready.subscribe();
        // Cannot fail: `self` holds the sender.
        let _ = listed.wait_for(Listed::is_enough).await;
        self.agenda.plan_now(Key::Sweep);
        let mut working = FuturesUnordered::new();
        let pulse = self.watches.health.start_pulse();
        let mut beats = tokio::time::interval(Pulse::EACH);
        loop {
            tokio::select! {
                _ = beats.tick() => pulse.beat(),
                key = self.agenda.next(), if working.len() < AT_ONCE => {
                    working.push(self.reconcile(key));
                }
                Some(()) = working.next(), if !working.is_empty() => {}
            }
        }
    }

    /// Does one step for one key. A panic affects only that key: the key is set aside, longer after each
    /// panic, and the other keys continue.
    async fn reconcile(&self, key: Key) {
        let step = Box::pin(async {
            match &key {
                Key::Subject(uid) => self.subject(uid).await,
                Key::Report(name) => self.report(name).await,
                Key::Sweep => self.sweep().await,
            }
        });
        let now = self.clock.now();
        let next = match self.set_aside.guard(&key, now, self.metrics.panics(), step).await {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => self.pause(&key, &error),
            Err(until) => Next::At(until),
        };
        let at = match next {
            Next::Now => Some(self.clock.now()),
            Next::At(at) => Some(at),
            Next::Never => None,
        };
        self.agenda.done(&key, at);
    }

    /// The pause after an error doubles with each error in a row.
    fn pause(&self, key: &Key, error: &kube::Error) -> Next {
        warn!(?key, error = %advice(error), "reconcile failed; retrying");
        let pause = match key {
            Key::Subject(uid) => growing(self.memories.failed(uid)),
            // The API server refuses the stored content as invalid, so another attempt soon would fail too.
            Key::Report(_) if is_invalid(error) => INVALID_PAUSE,
            Key::Report(_) | Key::Sweep => growing(3),
        };
        Next::At(self.clock.now().plus(pause))
    }

    async fn subject(&self, uid: &str) -> kube::Result<Next> {
        let Some(snapshot) = self.snapshot(uid) else {
            self.memories.forget(uid);
            self.consoles.stop(uid);
            for report in self.cluster.reports_about(uid) {
                self.hand_over(Some(&report));
            }
            return Ok(Next::Never);
        };
        let (step, is_up) = (snapshot.next_step(), snapshot.is_up());
        let Snapshot { subject, departed, report, signal, observation, looks, .. } = snapshot;
        let observation = observation.map(Arc::unwrap_or_clone);
        if is_up {
            self.consoles.stop(uid);
        }
        let next = match step {
            Step::Rest => {
                if departed {
                    self.cluster.forget(uid);
                    self.hand_over(report.as_deref());
                }
                self.memories.settle(uid, departed, is_up);
                self.consoles.stop(uid);
                return Ok(Next::Never);
            }
            Step::Wait(until) => return Ok(Next::At(until)),
            Step::Look(priority) => {
                // Subjects are read in the order in which their signals arrived, however many arrive at once.
                let since = match &signal {
                    Some(signal) if looks.signalled == 0 => signal.heard,
                    _ => self.clock.now(),
                };
                let turn = (priority, since, snapshot.reads_refused_until);
                let look = self.look(&subject, observation, signal.as_ref(), turn);
                let Some(seen) = Box::pin(look).await else { return Ok(Next::Now) };
                self.memories.saw(uid, seen, |memory| {
                    if is_up {
                        memory.looks.joined += 1;
                    } else {
                        memory.looks.pending += 1;
                    }
                    memory.looks.signalled += usize::from(signal.is_some());
                    memory.looks.provider_failure = subject.provider_failure;
                    memory.looks.deleting += usize::from(departed || subject.deleting.is_some());
                });
                self.consoles.advance(uid, Finding::Failure, Finding::Inspected);
                Next::Now
            }
            Step::Deepen(priority) => {
                let seen = observation.unwrap_or_default();
                let node = self.cluster.node_of(&subject);
                let seen = self.collect.deepen(&subject, seen, node.as_deref(), priority).await;
                self.memories.saw(uid, seen, |_| {});
                // If the console leads to no verdict, new console lines must not trigger another look.
                self.consoles.advance(uid, Finding::Inspected, Finding::Unreadable);
                Next::Now
            }
            Step::WatchConsole => self.read_console(&subject).await,
            Step::Publish(report) => self.publish(&subject, *report).await?,
            Step::Revise(report) => self.revise(*report).await?,
            Step::Apply(conditions) => {
                let goes_on =
                    |step: &Step| !matches!(step, Step::Look(Priority::Event | Priority::Deletion));
                let apply = self.apply(&subject, conditions);
                let written = self.as_long_as(uid, goes_on, apply).await.unwrap_or(Ok(Next::Now));
                self.unless_refused(uid, written)
            }
            Step::Warn => self.warn(&subject).await?,
            Step::Mirror(condition) => {
                let written = self.mirror(&subject, &condition).await;
                self.unless_refused(uid, written)
            }
            Step::Announce => match report {
                Some(report) => self.announce(&report).await?,
                None => Next::Never,
            },
        };
        self.memories.remember(uid, |memory| memory.errors = 0);
        Ok(next)
    }

    /// Schedules the report of a deleted subject: from now on the report is reconciled on its own, and counts
    /// toward the limits for reports whose subjects no longer exist.
    fn hand_over(&self, report: Option<&BootstrapReport>) {
        if let Some(report) = report {
            self.agenda.plan_now(Key::Report(ReportKey::of(report)));
            self.agenda.plan_now(Key::Sweep);
        }
    }

    fn snapshot(&self, uid: &str) -> Option<Snapshot> {
        let Entry { subject, departed } = self.cluster.subject(uid)?;
        let (subject, memory) = self.memories.recall(subject);
        Some(Snapshot {
            now: self.clock.now(),
            departed,
            node: self.cluster.node_of(&subject).as_deref().map(joined),
            report: self.cluster.report_of(&subject),
            observation: memory.observation,
            looks: memory.looks,
            signal: self.cluster.signal_of(&subject.uid),
            console: self.consoles.state_of(&subject.uid),
            namespace: self.settings.namespace.clone(),
            was_pending: memory.was_pending,
            refused_until: memory.refused.map(|(until, _)| until),
            reads_refused_until: memory.reads_refused_until,
            warned: memory.warned,
            alike: self.cluster.alike(&subject),
            subject,
        })
    }

    /// Does work that may have to wait for its turn, and cancels the work when a change makes another step
    /// more urgent: an Event from Karpenter, a deletion, a Node that registered.
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
            if !goes_on(&self.snapshot(uid)?.next_step()) {
                return None;
            }
        }
    }
}

/// Whether the API server refuses an object as invalid.
fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
}

/// A pause that doubles with each error in a row.
fn growing(times: u32) -> SignedDuration {
    let factor = 1_i32 << times.saturating_sub(1).min(5);
    SHORTEST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}
