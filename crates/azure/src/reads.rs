//! The queue in front of the budget: the most urgent read is sent first, then the one that waits
//! longest.
//!
//! No task runs behind the queue. One of the waiting callers keeps the time for all: it admits the
//! reads that may start, waits for the next moment or for a change, and hands over to another
//! caller when its own turn has come or when it is dropped.

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

/// Why something is asked. The first is the most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Something has just happened, and the evidence will be gone in a moment.
    Event,
    /// It is being deleted: a last look.
    Deletion,
    /// A capture that has to be made by a deadline.
    Forced,
    /// It is time to look again.
    Schedule,
}

impl Priority {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Event, Self::Deletion, Self::Forced, Self::Schedule];

    /// A word for a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Deletion => "deletion",
            Self::Forced => "forced",
            Self::Schedule => "schedule",
        }
    }

    /// This priority, counted as waiting since `moment` instead of since it is asked.
    pub fn since(self, moment: Timestamp) -> Turn {
        Turn { priority: self, since: Some(moment) }
    }
}

/// The place of a read in the queue: by priority, then by how long it has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// How urgent it is.
    pub priority: Priority,
    /// Since when it waits; since it is asked, if absent.
    pub since: Option<Timestamp>,
}

impl From<Priority> for Turn {
    fn from(priority: Priority) -> Self {
        Self { priority, since: None }
    }
}

/// What was asked, what waits, what is left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests by what they do and what was answered; without a status, nothing was.
    pub requests: BTreeMap<(Operation, Option<u16>), u64>,
    /// How many wait, by priority; every priority is there.
    pub waiting: BTreeMap<Priority, usize>,
    /// What policies of subscriptions have left, as Azure last said it.
    pub remaining: BTreeMap<String, u64>,
}

/// The queue. Clones share it.
///
/// # Guarantees
/// Of all that may be asked at a moment, the most urgent is asked, and of equals the one that has
/// waited longest. One that is dropped while it waits, or after its turn has come and before it
/// asked, takes nothing from the budget.
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
    /// Changes with each refusal.
    refusals: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    /// By front door: where that is closed, the reads behind it are skipped.
    queues: HashMap<Key, BTreeMap<Place, Waiter>>,
    asked: u64,
    requests: BTreeMap<(Operation, Option<u16>), u64>,
}

/// A place in the queue; the last part keeps the order of asking.
type Place = (Priority, Timestamp, u64);

#[derive(Debug)]
struct Waiter {
    call: Call,
    admit: oneshot::Sender<()>,
}

impl Reads {
    /// An empty queue before a full budget.
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

    /// Waits until `call` may be made. Dropped, it gives its turn back.
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

    /// Waits until a refusal of Azure's forbids `call` until later than `than`; answers until when.
    pub async fn refused_beyond(&self, call: &Call, than: Timestamp) -> Timestamp {
        let mut refusals = self.shared.refusals.subscribe();
        loop {
            let until = self.shared.lock().budget.refused_until(call, self.shared.clock.now());
            if let Some(until) = until.filter(|until| *until > than) {
                return until;
            }
            // The sender lives as long as this queue.
            let _ = refusals.changed().await;
        }
    }

    /// What was asked so far, and what waits now.
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

    /// Counts a request that no limit of ours is about.
    pub(crate) fn count(&self, operation: Operation, status: Option<u16>) {
        self.shared.lock().count(operation, status);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done where a panic could strike.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        state.dispatch(self.clock.now())
    }
}

impl State {
    /// Admits all reads that may start, in order, and returns when to look again.
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
            // If the receiver is gone, its ticket is being dropped and returns the pass.
            let _ = waiter.admit.send(());
        }
        // A read that was skipped stays so: sending others frees no tokens.
        from = Bound::Excluded(place);
    }
    soonest
}

#[cfg(test)]
mod tests;
