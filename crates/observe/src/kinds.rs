//! The differences between kinds of subjects, in one place: how an object becomes a subject, and which
//! objects are watched. To add a kind, add it here and as a module such as [`crate::claims`] or
//! [`crate::machines`].

use std::sync::Arc;

use bringup_objects::NodeClaim;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use crate::claims::{self, NodeClassKind};
use crate::machines::MachineIndex;
use crate::profile::Kind;
use crate::subject::Subject;

/// Converts objects to subjects.
#[derive(Debug, Clone)]
pub struct Kinds {
    classes: Arc<Vec<NodeClassKind>>,
    /// The index of Machines and the objects behind them.
    pub machines: Arc<MachineIndex>,
}

impl Kinds {
    /// Handles claims of these classes, and Machines.
    pub fn new(classes: Vec<NodeClassKind>, machines: MachineIndex) -> Self {
        Self { classes: Arc::new(classes), machines: Arc::new(machines) }
    }

    /// An object as a subject; none if the controller does not handle the object.
    pub fn subject(&self, kind: Kind, object: DynamicObject) -> Option<Subject> {
        match kind {
            Kind::NodeClaim => self.claim(&read(object)?),
            Kind::Machine => self.machines.machine_seen(read(object)?),
        }
    }

    /// A claim as a subject.
    pub fn claim(&self, claim: &NodeClaim) -> Option<Subject> {
        claims::subject(claim, &self.classes)
    }
}

/// A typed view of an object; none if the object does not parse.
pub fn read<T: DeserializeOwned>(object: DynamicObject) -> Option<T> {
    serde_json::to_value(object).and_then(serde_json::from_value).ok()
}
