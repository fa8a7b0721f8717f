//! How many requests may be sent to Azure, and when. Pure: time is an argument.
//!
//! Three meters count every request: one for the subscription's front door, and, if the provider has limits
//! of its own, one for its family in the subscription and one for its family on the resource. A request may
//! be sent when all three allow it. Headers and refusals only ever lower a meter, and only the meter that
//! they apply to: a machine with too many reads does not delay reads of others.

mod call;
mod meter;
mod signals;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use call::{Call, Door, Family, Operation};
use meter::{Limit, Meter};
pub(crate) use signals::retry_after;
pub use signals::{Signals, Throttling};

/// The longest wait after a refusal. A longer one could outlast a claim's whole life without a look, so
/// bringup tries again after this time, and Azure may refuse again.
const LONGEST_STOP: Duration = Duration::from_mins(5);

/// The number of meters from which on idle meters are dropped.
const MANY_METERS: usize = 1024;

/// The most policies in [`Budget::remaining`].
const MANY_POLICIES: usize = 64;

/// The limits that bringup sets for itself. The default is half of what ARM's front door allows an identity:
/// the other half is for the identity's other clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The sustained rate of reads a second, for each subscription.
    pub reads_per_second: u32,
    /// The burst of reads.
    pub reads_at_once: u32,
    /// The sustained rate of writes, and of deletes, a second.
    pub writes_per_second: u32,
    /// The burst of writes, and of deletes.
    pub writes_at_once: u32,
    /// The wait after a refusal of the front door without `Retry-After`.
    pub door_stop: Duration,
    /// The wait after a refusal of a provider without `Retry-After`.
    pub policy_stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reads_per_second: 12,
            reads_at_once: 125,
            writes_per_second: 5,
            writes_at_once: 100,
            door_stop: Duration::from_secs(10),
            policy_stop: Duration::from_mins(1),
        }
    }
}

/// The key of a meter. Subscriptions and resources are in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    Door(String, Door),
    Subscription(String, Family),
    Resource(String, Family),
}

/// All meters.
///
/// # Guarantees
/// In any period, no door of a subscription lets more requests pass than its burst and rate allow, and no
/// request passes before the end of a refusal that applies to it.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    meters: HashMap<Key, Meter>,
    /// The number of meters at which idle ones are dropped next.
    many: usize,
    remaining: BTreeMap<String, u64>,
    latest: Timestamp,
}

