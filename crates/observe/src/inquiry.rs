//! One look at a subject, for a caller that does not wait for the controller: the same sources and the same
//! verdict. Writes nothing.

use std::sync::Arc;

use bringup_azure::Priority;
use bringup_objects::{BootstrapReport, Node};
use jiff::Timestamp;

use crate::cluster::{alike, joined};
use crate::collect::Collect;
use crate::judge::Judgement;
use crate::observation::Observation;
use crate::outputs::report;
use crate::snapshot::Snapshot;
use crate::subject::Subject;

/// The result of an inquiry.
#[derive(Debug)]
pub struct Inquiry {
    /// The observation of the subject.
    pub seen: Observation,
    /// The report that the controller would write if the subject has failed.
    pub report: Option<BootstrapReport>,
}

/// Reads all sources about a subject, and makes a verdict. `reports` are the reports about other subjects.
pub async fn inquire<'a>(
    collect: &Collect,
    subject: &Subject,
    node: Option<&Node>,
    reports: impl IntoIterator<Item = &'a BootstrapReport>,
    now: Timestamp,
) -> Inquiry {
    let priority = Priority::Event;
    let seen = collect.look(subject, None, None, priority, now).await;
    let seen = collect.deepen(subject, seen, node, priority).await;
    let snapshot = Snapshot {
        node: node.map(joined),
        observation: Some(Arc::new(seen.clone())),
        ..Snapshot::of(Arc::new(subject.clone()), now)
    };
    let report = match snapshot.judge() {
        Judgement::Failed(failure) => {
            let cause = failure.diagnosis.cause.reason.reason();
            let earlier = alike(subject, reports).get(cause).copied().unwrap_or_default();
            Some(report::of_failure(subject, 1, Some(&seen), &failure, "", earlier, now))
        }
        Judgement::Underway | Judgement::Withdrawn | Judgement::Up => None,
    };
    Inquiry { seen, report }
}
