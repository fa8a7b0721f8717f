//! A queue of keys with due times. A wait is an entry in this queue, never a sleeping task.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_azure::clock::Clock;
use jiff::Timestamp;
use tokio::sync::Notify;

/// A queue of keys with due times, shared by all code that schedules keys.
///
/// # Guarantees
/// No key is taken twice at the same time. A key that is scheduled while it is reconciled becomes due again
/// afterwards.
#[derive(Debug)]
pub struct Agenda<K> {
    clock: Arc<dyn Clock>,
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    due: BTreeMap<(Timestamp, u64), K>,
    planned: HashMap<K, (Timestamp, u64)>,
    /// The keys that are being reconciled, each with a notification for the case that it is scheduled
    /// meanwhile.
    running: HashMap<K, Arc<Notify>>,
    /// Keys that were scheduled while they were being reconciled.
    again: HashMap<K, Timestamp>,
    count: u64,
}

impl<K: Clone + Eq + Hash> Agenda<K> {
    /// An empty queue.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State {
            due: BTreeMap::new(),
            planned: HashMap::new(),
            running: HashMap::new(),
            again: HashMap::new(),
            count: 0,
        };
        Self { clock, state: Mutex::new(state), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a key. If the key is already due earlier, that time stays.
    pub fn plan(&self, key: K, at: Timestamp) {
        self.lock().plan(key, at);
        self.changed.notify_one();
    }

    /// The present time of the queue's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Schedules a key for now.
    pub fn plan_now(&self, key: K) {
        self.plan(key, self.now());
    }

    /// Waits for a due key, and takes it.
    pub async fn next(&self) -> K {
        loop {
            let first = {
                let mut state = self.lock();
                let first = state.due.first_key_value().map(|((at, _), _)| *at);
                if first.is_some_and(|at| at <= self.clock.now())
                    && let Some(key) = state.take()
                {
                    return key;
                }
                first
            };
            match first {
                Some(at) => tokio::select! {
                    () = self.clock.reach(at) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Waits until a key that was taken is scheduled again.
    pub async fn recalled(&self, key: &K) {
        let bell = self.lock().running.get(key).cloned();
        match bell {
            Some(bell) => bell.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Returns a key that was taken, to be due again at `next`.
    pub fn done(&self, key: &K, next: Option<Timestamp>) {
        {
            let mut state = self.lock();
            state.running.remove(key);
            let again = state.again.remove(key);
            let at = again.into_iter().chain(next).min();
            if let Some(at) = at {
                state.plan(key.clone(), at);
            }
        }
        self.changed.notify_one();
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn plan(&mut self, key: K, at: Timestamp) {
        if let Some(bell) = self.running.get(&key) {
            bell.notify_one();
            let again = self.again.entry(key).or_insert(at);
            *again = at.min(*again);
            return;
        }
        if let Some(planned) = self.planned.get(&key).copied() {
            if planned.0 <= at {
                return;
            }
            self.due.remove(&planned);
        }
        self.count += 1;
        let place = (at, self.count);
        self.due.insert(place, key.clone());
        self.planned.insert(key, place);
    }

    fn take(&mut self) -> Option<K> {
        let (_, key) = self.due.pop_first()?;
        self.planned.remove(&key);
        self.running.insert(key.clone(), Arc::default());
        Some(key)
    }
}
