//! The queue in front of the budget: the most urgent read is sent first; of equally urgent ones, the one that
//! has waited longest.
//!
//! The queue has no task of its own. One of the waiting callers acts for all: it admits the reads that may
//! start, waits for the next time or change, and hands over to another caller when its own turn comes or when
//! it is dropped.

mod ticket;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, oneshot, watch};

use crate::budget::{Budget, Call, Key, Limits, Operation};
use crate::clock::Clock;
pub use ticket::Pass;
use ticket::Ticket;

/// The reason for a read, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// An event has just happened, and the evidence may be deleted within seconds.
    Event,
    /// The resource is being deleted: a last look.
    Deletion,
    /// A read that must be made before a deadline.
    Forced,
    /// A regular read according to a schedule.
    Schedule,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Event, Self::Deletion, Self::Forced, Self::Schedule];

    /// The value of a metric label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Deletion => "deletion",
            Self::Forced => "forced",
            Self::Schedule => "schedule",
        }
    }

    /// A turn with this priority that counts as waiting since `moment`.
    pub fn since(self, moment: Timestamp) -> Turn {
        Turn { priority: self, since: Some(moment) }
    }
}

/// The position of a read in the queue: by priority, then by waiting time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The priority.
    pub priority: Priority,
    /// The start of the waiting time; absent: when the read joins the queue.
    pub since: Option<Timestamp>,
}

impl From<Priority> for Turn {
    fn from(priority: Priority) -> Self {
        Self { priority, since: None }
    }
}

/// The queue's counters: requests, waiting reads, remaining requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests by operation and HTTP status; without a status if no response arrived.
    pub requests: BTreeMap<(Operation, Option<u16>), u64>,
    /// Waiting reads by priority, including priorities without any.
    pub waiting: BTreeMap<Priority, usize>,
    /// The remaining requests of each subscription policy, as last reported by Azure.
    pub remaining: BTreeMap<String, u64>,
}

/// The queue. Clones share it.
///
/// # Guarantees
/// Of all reads that the budget allows, the most urgent is sent first, and of equally urgent ones the one
/// that has waited longest. A read that is dropped while it waits, or after its turn has come and before it
/// is sent, uses nothing of the budget.
#[derive(Debug, Clone)]
pub struct Reads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Notify,
    timekeeper: tokio::sync::Mutex<()>,
    /// Notifies of each refusal.
    refusals: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    /// Queues by front door: while a door is closed, all reads behind it are skipped at once.
    queues: HashMap<Key, BTreeMap<Place, Waiter>>,
    asked: u64,
    requests: BTreeMap<(Operation, Option<u16>), u64>,
}

/// A position in the queue. The last field keeps reads with the same time in their order of arrival.
type Place = (Priority, Timestamp, u64);

#[derive(Debug)]
struct Waiter {
    call: Call,
    admit: oneshot::Sender<()>,
}

impl Reads {
    /// An empty queue in front of a full budget.
    pub fn new(limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            budget: Budget::new(limits),
            queues: HashMap::new(),
            asked: 0,
            requests: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::new(state),
                changed: Notify::new(),
                timekeeper: tokio::sync::Mutex::new(()),
                refusals: watch::Sender::new(()),
            }),
        }
    }

    /// Waits until `call` may be sent. If the future is dropped, its turn is returned to the budget.
    pub async fn pass(&self, call: Call, turn: impl Into<Turn>) -> Pass {
        let (ticket, mut admitted) = Ticket::queue(&self.shared, call, turn.into());
        tokio::select! {
            biased;
            _ = &mut admitted => {}
            _keeper = self.shared.timekeeper.lock() => loop {
                let next = self.shared.dispatch();
                let moment = async {
                    match next {
                        Some(moment) => self.shared.clock.reach(moment).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    _ = &mut admitted => break,
                    () = self.shared.changed.notified() => {}
                    () = moment => {}
                }
            },
        }
        ticket.redeem()
    }

    /// Waits until a refusal by Azure forbids `call` until later than `than`, and returns the new end of the
    /// refusal.
    pub async fn refused_beyond(&self, call: &Call, than: Timestamp) -> Timestamp {
        let mut refusals = self.shared.refusals.subscribe();
        loop {
            let until = self.shared.lock().budget.refused_until(call, self.shared.clock.now());
            if let Some(until) = until.filter(|until| *until > than) {
                return until;
            }
            // Cannot fail: this queue holds the sender.
            let _ = refusals.changed().await;
        }
    }

    /// The requests so far, and the waiting reads.
    pub fn counters(&self) -> Counters {
        let state = self.shared.lock();
        let mut waiting: BTreeMap<_, _> =
            Priority::ALL.into_iter().map(|priority| (priority, 0)).collect();
        for (priority, ..) in state.queues.values().flat_map(BTreeMap::keys) {
            *waiting.entry(*priority).or_default() += 1;
        }
        Counters {
            requests: state.requests.clone(),
            waiting,
            remaining: state.budget.remaining().clone(),
        }
    }

    /// Counts a request to which no limit applies.
    pub(crate) fn count(&self, operation: Operation, status: Option<u16>) {
        self.shared.lock().count(operation, status);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is still usable: no panic can leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        state.dispatch(self.clock.now())
    }
}

impl State {
    /// Admits all reads that may start, in order, and returns when to call this function again.
    fn dispatch(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.budget.tick(now);
        self.queues.retain(|_, queue| !queue.is_empty());
        let Self { budget, queues, .. } = self;
        queues.iter_mut().filter_map(|(door, queue)| serve(budget, door, queue, now)).min()
    }

    fn count(&mut self, operation: Operation, status: Option<u16>) {
        *self.requests.entry((operation, status)).or_default() += 1;
    }
}

/// Admits all reads behind one door that may start, and returns when the next one may.
fn serve(
    budget: &mut Budget,
    door: &Key,
    queue: &mut BTreeMap<Place, Waiter>,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut soonest: Option<Timestamp> = None;
    let mut from = Bound::Unbounded;
    while let Some((&place, waiter)) = queue.range((from, Bound::Unbounded)).next() {
        let open = budget.door_ready_at(door, now);
        if open > now {
            return Some(open);
        }
        let ready = budget.ready_at(&waiter.call, now);
        if ready > now {
            soonest = Some(soonest.map_or(ready, |soonest| soonest.min(ready)));
        } else if let Some(waiter) = queue.remove(&place) {
            budget.take(&waiter.call, now);
            // If the receiver was dropped, its ticket is being dropped too, and returns the turn.
            let _ = waiter.admit.send(());
        }
        // A skipped read need not be checked again: sending other reads frees no tokens.
        from = Bound::Excluded(place);
    }
    soonest
}

#[cfg(test)]
mod tests;
