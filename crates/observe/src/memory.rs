//! The state of subjects in memory between two passes. All of it can be restored: it only saves reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::condition::Condition;
use jiff::Timestamp;

use crate::observation::Observation;
use crate::snapshot::Looks;
use crate::subject::Subject;

/// The state of one subject in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// The result of the last look.
    pub(crate) observation: Option<Arc<Observation>>,
    pub(crate) looks: Looks,
    pub(crate) errors: u32,
    /// When our conditions were last written, and how often in quick succession.
    pub(crate) applied: Option<(Timestamp, u32)>,
    /// Set if our conditions could not be written: the time of the next attempt, and the number of failed
    /// attempts.
    pub(crate) refused: Option<(Timestamp, u32)>,
    /// Set while Azure refuses reads of the VM: the end of the refusal.
    pub(crate) reads_refused_until: Option<Timestamp>,
    /// Whether the subject was pending when it was seen.
    pub(crate) was_pending: bool,
    /// Whether the Event exists that the subject has no room for our conditions.
    pub(crate) warned: bool,
    /// In a dry run: the conditions that the subject would have by now.
    pub(crate) pretended: Option<Vec<Condition>>,
}

/// The most bytes that one piece of evidence takes in memory.
pub(crate) const EXCERPT_BYTES: usize = 64 * 1024;
/// The most bytes of text of all observations together. Once half of the budget is used, new texts are cut to
/// excerpts of [`SHORT`]; once all of it is used, new texts are dropped.
const BUDGET: usize = 32 * 1024 * 1024;
const SHORT: usize = 4 * 1024;

/// The state of all subjects by uid; the budget for text, and the bytes that are used.
#[derive(Debug)]
pub(crate) struct Memories(Mutex<HashMap<String, Memory>>, usize, AtomicUsize);

impl Default for Memories {
    fn default() -> Self {
        Self(Mutex::default(), BUDGET, AtomicUsize::new(0))
    }
}

impl Memories {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the budget for an observation's text.
    fn drop_text(&self, seen: Option<&Observation>) {
        let size = seen.map_or(0, |seen| seen.evidence.size());
        self.2.fetch_sub(size, Ordering::Relaxed);
    }

    /// Stores the result of a look, within the budget for text, and applies a change to the subject's state.
    pub(crate) fn saw(&self, uid: &str, seen: Observation, change: impl FnOnce(&mut Memory)) {
        let mut memories = self.lock();
        let Some(memory) = memories.get_mut(uid) else { return };
        self.drop_text(memory.observation.take().as_deref());
        let used = self.2.load(Ordering::Relaxed);
        let seen = match used {
            _ if used.saturating_add(seen.evidence.size()) <= self.1 / 2 => seen,
            _ if used.saturating_add(SHORT) <= self.1 => seen.with_excerpts(SHORT),
            _ => seen.with_excerpts(0),
        };
        self.2.fetch_add(seen.evidence.size(), Ordering::Relaxed);
        memory.observation = Some(Arc::new(seen));
        change(memory);
    }

    /// The state of a subject; and the subject, in a dry run with the conditions that it would have.
    pub(crate) fn recall(&self, subject: Arc<Subject>) -> (Arc<Subject>, Memory) {
        let mut memories = self.lock();
        let memory = memories.entry(subject.uid.clone()).or_default();
        memory.was_pending |= subject.is_pending();
        let subject = match &memory.pretended {
            Some(conditions) => {
                Arc::new(Subject { conditions: conditions.clone(), ..(*subject).clone() })
            }
            None => subject,
        };
        (subject, memory.clone())
    }

    /// Changes the state of a subject, unless that state was dropped already.
    pub(crate) fn remember(&self, uid: &str, change: impl FnOnce(&mut Memory)) {
        if let Some(memory) = self.lock().get_mut(uid) {
            change(memory);
        }
    }

    /// Counts a failed pass, and returns the number of failed passes in a row.
    pub(crate) fn failed(&self, uid: &str) -> u32 {
        let mut memories = self.lock();
        let memory = memories.entry(uid.to_owned()).or_default();
        memory.errors += 1;
        memory.errors
    }

