//! Objects whose handling panicked. Each is set aside for a while, longer after each panic; all other objects
//! are handled as usual.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bringup_contract::bounds::TimeMath as _;
use bringup_diagnosis::redaction::redact;
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use prometheus_client::metrics::counter::Counter;
use tracing::error;

/// The first pause, which doubles with each panic in a row, and the longest one.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LAST: SignedDuration = SignedDuration::from_mins(30);
/// The most objects to remember. Beyond that, each pause is the first one.
const MOST: usize = 4096;

/// The number of panics in a row, and the end of the pause.
#[derive(Debug, Clone, Copy)]
struct Panics {
    count: u32,
    until: Timestamp,
}

/// The objects whose last handling panicked.
#[derive(Debug)]
pub struct SetAside<K>(Mutex<HashMap<K, Panics>>);

impl<K> Default for SetAside<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone + Debug> SetAside<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Panics>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a step for an object. A panic affects only that object: it is counted and logged, and the object
    /// is set aside, even if it changes meanwhile. The error contains the end of the pause.
    pub async fn guard<T>(
        &self,
        key: &K,
        now: Timestamp,
        panics: &Counter,
        step: impl Future<Output = T>,
    ) -> Result<T, Timestamp> {
        if let Some(until) = self.until(key).filter(|until| now < *until) {
            return Err(until);
        }
        match AssertUnwindSafe(step).catch_unwind().await {
            Ok(done) => {
                self.forgive(key);
                Ok(done)
            }
            Err(panic) => {
                let until = self.panicked(key, now);
                let panic = words(panic.as_ref());
                error!(?key, panic, %until, "reconcile panicked; setting the object aside");
                panics.inc();
                Err(until)
            }
        }
    }

    fn until(&self, key: &K) -> Option<Timestamp> {
        self.lock().get(key).map(|panics| panics.until)
    }

    /// Records a panic, and returns the end of the object's pause.
    fn panicked(&self, key: &K, now: Timestamp) -> Timestamp {
        let mut all = self.lock();
        let known = all.get(key).copied();
        let count = known.map_or(0, |panics| panics.count);
        let pause = FIRST.saturating_mul(1 << count.min(10)).min(LAST);
        let until = now.plus(pause);
        if known.is_some() || all.len() < MOST {
            all.insert(key.clone(), Panics { count: count.saturating_add(1), until });
        }
        until
    }

    /// Resets an object that was handled without a panic.
    fn forgive(&self, key: &K) {
        let mut all = self.lock();
        if !all.is_empty() {
            all.remove(key);
        }
    }
}

/// The message of a panic, without secrets.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    redact(text).text.truncated(300).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn pauses_grow_with_each_panic_in_a_row_and_no_further_than_the_last() {
        let aside = SetAside::default();
        let pauses: Vec<i64> = (0..12).map(|_| aside.panicked(&"a", at(0)).as_second()).collect();
        assert_eq!(pauses[..4], [10, 20, 40, 80]);
        assert_eq!(pauses[11], 1800);
        assert_eq!(aside.panicked(&"b", at(0)), at(10), "another one is not to blame");
        aside.forgive(&"a");
        assert_eq!(aside.panicked(&"a", at(5)), at(15));
    }

    #[tokio::test]
    async fn a_panic_is_counted_and_sets_its_object_aside_alone() {
        let (aside, panics) = (SetAside::default(), Counter::default());
        let fault = async { panic!("a fault that only this one meets") };
        assert_eq!(aside.guard::<()>(&"a", at(0), &panics, fault).await, Err(at(10)));
        // The step does not run before the pause has ended.
        assert_eq!(aside.guard(&"a", at(9), &panics, async { "early" }).await, Err(at(10)));
        assert_eq!(aside.guard(&"b", at(9), &panics, async { "done" }).await, Ok("done"));
        assert_eq!(aside.guard(&"a", at(10), &panics, async { "later" }).await, Ok("later"));
        assert_eq!(panics.get(), 1);
    }

    #[test]
    fn no_more_are_remembered_than_fit() {
        let aside = SetAside::default();
        for key in 0..2 * MOST {
            aside.panicked(&key, at(0));
        }
        assert_eq!(aside.lock().len(), MOST);
    }
}
