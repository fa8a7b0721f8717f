//! How much may be asked of Azure, and when: pure, time comes in as an argument.
//!
//! Three meters count every request: the front door's, for the subscription; and, where the
//! provider has limits of its own, its family's for the subscription and for the one resource.
//! A request may go when all three agree. What Azure says in headers and refusals only ever
//! lowers a meter, and only the one it is about: a machine that was asked too often does not keep
//! others from being asked.

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

/// How long a refusal keeps us away at most. Longer than this, and a claim would live and die without
/// being looked at: Azure is asked again then, and may refuse again.
const LONGEST_STOP: Duration = Duration::from_mins(5);

/// How many meters are kept before those that say nothing are dropped.
const MANY_METERS: usize = 1024;

/// How many policies are remembered for [`Budget::remaining`].
const MANY_POLICIES: usize = 64;

/// What we allow ourselves. The default is half of what ARM's front door allows an identity: the
/// other half is left to its other clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Reads a second, in the long run, for each subscription.
    pub reads_per_second: u32,
    /// Reads at once.
    pub reads_at_once: u32,
    /// Writes, and deletes, a second.
    pub writes_per_second: u32,
    /// Writes, and deletes, at once.
    pub writes_at_once: u32,
    /// How long to stay away after a refusal of the front door that does not say.
    pub door_stop: Duration,
    /// How long to stay away after a refusal of a provider that does not say.
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

/// What a meter is for. Subscriptions and resources are in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    Door(String, Door),
    Subscription(String, Family),
    Resource(String, Family),
}

/// All meters.
///
/// # Guarantees
/// In any stretch of time, no door of a subscription lets more requests pass than its burst and
/// its rate allow, and no request passes before a moment that Azure named in a refusal that is
/// about it.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    meters: HashMap<Key, Meter>,
    /// At how many meters those that say nothing are next looked for.
    many: usize,
    remaining: BTreeMap<String, u64>,
    latest: Timestamp,
}

impl Budget {
    /// A budget that nothing was drawn on.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            meters: HashMap::new(),
            many: MANY_METERS,
            remaining: BTreeMap::new(),
            latest: Timestamp::MIN,
        }
    }

    /// Says what time it is now. A wall clock may be set back: what was due is then due that much
    /// earlier, instead of in hours.
    pub fn tick(&mut self, now: Timestamp) {
        let set_back = now.duration_until(self.latest);
        if set_back > SignedDuration::ZERO && self.latest != Timestamp::MIN {
            for meter in self.meters.values_mut() {
                meter.set_back(set_back.unsigned_abs());
            }
        }
        self.latest = now;
    }

    /// The moment from which on `call` may be made; `now` if at once.
    pub fn ready_at(&self, call: &Call, now: Timestamp) -> Timestamp {
        self.ready_of(&call.keys, now)
    }

    /// Until when Azure's own refusals forbid `call`, where they do.
    pub(crate) fn refused_until(&self, call: &Call, now: Timestamp) -> Option<Timestamp> {
        let meters = call.keys.iter().filter_map(|key| self.meters.get(key));
        meters.map(Meter::not_before).max().filter(|until| *until > now)
    }

    /// The same, as far as the front door is concerned.
    pub(crate) fn door_ready_at(&self, door: &Key, now: Timestamp) -> Timestamp {
        self.ready_of([door], now)
    }

    fn ready_of<'a>(&self, keys: impl IntoIterator<Item = &'a Key>, now: Timestamp) -> Timestamp {
        keys.into_iter()
            .filter_map(|key| Some(self.meters.get(key)?.ready_at(self.limit(key), now)))
            .fold(now, Timestamp::max)
    }

    /// Counts a request. Whether it may be made is [`Budget::ready_at`]'s to say.
    pub fn take(&mut self, call: &Call, now: Timestamp) {
        if self.meters.len() >= self.many {
            let limits = self.limits.clone();
            self.meters.retain(|key, meter| !meter.is_idle(limit_of(&limits, key), now));
            // Not again with each request while that many are in use.
            self.many = MANY_METERS.max(2 * self.meters.len());
        }
        for key in &call.keys {
            let limit = self.limit(key);
            self.meter(key, now).take(limit, now);
        }
    }

    /// Takes back a [`Budget::take`]: the request was never made.
    pub fn give_back(&mut self, call: &Call) {
        for key in &call.keys {
            let limit = self.limit(key);
            if let Some(meter) = self.meters.get_mut(key) {
                meter.give_back(limit);
            }
        }
    }

    /// The request has ended, with or without an answer.
    pub fn ended(&mut self, call: &Call) {
        for key in &call.keys {
            if let Some(meter) = self.meters.get_mut(key) {
                meter.ended();
            }
        }
    }

    /// Heeds what an answer says about limits. [`Budget::ended`] comes first.
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
            // A refusal's counters say 0, and its moment says when that ends.
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

    /// How many requests each policy has left, as Azure last said it; none of single resources.
    pub fn remaining(&self) -> &BTreeMap<String, u64> {
        &self.remaining
    }

    /// How many more requests a call could make at once.
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
            // Of what is left, too, half belongs to others.
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

/// Compute's policies of one resource end so; the others are of the whole subscription.
fn is_for_resource(policy: &str) -> bool {
    policy.to_ascii_lowercase().ends_with("resource")
}

pub(crate) fn later(moment: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    moment.saturating_add(by).unwrap_or(Timestamp::MAX)
}
