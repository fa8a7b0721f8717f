//! What is remembered of subjects between two passes. All of it can be had again: it saves reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_objects::condition::Condition;
use jiff::Timestamp;

use crate::observation::Observation;
use crate::plan::Looks;
use crate::subject::Subject;

/// What is remembered of a subject.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// What the last look brought.
    pub(crate) observation: Option<Observation>,
    /// How often it was looked at.
    pub(crate) looks: Looks,
    /// How many passes in a row failed.
    pub(crate) errors: u32,
    /// When our conditions were last written, and how often in quick succession.
    pub(crate) applied: Option<(Timestamp, u32)>,
    /// Our conditions could not be written: until when nobody tries, and how often it failed.
    pub(crate) refused: Option<(Timestamp, u32)>,
    /// It was seen while it was pending.
    pub(crate) was_pending: bool,
    /// It was said that it has no room for our conditions.
    pub(crate) warned: bool,
    /// Of a dry run: what would be on it by now.
    pub(crate) pretended: Option<Vec<Condition>>,
}

/// What is remembered, by uid.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<HashMap<String, Memory>>);

impl Memories {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.lock().remove(uid);
    }

    /// Nothing is to be done: lets go of what is not needed any more.
    pub(crate) fn settle(&self, uid: &str, departed: bool, is_up: bool) {
        let mut memories = self.lock();
        let Some(memory) = memories.get_mut(uid) else { return };
        if departed || is_up && memory.observation.is_none() && !memory.was_pending {
            memories.remove(uid);
        } else if let Some(seen) = memory.observation.as_mut().filter(|_| is_up) {
            // What the script said is not needed any more, only how it ended.
            *seen = Observation {
                at: seen.at,
                cse: seen.cse.clone(),
                warning: seen.warning.take(),
                ..Observation::default()
            };
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
    fn of_nodes_that_joined_and_were_deleted_nothing_is_remembered() {
        let (cluster, memories) = (Cluster::default(), Memories::default());
        for count in 0..1000 {
            let uid = count.to_string();
            cluster.seen(claim(1, &uid, false));
            memories.recall(cluster.subject(&uid).unwrap().subject);
            memories.remember(&uid, |memory| memory.observation = Some(Observation::default()));
            cluster.seen(claim(2, &uid, true));
            memories.recall(cluster.subject(&uid).unwrap().subject);
            memories.settle(&uid, false, true);
            // Whoever is answered is attended to: who is not known then is forgotten.
            if let Some(Key::Subject(uid)) = cluster.gone(&uid) {
                assert!(cluster.subject(&uid).is_none());
                memories.forget(&uid);
            }
        }
        assert_eq!(memories.lock().len(), 0);
    }
}
