//! A look at a subject's VM: given up when something else has to be done first, and told on the subject
//! when Azure refuses reads for minutes.

use std::sync::Arc;

use bringup_azure::Priority;
use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use super::Observer;
use crate::observation::Observation;
use crate::plan::Step;
use crate::snapshot::Signal;
use crate::subject::Subject;

/// A refusal of reads that ends sooner than this is not told on the subject.
const SHORT_REFUSAL: SignedDuration = SignedDuration::from_secs(30);

impl Observer {
    /// What a look brought. Nothing: something else has to be done first.
    ///
    /// `turn` is how urgent it is, since when it waits, and the end of the refusal of reads that the
    /// subject already tells of: that one is waited for.
    pub(super) async fn look(
        &self,
        subject: &Subject,
        known: Option<Observation>,
        signal: Option<&Signal>,
        (priority, since, told): (Priority, Timestamp, Option<Timestamp>),
    ) -> Option<Observation> {
        let soon = self.clock.now().plus(SHORT_REFUSAL);
        let than = told.map_or(soon, |told| told.max(soon));
        let look = async {
            tokio::select! {
                biased;
                seen = Box::pin(self.collect.look(subject, known, signal, priority, since)) => Ok(seen),
                until = self.collect.refused_beyond(subject, than) => Err(until),
            }
        };
        let goes_on = |step: &Step| match step {
            Step::Look(other) => *other >= priority,
            // What is about to be gone is read before anything is written.
            Step::Apply(_) => priority < Priority::Forced,
            _ => false,
        };
        match self.as_long_as(&subject.uid, goes_on, look).await? {
            Ok(seen) => Some(seen),
            Err(until) => {
                let at = self.clock.now();
                let known = self.snapshot(&subject.uid)?.observation.map(Arc::unwrap_or_clone);
                let seen = known.unwrap_or_else(|| Observation { at, ..Observation::default() });
                self.memories.saw(&subject.uid, seen.refused_until(until), |memory| {
                    memory.reads_refused_until = Some(until);
                });
                None
            }
        }
    }
}
