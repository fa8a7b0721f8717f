//! What is remembered of subjects between two passes. All of it can be had again: it saves reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::condition::Condition;
use jiff::Timestamp;

use crate::observation::Observation;
use crate::snapshot::Looks;
use crate::subject::Subject;

/// What is remembered of a subject.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// What the last look brought.
    pub(crate) observation: Option<Arc<Observation>>,
    /// How often it was looked at.
    pub(crate) looks: Looks,
    /// How many passes in a row failed.
    pub(crate) errors: u32,
    /// When our conditions were last written, and how often in quick succession.
    pub(crate) applied: Option<(Timestamp, u32)>,
    /// Our conditions could not be written: until when no attempt is made, and how often it failed.
    pub(crate) refused: Option<(Timestamp, u32)>,
    /// Azure refuses reads of its VM until then.
    pub(crate) reads_refused_until: Option<Timestamp>,
    /// It was seen while it was pending.
    pub(crate) was_pending: bool,
    /// It was said that it has no room for our conditions.
    pub(crate) warned: bool,
    /// Of a dry run: what would be on it by now.
    pub(crate) pretended: Option<Vec<Condition>>,
}

/// How many bytes of one piece of evidence are kept.
pub(crate) const EXCERPT_BYTES: usize = 64 * 1024;
/// How many bytes of text of all observations are kept. Of what comes when half of it is used, excerpts
/// of [`SHORT`] are kept; of what comes when all of it is used, no text.
const BUDGET: usize = 32 * 1024 * 1024;
const SHORT: usize = 4 * 1024;

/// What is remembered, by uid; the budget for text, and how many bytes of it are used.
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

    /// The text of an observation is not kept any more.
    fn drop_text(&self, seen: Option<&Observation>) {
        let size = seen.map_or(0, |seen| seen.evidence.size());
        self.2.fetch_sub(size, Ordering::Relaxed);
    }

    /// Remembers what a look brought, within the budget for text, and what follows from it.
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

    /// What is remembered of a subject; and the subject, in a dry run with what would be on it.
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

    /// Changes what is remembered of a subject, unless it is forgotten by now.
    pub(crate) fn remember(&self, uid: &str, change: impl FnOnce(&mut Memory)) {
        if let Some(memory) = self.lock().get_mut(uid) {
            change(memory);
        }
    }

    /// Counts a pass that failed; how many in a row is answered.
    pub(crate) fn failed(&self, uid: &str) -> u32 {
        let mut memories = self.lock();
        let memory = memories.entry(uid.to_owned()).or_default();
        memory.errors += 1;
        memory.errors
    }

    /// When our conditions were last written.
    pub(crate) fn applied(&self, uid: &str) -> Option<(Timestamp, u32)> {
        self.lock().get(uid).and_then(|memory| memory.applied)
    }

    /// Forgets a subject.
    pub(crate) fn forget(&self, uid: &str) {
        let memory = self.lock().remove(uid);
        self.drop_text(memory.and_then(|memory| memory.observation).as_deref());
    }

    /// Nothing is to be done: lets go of what is not needed any more.
    pub(crate) fn settle(&self, uid: &str, departed: bool, is_up: bool) {
        let mut memories = self.lock();
        let Some(memory) = memories.get_mut(uid) else { return };
        if departed || is_up && memory.observation.is_none() && !memory.was_pending {
            let memory = memories.remove(uid);
            self.drop_text(memory.and_then(|memory| memory.observation).as_deref());
        } else if let Some(seen) = memory.observation.as_mut().filter(|_| is_up) {
            self.drop_text(Some(seen));
            // What the script said is not needed any more, only how it ended.
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
            // The returned key is reconciled: a subject that is not known by then is forgotten.
            if let Some(Key::Subject(uid)) = cluster.gone(&uid) {
                assert!(cluster.subject(&uid).is_none());
                memories.forget(&uid);
            }
        }
        assert_eq!(memories.lock().len(), 0);
    }
}
