//! Objects whose handling panicked. Each is left alone for a while, longer each time; all others go on.

use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bringup_diagnosis::redaction::redact;
use jiff::SignedDuration;

/// The first pause, which doubles with each panic in a row, and the last one.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LAST: SignedDuration = SignedDuration::from_mins(30);
/// How many objects are remembered. Beyond that, each pause is the first.
const MOST: usize = 4096;

/// How often the handling of an object has panicked in a row.
#[derive(Debug)]
pub(crate) struct SetAside<K>(Mutex<HashMap<K, u32>>);

impl<K> Default for SetAside<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> SetAside<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handling of an object panicked: how long it is set aside.
    pub(crate) fn panicked(&self, key: &K) -> SignedDuration {
        let mut counts = self.lock();
        if counts.len() >= MOST && !counts.contains_key(key) {
            return FIRST;
        }
        let count = counts.entry(key.clone()).or_default();
        let pause = FIRST.saturating_mul(1 << (*count).min(10)).min(LAST);
        *count = count.saturating_add(1);
        pause
    }

    /// It has been handled.
    pub(crate) fn forgive(&self, key: &K) {
        let mut counts = self.lock();
        if !counts.is_empty() {
            counts.remove(key);
        }
    }
}

/// What a panic says, without secrets.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it says nothing");
    redact(text).text.truncated(300).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_each_panic_in_a_row_and_no_further_than_the_last() {
        let aside = SetAside::default();
        let pauses: Vec<i64> = (0..12).map(|_| aside.panicked(&"a").as_secs()).collect();
        assert_eq!(pauses[..4], [10, 20, 40, 80]);
        assert_eq!(pauses[11], 1800);
        assert_eq!(aside.panicked(&"b").as_secs(), 10, "another one is not to blame");
        aside.forgive(&"a");
        assert_eq!(aside.panicked(&"a").as_secs(), 10);
    }

    #[test]
    fn no_more_are_remembered_than_fit() {
        let aside = SetAside::default();
        for key in 0..2 * MOST {
            aside.panicked(&key);
        }
        assert_eq!(aside.lock().len(), MOST);
    }
}
