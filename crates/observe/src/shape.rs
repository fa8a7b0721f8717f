//! How conditions look on a kind of object, and how they must be written. Both depend on the kind's
//! definition, which differs between versions and changes with upgrades.

mod schema;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bringup_objects::NodeClaim;
use bringup_objects::cluster_api::{AnyCondition, GROUP, INFRASTRUCTURE, MOST_CONDITIONS};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition, Status};
use kube::core::{ApiResource, GroupVersionKind};
use tokio::sync::{Notify, watch};

pub use schema::Schemas;

/// The kind Machine of Cluster API.
pub const MACHINE: &str = "Machine";
/// The kind Cluster of Cluster API.
pub const CLUSTER: &str = "Cluster";
/// The kinds whose definitions differ between versions, with their groups.
pub const FOLLOWED: [(&str, &str); 6] = [
    (GROUP, MACHINE),
    (GROUP, CLUSTER),
    (INFRASTRUCTURE, "AzureMachine"),
    (INFRASTRUCTURE, "AzureMachinePoolMachine"),
    (INFRASTRUCTURE, "AzureMachinePool"),
    (INFRASTRUCTURE, "AzureCluster"),
];

/// How the API server merges a list of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// As one value: each write replaces the conditions of all writers.
    Whole,
    /// By type: each writer owns its own entries.
    ByType,
}

/// How conditions look on a kind of object, in the version that is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The group, version and kind that the API server serves.
    pub resource: ApiResource,
    /// How the API server merges the list.
    pub list: List,
    /// Whether the conditions have the old shape, with a severity and without empty texts.
    pub has_severity: bool,
    /// The most conditions in the list.
    pub most: Option<usize>,
}

impl Shape {
    /// The assumed shape of a Cluster API kind until its served version is known.
    pub fn assumed(kind: &str) -> Self {
        let (group, version) = match kind {
            MACHINE | CLUSTER => (GROUP, "v1beta2"),
            _ => (INFRASTRUCTURE, "v1beta1"),
        };
        Self::assumed_of(resource(group, version, kind))
    }

    /// The assumed shape of a kind in a version until its schema was read.
    pub fn assumed_of(resource: ApiResource) -> Self {
        let is_old = resource.version == "v1beta1";
        Self {
            resource,
            list: if is_old { List::Whole } else { List::ByType },
            has_severity: is_old,
            most: (!is_old).then_some(MOST_CONDITIONS),
        }
    }

    /// The shape of conditions on NodeClaims.
    pub fn of_claims() -> Arc<Self> {
        static CLAIMS: LazyLock<Arc<Shape>> = LazyLock::new(|| {
            Arc::new(Shape {
                resource: ApiResource::erase::<NodeClaim>(&()),
                list: List::ByType,
                has_severity: false,
                most: None,
            })
        });
        CLAIMS.clone()
    }

    /// A condition in this shape. Only a verdict has the severity of an error.
    pub fn shaped(&self, condition: &Condition) -> AnyCondition {
        let Condition { type_, status, reason, message, last_transition_time, observed_generation } =
            condition.clone();
        let is_verdict = type_ == BOOTSTRAP_SUCCEEDED;
        let severity = if is_verdict { "Error" } else { "Info" };
        let is_false = status == Status::False.word();
        let text = |text: String| Some(text).filter(|it| !self.has_severity || !it.is_empty());
        AnyCondition {
            kind: type_,
            status,
            severity: (self.has_severity && is_false).then(|| severity.to_owned()),
            reason: text(reason),
            message: text(message),
            last_transition_time: Some(last_transition_time),
            observed_generation: observed_generation.filter(|_| !self.has_severity),
        }
    }
}

/// A Cluster API kind in one version.
fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_ascii_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural)
}

/// The shapes of all watched kinds, as far as known.
#[derive(Debug)]
pub struct Shapes {
    known: watch::Sender<BTreeMap<String, Arc<Shape>>>,
    doubt: Notify,
}

