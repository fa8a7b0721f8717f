//! What a replica remembers and stores nowhere. Without it more is read, and nothing is done wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bringup_flex::machine;
use jiff::Timestamp;

/// A failure that is the fault of a class: of one of its machines, or of its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassFailure {
    /// The generation of the class at that time.
    pub(super) generation: Option<i64>,
    /// Azure denied access: the fields of the class are not at fault.
    pub(super) is_access: bool,
    pub(super) what: String,
    pub(super) at: Timestamp,
}

/// The memory of a replica.
#[derive(Debug, Default)]
pub(super) struct Memory {
    machines: HashMap<String, machine::Memory>,
    class_failures: BTreeMap<String, ClassFailure>,
    /// Nodes whose bootstrap token was withdrawn.
    pub(super) tokens_withdrawn: BTreeSet<String>,
}

impl Memory {
    /// Takes out what is remembered of a machine, for one pass. A pass that is dropped or panics
    /// leaves nothing: then a VM that may have been requested is read first.
    pub(super) fn take_machine(&mut self, name: &str) -> machine::Memory {
        self.machines.remove(name).unwrap_or_default()
    }

    /// Remembers this of a machine.
    pub(super) fn keep_machine(&mut self, name: &str, memory: machine::Memory) {
        if memory == machine::Memory::default() {
            self.machines.remove(name);
        } else {
            self.machines.insert(name.to_owned(), memory);
        }
    }

    /// The last failure that was the fault of a class.
    pub(super) fn class_failure(&self, class: &str) -> Option<ClassFailure> {
        self.class_failures.get(class).cloned()
    }

    /// Remembers a failure of a class, unless it is known. Whether it was not.
    pub(super) fn keep_class_failure(&mut self, class: &str, failure: ClassFailure) -> bool {
        // The same machine is reconciled again and again.
        let is_new = self.class_failures.get(class).is_none_or(|known| known.at < failure.at);
        if is_new {
            self.class_failures.insert(class.to_owned(), failure);
        }
        is_new
    }
}
