//! What is observed: something that is to become a node. A NodeClaim is one kind of it; whatever
//! else becomes one is turned into this at the door, and everything behind is the same.

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

/// What a subject belongs to, which outlives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parent {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it is in one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// How far the creation of the VM has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// It was not asked for yet.
    NotYet,
    /// It may exist since then: this is not confirmed.
    Expected(Timestamp),
    /// It was asked for, and accepted.
    Accepted(Timestamp),
    /// It was asked for, and refused with this text.
    Refused {
        /// When.
        at: Timestamp,
        /// What was said.
        message: String,
    },
}

/// Where the VM is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Not known yet.
    NotSaid,
    /// There.
    Known(ProviderId),
    /// What was said makes no sense.
    Malformed(String),
}

/// Something that is to become a node, as Kubernetes shows it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// How subjects of its kind are treated.
    pub profile: &'static Profile,
    /// How its conditions look, and where it is served.
    pub shape: Arc<Shape>,
    /// Its namespace, if it is in one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version that this was read from.
    pub resource_version: String,
    /// The version of what was asked for.
    pub generation: Option<i64>,
    /// When it was created.
    pub created: Timestamp,
    /// When its deletion began.
    pub deleting: Option<Timestamp>,
    /// It is of a control plane: what makes a Node of it may only come once that is up.
    pub is_control_plane: bool,
    /// What it belongs to.
    pub parent: Option<Parent>,
    /// How far the creation of the VM has come.
    pub launch: Launch,
    /// When its Node was recognised.
    pub registered: Option<Timestamp>,
    /// Where the VM is.
    pub place: Place,
    /// The AzureFlexNodeClass that its VM is made from, if it is.
    pub flex_class: Option<String>,
    /// The AKS machine it is, in the mode in which AKS makes the VM.
    pub machine: Option<MachineId>,
    /// The Node's name.
    pub node_name: Option<String>,
    /// The image's id.
    pub image: Option<String>,
    /// What its labels say.
    pub labels: Labels,
    /// The conditions on it that are ours.
    pub conditions: Vec<Condition>,
    /// From when on its time counts; absent: from when Azure says that its VM was made.
    pub counted_from: Option<Timestamp>,
    /// After how long everything is read that can be, and judged.
    pub allowed: SignedDuration,
    /// Whether it takes our conditions: there may be as many as it holds.
    pub has_room: bool,
    /// Why controllers must not write to it now: it is paused, or what it belongs to is.
    pub held: Option<String>,
    /// The host of the API server that it is to join, if that is known.
    pub api_server: Option<String>,
    /// Since when its provider says that something has failed: a reason to look, and no proof.
    pub provider_failure: Option<Timestamp>,
    /// What is wrong with the provider's object behind it.
    pub trouble: Option<String>,
    /// Another object that is to say the same.
    pub mirror: Option<Box<Mirror>>,
}

/// An object of a provider that is to say the same as its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// What it is, and how its conditions look.
    pub shape: Arc<Shape>,
    /// Its name; its namespace is that of the subject.
    pub name: String,
    /// What it says now.
    pub condition: Option<AnyCondition>,
}

/// What a subject's labels say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The VM's size.
    pub size: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Spot or on-demand.
    pub capacity: Option<String>,
    /// The operating system.
    pub os: Option<String>,
    /// The cluster of a machine.
    pub cluster: Option<String>,
}

/// A guest agent that has not reported until now will not.
pub const AGENT_LIMIT: SignedDuration = SignedDuration::from_mins(10);
/// How long after its creation a claim may take until Karpenter deletes it.
pub const REGISTRATION_LIMIT: SignedDuration = SignedDuration::from_mins(15);

impl Subject {
    /// The same with times that can be: they come from objects that others write.
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

    /// Whether it has to be observed: its VM was requested, and its Node does not exist.
    pub fn is_pending(&self) -> bool {
        self.registered.is_none() && self.launched().is_some()
    }

    /// When its VM was accepted, or may have been.
    pub fn launched(&self) -> Option<Timestamp> {
        match self.launch {
            Launch::Expected(at) | Launch::Accepted(at) => Some(at),
            Launch::NotYet | Launch::Refused { .. } => None,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.profile.kind
    }

    /// Whether the result of the bootstrap is on the console from the start, because its VM needs no
    /// extension: one that this controller provisioned, or one of Cluster API.
    pub fn has_console(&self) -> bool {
        let is_flex = matches!(&self.place, Place::Known(id) if id.scheme == Scheme::AzureFlex);
        is_flex || self.profile.console_decides
    }

    /// When everything is read that can be, and judged.
    pub fn deadline(&self, seen: Option<&Observation>) -> Timestamp {
        self.counted_from.unwrap_or_else(|| self.born(seen)).plus(self.allowed)
    }

    /// When a guest agent that has not reported is said to be silent.
    pub fn agent_deadline(&self, seen: Option<&Observation>) -> Timestamp {
        self.born(seen).plus(AGENT_LIMIT)
    }

    /// When its VM was made, as far as that is known. It may have been waited for much longer.
    fn born(&self, seen: Option<&Observation>) -> Timestamp {
        let made = seen.and_then(|seen| seen.facts.made);
        made.or(self.launched()).unwrap_or(self.created)
    }

    /// Whether its VM may not have been created yet, as far as is known.
    pub fn may_not_exist(&self, seen: &Observation) -> bool {
        matches!(self.launch, Launch::Expected(_))
            && matches!(seen.vm, Vm::NotSeen | Vm::Gone)
            && seen.facts.made.is_none()
    }

    /// The name of the VM, as far as it is known.
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
