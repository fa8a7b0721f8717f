//! What is different between kinds of subjects, in one place: where they are served, how an object
//! becomes a subject, and what is watched for it. Whoever adds a kind adds it here and at its door
//! ([`crate::claims`], [`crate::machines`]).

use std::sync::Arc;

use bringup_objects::NodeClaim;
use bringup_objects::cluster_api::{GROUP, INFRASTRUCTURE};
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use serde::de::DeserializeOwned;

use crate::claims::{self, NodeClassKind};
use crate::machines::Land;
use crate::subject::{Kind, Subject};

/// How objects become subjects.
#[derive(Debug, Clone)]
pub struct Kinds {
    classes: Arc<Vec<NodeClassKind>>,
    /// What is known of machines.
    pub land: Arc<Land>,
}

impl Kinds {
    /// Claims of these classes, and machines.
    pub fn new(classes: Vec<NodeClassKind>, land: Land) -> Self {
        Self { classes: Arc::new(classes), land: Arc::new(land) }
    }

    /// Where a kind is served.
    pub fn resource(kind: Kind) -> ApiResource {
        match kind {
            Kind::NodeClaim => ApiResource::erase::<NodeClaim>(&()),
            Kind::Machine => machine_resource(),
        }
    }

    /// An object as a subject; none if it is none of ours.
    pub fn subject(&self, kind: Kind, object: DynamicObject) -> Option<Subject> {
        match kind {
            Kind::NodeClaim => self.claim(&read(object)?),
            Kind::Machine => self.land.machine_seen(read(object)?),
        }
    }

    /// A claim as a subject.
    pub fn claim(&self, claim: &NodeClaim) -> Option<Subject> {
        claims::subject(claim, &self.classes)
    }
}

/// Machines of Cluster API.
pub fn machine_resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(GROUP, "v1beta2", Kind::Machine.word());
    ApiResource::from_gvk_with_plural(&kind, "machines")
}

/// An object of the Azure provider.
pub fn provided_resource(kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_ascii_lowercase());
    let kind = GroupVersionKind::gvk(INFRASTRUCTURE, "v1beta1", kind);
    ApiResource::from_gvk_with_plural(&kind, &plural)
}

/// An object by what is looked at of it. One that makes no sense is none.
pub fn read<T: DeserializeOwned>(object: DynamicObject) -> Option<T> {
    serde_json::to_value(object).and_then(serde_json::from_value).ok()
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;

    #[test]
    fn resources_are_served_where_the_providers_serve_them() {
        let machine = machine_resource();
        assert_eq!(
            (machine.api_version.as_str(), machine.plural.as_str()),
            ("cluster.x-k8s.io/v1beta2", "machines")
        );
        let pool = provided_resource("AzureMachinePoolMachine");
        assert_eq!(pool.plural, "azuremachinepoolmachines");
        assert_eq!(Kinds::resource(Kind::NodeClaim).plural, "nodeclaims");
        assert_eq!(NodeClaim::kind(&()), "NodeClaim");
    }
}
