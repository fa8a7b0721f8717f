//! An existing object that becomes a node: a NodeClaim, or a Machine of Cluster API.

use bringup_objects::NodeClaim;
use bringup_objects::cluster_api::{AnyCondition, Machine};
use bringup_objects::condition::{Condition, OURS, find, karpenter};
use bringup_objects::karpenter::POOL_LABEL;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::images::Image;

#[derive(Debug)]
pub(crate) enum Object {
    Claim(NodeClaim),
    Machine(Machine),
}

/// An object that becomes a node.
#[derive(Debug)]
pub(crate) struct Living {
    pub(crate) object: Object,
    /// The conditions of all writers.
    conditions: Vec<Condition>,
}

impl From<NodeClaim> for Living {
    fn from(claim: NodeClaim) -> Self {
        let status = claim.status.as_ref();
        let conditions = status.map(|status| status.conditions.clone()).unwrap_or_default();
        Self { object: Object::Claim(claim), conditions }
    }
}

impl From<Machine> for Living {
    fn from(machine: Machine) -> Self {
        let conditions = machine.status.conditions.iter().map(AnyCondition::plain).collect();
        Self { object: Object::Machine(machine), conditions }
    }
}

impl Living {
    fn meta(&self) -> &ObjectMeta {
        match &self.object {
            Object::Claim(claim) => &claim.metadata,
            Object::Machine(machine) => &machine.metadata,
        }
    }

    /// The UID, which differs from the UID of a later object with the same name.
    pub(crate) fn uid(&self) -> Option<&str> {
        self.meta().uid.as_deref()
    }

    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.meta().creation_timestamp.as_ref().map(|time| time.0)
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_leaving(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        find(&self.conditions, kind)
    }

    /// Whether bringup has written a condition to the object.
    pub(crate) fn is_watched(&self) -> bool {
        OURS.iter().any(|kind| self.condition(kind).is_some())
    }

    /// Whether the Node exists.
    pub(crate) fn has_joined(&self) -> bool {
        match &self.object {
            Object::Claim(_) => {
                self.condition(karpenter::REGISTERED).is_some_and(|held| held.status == "True")
            }
            Object::Machine(_) => self.node_name().is_some(),
        }
    }

    /// The conditions of other controllers, which show the progress.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Condition> {
        let kinds: &[&str] = match &self.object {
            Object::Claim(_) => &[karpenter::LAUNCHED, karpenter::REGISTERED],
            Object::Machine(_) => {
                &["BootstrapConfigReady", "BootstrapReady", "InfrastructureReady", "NodeReady"]
            }
        };
        kinds.iter().filter_map(|kind| self.condition(kind))
    }

    /// The pool of a NodeClaim.
    pub(crate) fn pool(&self) -> Option<&str> {
        match &self.object {
            Object::Claim(claim) => claim.labels().get(POOL_LABEL).map(String::as_str),
            Object::Machine(_) => None,
        }
    }

    /// The cluster of a Machine.
    pub(crate) fn cluster(&self) -> Option<&str> {
        match &self.object {
            Object::Claim(_) => None,
            Object::Machine(machine) => Some(machine.spec.cluster_name.as_str()),
        }
    }

    pub(crate) fn image(&self) -> Option<Image> {
        match &self.object {
            Object::Claim(claim) => Image::of_id(claim.status.as_ref()?.image_id.as_deref()?),
            Object::Machine(_) => None,
        }
    }

    pub(crate) fn node_name(&self) -> Option<&str> {
        let name = match &self.object {
            Object::Claim(claim) => claim.status.as_ref()?.node_name.as_deref()?,
            Object::Machine(machine) => machine.status.node_ref.as_ref()?.name.as_str(),
        };
        Some(name).filter(|name| !name.is_empty())
    }
}
