//! NodeClaims as subjects.

use bringup_azure::{MachineId, ProviderId};
use bringup_diagnosis::redaction::redact;
use bringup_objects::condition::{Condition, OURS, cut, find, karpenter};
use bringup_objects::karpenter::{
    CAPACITY_LABEL, INSTANCE_TYPE_LABEL, MACHINE_ANNOTATION, NodeClaim, POOL_LABEL, REGION_LABEL,
    ZONE_LABEL,
};
use jiff::Timestamp;

use crate::profile::Kind;
use crate::schedule::FORCED;
use crate::shape::Shape;
use crate::subject::{Labels, Launch, Parent, Place, Subject};

/// A kind of NodeClass whose claims the controller handles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeClassKind {
    /// The API group of the class.
    pub group: String,
    /// The kind of the class.
    pub kind: String,
}

/// The error for a text that is not `GROUP/KIND`.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "`{0}` is not a kind of class: expected GROUP/KIND, such as karpenter.azure.com/AKSNodeClass"
)]
pub struct NotANodeClassKind(String);

impl std::str::FromStr for NodeClassKind {
    type Err = NotANodeClassKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((group, kind)) if !group.is_empty() && !kind.is_empty() && !kind.contains('/') => {
                Ok(Self { group: group.to_owned(), kind: kind.to_owned() })
            }
            _ => Err(NotANodeClassKind(text.to_owned())),
        }
    }
}

/// The classes that the controller handles by default.
pub fn default_classes() -> Vec<NodeClassKind> {
    [("karpenter.azure.com", "AKSNodeClass"), ("flex.aks.azure.com", "AzureFlexNodeClass")]
        .map(|(group, kind)| NodeClassKind { group: group.to_owned(), kind: kind.to_owned() })
        .into()
}

/// The claim as a subject; none if the controller does not handle its class.
pub fn subject(claim: &NodeClaim, classes: &[NodeClassKind]) -> Option<Subject> {
    let class = &claim.spec.node_class_ref;
    if !classes.iter().any(|ours| ours.group == class.group && ours.kind == class.kind) {
        return None;
    }
    let meta = &claim.metadata;
    let status = claim.status.clone().unwrap_or_default();
    let label = |name: &str| meta.labels.as_ref()?.get(name).cloned();
    let pool = label(POOL_LABEL);
    let parent = match &pool {
        Some(pool) => Parent {
            group: "karpenter.sh".to_owned(),
            kind: "NodePool".to_owned(),
            namespace: None,
            name: pool.clone(),
        },
        None => Parent {
            group: class.group.clone(),
            kind: class.kind.clone(),
            namespace: None,
            name: class.name.clone(),
        },
    };
    let created = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0);
    let machine = meta
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(MACHINE_ANNOTATION))
        .and_then(|id| id.parse::<MachineId>().ok());
    Some(Subject {
        profile: Kind::NodeClaim.profile(),
        shape: Shape::of_claims(),
        namespace: None,
        name: meta.name.clone()?,
        uid: meta.uid.clone()?,
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        generation: meta.generation,
        created,
        deleting: meta.deletion_timestamp.as_ref().map(|at| at.0),
        parent: Some(parent),
        launch: launch(&status.conditions, pool.is_some()),
        registered: find(&status.conditions, karpenter::REGISTERED)
            .filter(|registered| registered.status == "True")
            .map(|registered| registered.last_transition_time.0),
        place: place(status.provider_id.as_deref()),
        flex_class: (class.kind == "AzureFlexNodeClass").then(|| class.name.clone()),
        machine,
        node_name: status.node_name.clone().filter(|name| !name.is_empty()),
        image: status.image_id.clone().filter(|image| !image.is_empty()),
        labels: Labels {
            size: label(INSTANCE_TYPE_LABEL),
            zone: label(ZONE_LABEL),
            region: label(REGION_LABEL),
            capacity: label(CAPACITY_LABEL),
            os: label("kubernetes.io/os"),
            cluster: None,
        },
        conditions: status
            .conditions
            .into_iter()
            .filter(|condition| OURS.contains(&condition.type_.as_str()))
            .collect(),
        is_control_plane: false,
        counted_from: Some(created),
        allowed: FORCED,
        has_room: true,
        held: None,
        api_server: None,
        provider_failure: None,
        trouble: None,
        mirror: None,
    })
}

/// Only a claim without a pool carries the reason in its condition: Karpenter deletes the others.
fn launch(conditions: &[Condition], has_pool: bool) -> Launch {
    match find(conditions, karpenter::LAUNCHED) {
        Some(launched) if launched.status == "True" => {
            Launch::Accepted(launched.last_transition_time.0)
        }
        Some(refused)
            if refused.reason == karpenter::CREATE_INSTANCE_FAILED
                && !has_pool
                && !refused.message.is_empty() =>
        {
            Launch::Refused { at: refused.last_transition_time.0, message: refused.message.clone() }
        }
        _ => Launch::NotYet,
    }
}

fn place(provider_id: Option<&str>) -> Place {
    match provider_id {
        None | Some("") => Place::NotSaid,
        Some(id) => match id.parse::<ProviderId>() {
            Ok(id) => Place::Known(id),
            Err(error) => {
                let why = redact(&format!("status.providerID: {error}")).text.into_string();
                Place::Malformed(cut(&why, 300))
            }
        },
    }
}
