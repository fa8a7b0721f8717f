//! Everything that a decision about a subject rests on, read at one moment. Decisions are functions of
//! a snapshot alone: what is to be said is in [`crate::judge`], what is to be done in [`crate::plan`].

use std::collections::HashMap;
use std::sync::Arc;

use bringup_objects::report::BootstrapReport;
use jiff::Timestamp;

use crate::console_watch::ConsoleWatch;
use crate::observation::Observation;
use crate::subject::Subject;

/// A Node that belongs to a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its name.
    pub name: String,
    /// Whether its kubelet reports that it is ready.
    pub ready: bool,
}

/// Karpenter's Event that a claim's VM failed. Its text is cut before it gets to the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// When the API server got it, by that server's clock: as deletions are stamped.
    pub stamped: Timestamp,
    /// When the watch delivered it, by our clock.
    pub heard: Timestamp,
    /// The Event's note.
    pub text: String,
}

/// How often a subject was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looks {
    /// Before its Node came.
    pub pending: usize,
    /// Since its Node came.
    pub joined: usize,
    /// Because of Karpenter's Event.
    pub signalled: usize,
    /// The provider's failure that the last look was made for.
    pub provider_failure: Option<Timestamp>,
    /// Because it was being deleted.
    pub deleting: usize,
}

/// Everything that is known of a subject at a moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The present moment.
    pub now: Timestamp,
    /// The subject.
    pub subject: Arc<Subject>,
    /// The subject does not exist any more.
    pub departed: bool,
    /// Its Node.
    pub node: Option<Joined>,
    /// Its report.
    pub report: Option<Arc<BootstrapReport>>,
    /// What the last look brought, with its diagnosis.
    pub observation: Option<Arc<Observation>>,
    /// How often it was looked at.
    pub looks: Looks,
    /// Karpenter's Event about it.
    pub signal: Option<Signal>,
    /// What was heard on its console.
    pub console: ConsoleWatch,
    /// The namespace of reports about objects that are in none.
    pub namespace: String,
    /// It was pending at some moment since this process observes it.
    pub was_pending: bool,
    /// Our conditions could not be written, and no attempt is made before this.
    pub refused_until: Option<Timestamp>,
    /// Azure refuses reads of its VM until then.
    pub reads_refused_until: Option<Timestamp>,
    /// The Event that it has no room for our conditions exists.
    pub warned: bool,
    /// How many others of its parent failed, by cause.
    pub alike: HashMap<String, usize>,
}

impl Snapshot {
    /// A subject of which nothing else is known.
    pub fn of(subject: Arc<Subject>, now: Timestamp) -> Self {
        Self {
            now,
            subject,
            departed: false,
            node: None,
            report: None,
            observation: None,
            looks: Looks::default(),
            signal: None,
            console: ConsoleWatch::default(),
            namespace: String::new(),
            was_pending: false,
            refused_until: None,
            reads_refused_until: None,
            warned: false,
            alike: HashMap::new(),
        }
    }

    /// Karpenter's Event, unless it came because the claim was already being deleted: then it is the
    /// deletion that failed the task which waited for the VM.
    pub fn signal(&self) -> Option<&Signal> {
        let deleting = self.subject.deleting;
        let came_before =
            |signal: &&Signal| deleting.is_none_or(|deleting| signal.stamped <= deleting);
        self.signal.as_ref().filter(came_before)
    }

    /// Whether its Node is there.
    pub fn is_up(&self) -> bool {
        self.subject.registered.is_some() || self.node.as_ref().is_some_and(|node| node.ready)
    }
}
