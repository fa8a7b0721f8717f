//! A subject: an object that becomes a node. A NodeClaim is one kind of subject. Objects of each kind are
//! converted to [`Subject`] where they are read, and all other code handles only that type.

use std::sync::Arc;

use bringup_azure::id::Scheme;
use bringup_azure::{InstanceId, MachineId, ProviderId};
use bringup_contract::bounds::{self, TimeMath as _};
use bringup_objects::cluster_api::AnyCondition;
use bringup_objects::condition::Condition;
use jiff::{SignedDuration, Timestamp};

use crate::observation::{Observation, Vm};
use crate::profile::{Kind, Profile};
use crate::shape::Shape;

/// The object that a subject belongs to, and that outlives the subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    /// The parent's API group.
    pub group: String,
    /// The parent's kind.
    pub kind: String,
    /// The parent's namespace; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// The parent's name.
    pub name: String,
}

/// The progress of the VM's creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// The VM was not requested yet.
    NotYet,
    /// The VM may exist since this time, without confirmation.
    Expected(Timestamp),
    /// The VM was requested, and Azure accepted the request at this time.
    Accepted(Timestamp),
    /// The VM was requested, and Azure refused the request.
    Refused {
        /// The time of the refusal.
        at: Timestamp,
        /// The error message.
        message: String,
    },
}

/// The location of the VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The location is not known yet.
    NotSaid,
    /// The location in this provider ID.
    Known(ProviderId),
    /// The provider ID could not be parsed, for this reason.
    Malformed(String),
}

/// An object that becomes a node, as Kubernetes shows it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// How the observer treats subjects of this kind.
    pub profile: &'static Profile,
    /// The shape of the subject's conditions, and the version that is served.
    pub shape: Arc<Shape>,
    /// The subject's namespace; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// The subject's name.
    pub name: String,
    /// The subject's uid.
    pub uid: String,
    /// The resource version of the object that was read.
    pub resource_version: String,
    /// The generation of the object's spec.
    pub generation: Option<i64>,
    /// When the subject was created.
    pub created: Timestamp,
    /// When the subject's deletion began.
    pub deleting: Option<Timestamp>,
    /// Whether the subject belongs to a control plane. Its Node may register only once that control plane
    /// runs.
    pub is_control_plane: bool,
    /// The object that the subject belongs to.
    pub parent: Option<Parent>,
    /// The progress of the VM's creation.
    pub launch: Launch,
    /// When the Node was recognised as the subject's.
    pub registered: Option<Timestamp>,
    /// The location of the VM.
    pub place: Place,
    /// The AzureFlexNodeClass that the VM is created from, if any.
    pub flex_class: Option<String>,
    /// The AKS machine that the subject is, in the mode in which AKS creates the VM.
    pub machine: Option<MachineId>,
    /// The name of the subject's Node.
    pub node_name: Option<String>,
    /// The ID of the VM's image.
    pub image: Option<String>,
    /// The values of well-known labels.
    pub labels: Labels,
    /// The conditions that bringup wrote on the subject.
    pub conditions: Vec<Condition>,
    /// When the time to the deadline starts; absent: when Azure created the VM.
    pub counted_from: Option<Timestamp>,
    /// The time from that start to the deadline, at which all sources are read and a verdict is made.
    pub allowed: SignedDuration,
    /// Whether our conditions fit on the subject: an object may have a limited number of conditions.
    pub has_room: bool,
    /// Why controllers must not write to the subject now: the subject or its parent is paused.
    pub held: Option<String>,
    /// The host of the API server that the subject joins, if known.
    pub api_server: Option<String>,
    /// The time of the failure that the provider reports: a reason to look, and no proof.
    pub provider_failure: Option<Timestamp>,
    /// The problem with the provider's object behind the subject, if any.
    pub trouble: Option<String>,
    /// Another object that gets the same condition.
    pub mirror: Option<Box<Mirror>>,
}

