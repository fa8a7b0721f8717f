//! State in a replica's memory that is stored nowhere else. Losing it costs reads, and causes no wrong
//! decision.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bringup_flex::machine;
use jiff::Timestamp;

/// A failure that a class caused: of one of its machines, or of its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassFailure {
    /// The generation of the class at the failure.
    pub(super) generation: Option<i64>,
    /// Whether Azure denied access. Then the fields of the class are not the cause.
    pub(super) is_access: bool,
    pub(super) what: String,
    pub(super) at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    machines: HashMap<String, machine::Memory>,
    class_failures: BTreeMap<String, ClassFailure>,
    /// The names of Nodes whose bootstrap token was deleted.
    pub(super) tokens_withdrawn: BTreeSet<String>,
}

impl Memory {
    /// Takes a machine's memory for one pass. If the pass is dropped or panics, the memory is lost: then a VM
    /// that may have been requested is read first.
    pub(super) fn take_machine(&mut self, name: &str) -> machine::Memory {
        self.machines.remove(name).unwrap_or_default()
    }

    pub(super) fn keep_machine(&mut self, name: &str, memory: machine::Memory) {
        if memory == machine::Memory::default() {
            self.machines.remove(name);
        } else {
            self.machines.insert(name.to_owned(), memory);
        }
    }

    pub(super) fn class_failure(&self, class: &str) -> Option<ClassFailure> {
        self.class_failures.get(class).cloned()
    }

    /// Stores a failure of a class. Returns false if it is known already.
    pub(super) fn keep_class_failure(&mut self, class: &str, failure: ClassFailure) -> bool {
        // A failed machine is reconciled repeatedly, always with the same failure.
        let is_new = self.class_failures.get(class).is_none_or(|known| known.at < failure.at);
        if is_new {
            self.class_failures.insert(class.to_owned(), failure);
        }
        is_new
    }
}
