//! Everything that is seen of a subject, held while it is decided what to do.

use std::collections::HashMap;
use std::sync::Arc;

use bringup_objects::Node;
use bringup_objects::report::BootstrapReport;
use jiff::Timestamp;

use crate::cluster::joined;
use crate::judge::Signal;
use crate::listening::Ear;
use crate::memory::Memory;
use crate::plan::Snapshot;
use crate::subject::Subject;

/// Everything that is seen of a subject.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) subject: Arc<Subject>,
    pub(crate) departed: bool,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) report: Option<Arc<BootstrapReport>>,
    pub(crate) signal: Option<Signal>,
    pub(crate) memory: Memory,
    pub(crate) ear: Ear,
    pub(crate) alike: HashMap<String, usize>,
}

impl View {
    /// As a decision sees it.
    pub(crate) fn snapshot<'a>(&'a self, now: Timestamp, namespace: &'a str) -> Snapshot<'a> {
        Snapshot {
            now,
            subject: &self.subject,
            departed: self.departed,
            node: self.node.as_deref().map(joined),
            report: self.report.as_deref(),
            observation: self.memory.observation.as_deref(),
            looks: self.memory.looks,
            signal: self.signal.as_ref(),
            ear: self.ear,
            namespace,
            was_pending: self.memory.was_pending,
            refused_until: self.memory.refused.map(|(until, _)| until),
            reads_refused_until: self.memory.reads_refused_until,
            warned: self.memory.warned,
            alike: &self.alike,
        }
    }
}
