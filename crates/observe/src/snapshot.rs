//! Everything that a decision about a subject depends on, read at one moment. Decisions are functions of a
//! snapshot alone: [`crate::judge`] makes the verdict, [`crate::plan`] chooses the next step.

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
    /// The Node's name.
    pub name: String,
    /// Whether the Node is ready, as its kubelet reports.
    pub ready: bool,
}

/// Karpenter's Event that a claim's VM failed. Karpenter cuts its text before the text states the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// When the API server received the Event, by that server's clock. Deletion timestamps use the same
    /// clock.
    pub stamped: Timestamp,
    /// When the watch delivered the Event, by this process's clock.
    pub heard: Timestamp,
    /// The Event's note.
    pub text: String,
}

/// How often this process has looked at a subject, by occasion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looks {
    /// Looks before its Node joined.
    pub pending: usize,
    /// Looks since its Node joined.
    pub joined: usize,
    /// Looks because of Karpenter's Event.
    pub signalled: usize,
    /// The time of the provider's failure that the last look was made for.
    pub provider_failure: Option<Timestamp>,
    /// Looks because the subject was being deleted.
    pub deleting: usize,
}

/// Everything that is known of a subject at a moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The time of this snapshot.
    pub now: Timestamp,
    /// The subject.
    pub subject: Arc<Subject>,
    /// Whether the subject no longer exists.
    pub departed: bool,
    /// The subject's Node.
    pub node: Option<Joined>,
    /// The subject's report.
    pub report: Option<Arc<BootstrapReport>>,
    /// The result of the last look, with its diagnosis.
    pub observation: Option<Arc<Observation>>,
    /// How often the subject was looked at.
    pub looks: Looks,
    /// Karpenter's Event about the subject.
    pub signal: Option<Signal>,
    /// The result of watching the subject's console.
    pub console: ConsoleWatch,
    /// The namespace for reports about cluster-scoped subjects.
    pub namespace: String,
    /// Whether the subject was pending at some moment while this process observed it.
    pub was_pending: bool,
    /// Set if writing our conditions failed: the time of the next attempt.
    pub refused_until: Option<Timestamp>,
    /// Set while Azure refuses reads of the VM: the end of the refusal.
    pub reads_refused_until: Option<Timestamp>,
    /// Whether the Event exists that the subject has no room for our conditions.
    pub warned: bool,
    /// How many other subjects of the same parent failed, by cause.
    pub alike: HashMap<String, usize>,
}

impl Snapshot {
    /// A snapshot that contains only the subject.
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

    /// Karpenter's Event, unless the Event came after the claim's deletion began: then the deletion itself
    /// made the task fail that waited for the VM.
    pub fn signal(&self) -> Option<&Signal> {
        let deleting = self.subject.deleting;
        let came_before =
            |signal: &&Signal| deleting.is_none_or(|deleting| signal.stamped <= deleting);
        self.signal.as_ref().filter(came_before)
    }

    /// Whether the subject's Node exists.
    pub fn is_up(&self) -> bool {
        self.subject.registered.is_some() || self.node.as_ref().is_some_and(|node| node.ready)
    }
}
