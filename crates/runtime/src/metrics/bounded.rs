//! Counters whose labels come from objects, with a limit on the number of series and on the length of labels.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use bringup_objects::condition::cut;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// The longest label, in bytes.
const LONGEST: usize = 80;

/// A family of counters with a limited number of series. A new series beyond the limit replaces the oldest
/// one.
#[derive(Debug, Clone)]
pub struct Bounded<L: Hash + Eq> {
    family: Family<L, Counter>,
    known: Arc<Mutex<VecDeque<L>>>,
    most: usize,
}

impl<L: Debug + Clone + Hash + Eq + EncodeLabelSet> Bounded<L> {
    /// A family with at most `most` series.
    pub fn of(most: usize) -> Self {
        Self { family: Family::default(), known: Arc::default(), most }
    }

    /// The family, to register it.
    pub fn family(&self) -> Family<L, Counter> {
        self.family.clone()
    }

    /// Increments the counter with these labels.
    pub fn inc(&self, labels: &L) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if self.family.get(labels).is_none() {
            if known.len() >= self.most
                && let Some(oldest) = known.pop_front()
            {
                self.family.remove(&oldest);
            }
            known.push_back(labels.clone());
        }
        self.family.get_or_create(labels).inc();
    }
}

/// The value of a label from an object's field.
pub fn word_of(field: Option<&str>) -> String {
    let field = field.unwrap_or_default();
    let kept: String = field.chars().take(LONGEST).filter(|letter| !letter.is_control()).collect();
    cut(&kept, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct Label {
        word: String,
    }

    #[test]
    fn there_are_never_more_series_than_allowed_and_the_oldest_goes() {
        let counters = Bounded::of(3);
        for word in ["a", "b", "c", "a", "d"] {
            counters.inc(&Label { word: word.to_owned() });
        }
        let count = |word: &str| {
            counters.family.get(&Label { word: word.to_owned() }).map(|counter| counter.get())
        };
        assert_eq!(
            [count("a"), count("b"), count("c"), count("d")],
            [None, Some(1), Some(1), Some(1)]
        );
    }

    #[test]
    fn a_label_is_short_and_has_one_line() {
        assert_eq!(word_of(None), "");
        assert_eq!(word_of(Some("a\nb")), "ab");
        assert!(word_of(Some(&"x".repeat(10_000))).len() <= LONGEST);
    }
}