    pub(crate) fn applied(&self, uid: &str) -> Option<(Timestamp, u32)> {
        self.lock().get(uid).and_then(|memory| memory.applied)
    }

    pub(crate) fn forget(&self, uid: &str) {
        let memory = self.lock().remove(uid);
        self.drop_text(memory.and_then(|memory| memory.observation).as_deref());
    }

    /// Drops all state that is no longer needed, because the subject needs no more work.
    pub(crate) fn settle(&self, uid: &str, departed: bool, is_up: bool) {
        let mut memories = self.lock();
        let Some(memory) = memories.get_mut(uid) else { return };
        if departed || is_up && memory.observation.is_none() && !memory.was_pending {
            let memory = memories.remove(uid);
            self.drop_text(memory.and_then(|memory| memory.observation).as_deref());
        } else if let Some(seen) = memory.observation.as_mut().filter(|_| is_up) {
            self.drop_text(Some(seen));
            // Only the result is needed from now on, not the script's output.
            *seen = Arc::new(Observation {
                at: seen.at,
                cse: seen.cse.clone(),
                warning: seen.warning.clone(),
                ..Observation::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use bringup_objects::NodeClaim;
    use serde_json::json;

    use super::*;
    use crate::claims::{self, default_classes};
    use crate::cluster::{Cluster, Key};

    fn claim(version: u32, uid: &str, is_registered: bool) -> Subject {
        let mut conditions = vec![
            json!({ "type": "Launched", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-27T14:32:00Z" }),
        ];
        if is_registered {
            conditions.push(json!({ "type": "Registered", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-27T14:33:00Z" }));
        }
        let claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": uid, "uid": uid, "resourceVersion": version.to_string() },
            "spec": { "nodeClassRef": { "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "d" } },
            "status": { "conditions": conditions },
        }))
        .unwrap();
        claims::subject(&claim, &default_classes()).unwrap()
    }

    #[test]
    fn the_text_of_all_observations_stays_within_its_budget() {
        const BUDGET: usize = 1024 * 1024;
        let (cluster, memories) =
            (Cluster::default(), Memories(Mutex::default(), BUDGET, AtomicUsize::new(0)));
        let console = "cloud-init[1]: a line like any other\n".repeat(2_000);
        let seen =
            Observation::default().with_console(&console, false).with_excerpts(EXCERPT_BYTES);
        let count = 400;
        for count in 0..count {
            let uid = count.to_string();
            cluster.seen(claim(1, &uid, false));
            memories.recall(cluster.subject(&uid).unwrap().subject);
            memories.saw(&uid, seen.clone(), |_| {});
        }
        let text: usize = {
            let memories = memories.lock();
            assert!(memories.values().all(|memory| memory.observation.is_some()));
            let seen = memories.values().filter_map(|memory| memory.observation.as_ref());
            seen.map(|seen| seen.evidence.size()).sum()
        };
        assert_eq!(text, memories.2.load(Ordering::Relaxed), "it is counted right");
        assert!(text <= BUDGET, "{text} bytes of text for {count} subjects");
        assert!(text > BUDGET / 2, "{text}: as much as fits is kept");
        for uid in 0..count {
            memories.forget(&uid.to_string());
        }
        assert_eq!(memories.2.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn of_nodes_that_joined_and_were_deleted_nothing_is_remembered() {
        let (cluster, memories) = (Cluster::default(), Memories::default());
        for count in 0..1000 {
            let uid = count.to_string();
            cluster.seen(claim(1, &uid, false));
            memories.recall(cluster.subject(&uid).unwrap().subject);
            memories.saw(&uid, Observation::default(), |_| {});
            cluster.seen(claim(2, &uid, true));
            memories.recall(cluster.subject(&uid).unwrap().subject);
            memories.settle(&uid, false, true);
            // As in the observer: if the index no longer knows the subject, its state is dropped.
            if let Some(Key::Subject(uid)) = cluster.gone(&uid) {
                assert!(cluster.subject(&uid).is_none());
                memories.forget(&uid);
            }
        }
        assert_eq!(memories.lock().len(), 0);
    }
}
