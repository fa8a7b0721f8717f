//! Reads of a subject's VM or console, cancelled when another step becomes more urgent. A refusal of reads
//! that lasts for minutes is shown on the subject.

use std::sync::Arc;

use bringup_azure::Priority;
use bringup_contract::bounds::TimeMath as _;
use jiff::{SignedDuration, Timestamp};

use super::{Next, Observer};
use crate::observation::Observation;
use crate::plan::Step;
use crate::snapshot::Signal;
use crate::subject::Subject;

/// A refusal of reads that ends sooner than this is not shown on the subject.
const SHORT_REFUSAL: SignedDuration = SignedDuration::from_secs(30);

impl Observer {
    /// Reads a console, unless another step is more urgent by now.
    pub(super) async fn read_console(&self, subject: &Subject) -> Next {
        let uid = &subject.uid;
        let console = self.consoles.start(uid);
        let read = self.collect.watch_console(subject, console, Priority::Schedule);
        let goes_on = |step: &Step| matches!(step, Step::WatchConsole);
        if let Some((console, found)) = self.as_long_as(uid, goes_on, read).await {
            self.consoles.store(uid, console, self.clock.now(), found);
        }
        Next::Now
    }

    /// The result of a look, or none if another step is more urgent.
    ///
    /// `turn` is the priority of the look, the time since which it waits, and the end of the refusal of reads
    /// that the subject already shows: the look waits for that end.
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
            // A resource that is about to be deleted is read before anything is written.
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