impl Budget {
    /// A full budget.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            meters: HashMap::new(),
            many: MANY_METERS,
            remaining: BTreeMap::new(),
            latest: Timestamp::MIN,
        }
    }

    /// Sets the present time. If the wall clock was set back, all due times move back by the same amount, so
    /// that nothing waits for hours.
    pub fn tick(&mut self, now: Timestamp) {
        let set_back = now.duration_until(self.latest);
        if set_back > SignedDuration::ZERO && self.latest != Timestamp::MIN {
            for meter in self.meters.values_mut() {
                meter.set_back(set_back.unsigned_abs());
            }
        }
        self.latest = now;
    }

    /// The time from which on `call` may be sent; `now` if at once.
    pub fn ready_at(&self, call: &Call, now: Timestamp) -> Timestamp {
        self.ready_of(&call.keys, now)
    }

    /// The end of Azure's refusals that forbid `call`, if any.
    pub(crate) fn refused_until(&self, call: &Call, now: Timestamp) -> Option<Timestamp> {
        let meters = call.keys.iter().filter_map(|key| self.meters.get(key));
        meters.map(Meter::not_before).max().filter(|until| *until > now)
    }

    /// The time from which on the front door allows requests.
    pub(crate) fn door_ready_at(&self, door: &Key, now: Timestamp) -> Timestamp {
        self.ready_of([door], now)
    }

    fn ready_of<'a>(&self, keys: impl IntoIterator<Item = &'a Key>, now: Timestamp) -> Timestamp {
        keys.into_iter()
            .filter_map(|key| Some(self.meters.get(key)?.ready_at(self.limit(key), now)))
            .fold(now, Timestamp::max)
    }

    /// Counts a request. The caller must have checked [`Budget::ready_at`].
    pub fn take(&mut self, call: &Call, now: Timestamp) {
        if self.meters.len() >= self.many {
            let limits = self.limits.clone();
            self.meters.retain(|key, meter| !meter.is_idle(limit_of(&limits, key), now));
            // With this many meters in use, do not search for idle ones at each request.
            self.many = MANY_METERS.max(2 * self.meters.len());
        }
        for key in &call.keys {
            let limit = self.limit(key);
            self.meter(key, now).take(limit, now);
        }
    }

    /// Reverts a [`Budget::take`], because the request was never sent.
    pub fn give_back(&mut self, call: &Call) {
        for key in &call.keys {
            let limit = self.limit(key);
            if let Some(meter) = self.meters.get_mut(key) {
                meter.give_back(limit);
            }
        }
    }

    /// Records that the request has ended, with or without a response.
    pub fn ended(&mut self, call: &Call) {
        for key in &call.keys {
            if let Some(meter) = self.meters.get_mut(key) {
                meter.ended();
            }
        }
    }

    /// Applies the limits in a response. The caller must call [`Budget::ended`] first.
    pub fn heed(&mut self, call: &Call, signals: &Signals, now: Timestamp) {
        for (name, left) in &signals.remaining {
            self.note(name, *left);
        }
        let [door, subscription, resource] = &call.keys;
        let (key, stop) = match &signals.throttled {
            None => {
                self.lower_all(call, signals, now);
                return;
            }
            // In a refusal the counters are 0, and `Retry-After` is the end of that state, so only the latter
            // is used.
            Some(Throttling::Door) => (door, self.limits.door_stop),
            Some(Throttling::Policy(name)) if is_for_resource(name) => {
                (resource, self.limits.policy_stop)
            }
            Some(Throttling::Policy(_) | Throttling::Provider) => {
                (subscription, self.limits.policy_stop)
            }
        };
        let stop = signals.retry_after.unwrap_or(stop).min(LONGEST_STOP);
        let until = later(now, stop);
        let limit = self.limit(key);
        self.meter(key, now).stop(limit, until);
    }

    /// The remaining requests of each policy, as last reported by Azure, without policies of single
    /// resources.
    pub fn remaining(&self) -> &BTreeMap<String, u64> {
        &self.remaining
    }

    /// The number of requests like `call` that could be sent at once.
    pub fn available(&self, call: &Call, now: Timestamp) -> u64 {
        call.keys
            .iter()
            .filter_map(|key| {
                let limit = self.limit(key)?;
                Some(self.meters.get(key).map_or(limit.burst, |meter| meter.left(limit, now)))
            })
            .min()
            .unwrap_or(u64::MAX)
    }

    fn lower_all(&mut self, call: &Call, signals: &Signals, now: Timestamp) {
        let [door, subscription, resource] = &call.keys;
        if let Some(left) = signals.door {
            // Half of the remaining requests is for other clients, too.
            self.lower(door, left / 2, now);
        }
        for (name, left) in &signals.remaining {
            if call.family.is_policy(name) {
                let key = if is_for_resource(name) { resource } else { subscription };
                self.lower(key, *left, now);
            }
        }
    }

    fn note(&mut self, name: &str, left: u64) {
        let known = self.remaining.contains_key(name) || self.remaining.len() < MANY_POLICIES;
        if known && !is_for_resource(name) {
            self.remaining.insert(name.to_owned(), left);
        }
    }

    fn lower(&mut self, key: &Key, left: u64, now: Timestamp) {
        if let Some(limit) = self.limit(key) {
            self.meter(key, now).lower(limit, left, now);
        }
    }

    fn meter(&mut self, key: &Key, now: Timestamp) -> &mut Meter {
        let limit = self.limit(key);
        self.meters.entry(key.clone()).or_insert_with(|| Meter::full(limit, now))
    }

    fn limit(&self, key: &Key) -> Option<Limit> {
        limit_of(&self.limits, key)
    }
}

fn limit_of(limits: &Limits, key: &Key) -> Option<Limit> {
    match key {
        Key::Door(_, Door::Reads) => {
            Some(Limit::per_second(limits.reads_per_second, limits.reads_at_once))
        }
        Key::Door(_, Door::Writes | Door::Deletes) => {
            Some(Limit::per_second(limits.writes_per_second, limits.writes_at_once))
        }
        Key::Subscription(_, family) => Some(family.limits()?.1),
        Key::Resource(_, family) => Some(family.limits()?.0),
    }
}

/// Whether a policy of Compute applies to one resource; the others apply to the whole subscription.
fn is_for_resource(policy: &str) -> bool {
    policy.to_ascii_lowercase().ends_with("resource")
}

pub(crate) fn later(moment: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    moment.saturating_add(by).unwrap_or(Timestamp::MAX)
}
