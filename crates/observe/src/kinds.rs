//! What is different between kinds of subjects, in one place: how an object becomes a subject, and
//! what is watched for it. To add a kind, add it here and at its door ([`crate::claims`],
//! [`crate::machines`]).

use std::sync::Arc;

use bringup_objects::NodeClaim;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use crate::claims::{self, NodeClassKind};
use crate::machines::MachineIndex;
use crate::profile::Kind;
use crate::subject::Subject;

/// How objects become subjects.
#[derive(Debug, Clone)]
pub struct Kinds {
    classes: Arc<Vec<NodeClassKind>>,
    /// What is known of machines.
    pub machines: Arc<MachineIndex>,
}

impl Kinds {
    /// Claims of these classes, and machines.
    pub fn new(classes: Vec<NodeClassKind>, machines: MachineIndex) -> Self {
        Self { classes: Arc::new(classes), machines: Arc::new(machines) }
    }

    /// An object as a subject; none if it is none of ours.
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

/// An object by what is looked at of it. One that makes no sense is none.
pub fn read<T: DeserializeOwned>(object: DynamicObject) -> Option<T> {
    serde_json::to_value(object).and_then(serde_json::from_value).ok()
}