impl Default for Shapes {
    /// Assumes every shape.
    fn default() -> Self {
        let assumed = FOLLOWED.map(|(_, kind)| (kind.to_owned(), Arc::new(Shape::assumed(kind))));
        Self { known: watch::Sender::new(assumed.into()), doubt: Notify::new() }
    }
}

impl Shapes {
    /// The shape of a kind.
    pub fn of(&self, kind: &str) -> Arc<Shape> {
        let known = self.known.borrow().get(kind).cloned();
        known.unwrap_or_else(|| Arc::new(Shape::assumed(kind)))
    }

    /// Stores the shape from a kind's definition.
    pub fn found(&self, shape: &Shape) {
        self.known.send_if_modified(|known| {
            let kind = &shape.resource.kind;
            let is_new = known.get(kind).is_none_or(|known| **known != *shape);
            if is_new {
                known.insert(kind.clone(), Arc::new(shape.clone()));
            }
            is_new
        });
    }

    /// Waits until the shape of a kind differs from this one.
    pub async fn other_than(&self, shape: &Shape) {
        let differs = |known: &BTreeMap<String, Arc<Shape>>| {
            known.get(&shape.resource.kind).is_some_and(|known| **known != *shape)
        };
        // Cannot fail: `self` holds the sender.
        let _ = self.known.subscribe().wait_for(differs).await;
    }

    /// Requests that the definitions are read again, because the known shape does not match the API server's
    /// answers.
    pub fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Waits until [`Self::doubt`] is called.
    pub async fn doubted(&self) {
        self.doubt.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use bringup_objects::cluster_api::REPLACEMENT_USEFUL;
    use bringup_objects::condition::condition;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn written(shape: &Shape, condition: &Condition) -> serde_json::Value {
        let mut written = serde_json::to_value(shape.shaped(condition)).unwrap();
        written.as_object_mut().unwrap().remove("lastTransitionTime");
        written
    }

    #[test]
    fn the_old_shape_has_a_severity_and_no_empty_texts_and_the_new_one_the_reverse() {
        let (old, new) = (Shape::assumed("AzureMachine"), Shape::assumed(MACHINE));
        let at = Timestamp::UNIX_EPOCH;
        let mut verdict = condition(BOOTSTRAP_SUCCEEDED, Status::False, "DiskFull", "", at);
        verdict.observed_generation = Some(3);
        assert_eq!(
            written(&old, &verdict),
            json!({ "type": BOOTSTRAP_SUCCEEDED, "status": "False", "severity": "Error", "reason": "DiskFull" })
        );
        assert_eq!(
            written(&new, &verdict),
            json!({ "type": BOOTSTRAP_SUCCEEDED, "status": "False", "reason": "DiskFull", "message": "", "observedGeneration": 3 })
        );
        let useful = condition(REPLACEMENT_USEFUL, Status::False, "DiskFull", "no", at);
        assert_eq!(written(&old, &useful)["severity"], "Info");
        let unknown = condition(BOOTSTRAP_SUCCEEDED, Status::Unknown, "Diagnosing", "", at);
        assert_eq!(old.shaped(&unknown).severity, None);
    }

    #[test]
    fn resources_are_served_where_the_providers_serve_them() {
        let machine = Shape::assumed(MACHINE).resource;
        assert_eq!(
            (machine.api_version.as_str(), machine.plural.as_str()),
            ("cluster.x-k8s.io/v1beta2", "machines")
        );
        let pool = Shape::assumed("AzureMachinePoolMachine").resource;
        assert_eq!(pool.plural, "azuremachinepoolmachines");
        assert_eq!(Shape::assumed(CLUSTER).resource.api_version, "cluster.x-k8s.io/v1beta2");
        assert_eq!(Shape::of_claims().resource.plural, "nodeclaims");
    }

    #[tokio::test]
    async fn another_shape_is_told_once_it_is_found() {
        let shapes = Shapes::default();
        let before = shapes.of("AzureMachine");
        shapes.found(&before);
        let after = Shape { has_severity: false, ..(*before).clone() };
        let told = shapes.other_than(&before);
        let find = async { shapes.found(&after) };
        tokio::join!(told, find);
        assert_eq!(*shapes.of("AzureMachine"), after);
    }
}