/// A provider's object that gets the same condition as its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The object's kind, and the shape of its conditions.
    pub shape: Arc<Shape>,
    /// The object's name; its namespace is that of the subject.
    pub name: String,
    /// The object's present condition.
    pub condition: Option<AnyCondition>,
}

/// The values of a subject's well-known labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The VM's size.
    pub size: Option<String>,
    /// The VM's zone.
    pub zone: Option<String>,
    /// The VM's region.
    pub region: Option<String>,
    /// The capacity type: spot or on-demand.
    pub capacity: Option<String>,
    /// The operating system.
    pub os: Option<String>,
    /// The name of a Machine's Cluster.
    pub cluster: Option<String>,
}

/// How long a guest agent may take to report. An agent that is silent for longer never reports.
pub const AGENT_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// The time from a claim's creation until Karpenter deletes the claim because no Node registered.
pub const REGISTRATION_LIMIT: SignedDuration = SignedDuration::from_mins(15);

impl Subject {
    /// The subject with bounded times, because other writers control them.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.created = bounds::time(self.created);
        self.deleting = self.deleting.map(bounds::time);
        self.registered = self.registered.map(bounds::time);
        self.counted_from = self.counted_from.map(bounds::time);
        self.provider_failure = self.provider_failure.map(bounds::time);
        match &mut self.launch {
            Launch::NotYet => {}
            Launch::Expected(at) | Launch::Accepted(at) | Launch::Refused { at, .. } => {
                *at = bounds::time(*at);
            }
        }
        self
    }

    /// Whether the subject has to be observed: its VM was requested, and its Node does not exist.
    pub fn is_pending(&self) -> bool {
        self.registered.is_none() && self.launched().is_some()
    }

    /// When Azure accepted the VM, or may have accepted it.
    pub fn launched(&self) -> Option<Timestamp> {
        match self.launch {
            Launch::Expected(at) | Launch::Accepted(at) => Some(at),
            Launch::NotYet | Launch::Refused { .. } => None,
        }
    }

    /// The kind of the subject's object.
    pub fn kind(&self) -> Kind {
        self.profile.kind
    }

    /// Whether the console shows the result of the bootstrap from the start, because the VM needs no
    /// extension: a VM that this controller provisioned, or one of Cluster API.
    pub fn has_console(&self) -> bool {
        let is_flex = matches!(&self.place, Place::Known(id) if id.scheme == Scheme::AzureFlex);
        is_flex || self.profile.console_decides
    }

    /// When all sources are read and a verdict is made.
    pub fn deadline(&self, seen: Option<&Observation>) -> Timestamp {
        self.counted_from.unwrap_or_else(|| self.born(seen)).plus(self.allowed)
    }

    /// When a guest agent that has not reported counts as silent.
    pub fn agent_deadline(&self, seen: Option<&Observation>) -> Timestamp {
        self.born(seen).plus(AGENT_LIMIT)
    }

    /// When the VM was created, as far as known. The request for the VM may have waited much longer.
    fn born(&self, seen: Option<&Observation>) -> Timestamp {
        let made = seen.and_then(|seen| seen.facts.made);
        made.or(self.launched()).unwrap_or(self.created)
    }

    /// Whether the VM may not have been created yet, as far as known.
    pub fn may_not_exist(&self, seen: &Observation) -> bool {
        matches!(self.launch, Launch::Expected(_))
            && matches!(seen.vm, Vm::NotSeen | Vm::Gone)
            && seen.facts.made.is_none()
    }

    /// The name of the VM, as far as known.
    pub fn vm_name(&self) -> Option<String> {
        match &self.place {
            Place::Known(id) => match &id.instance {
                InstanceId::VirtualMachine(vm) => Some(vm.name.to_string()),
                InstanceId::ScaleSetInstance(vm) => {
                    Some(format!("{}_{}", vm.scale_set, vm.instance))
                }
            },
            Place::NotSaid | Place::Malformed(_) => None,
        }
    }
}
