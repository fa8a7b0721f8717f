//! What is looked at of a Node.

use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A Node, as far as it matters here: whose it is, and whether it is ready.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Node {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Whose it is.
    #[serde(default)]
    pub spec: NodeSpec,
    /// Whether it is ready.
    #[serde(default)]
    pub status: NodeStatus,
}

/// The part of a Node that its cloud provider fills.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The VM's id.
    #[serde(rename = "providerID", default)]
    pub provider_id: Option<String>,
}

/// The part of a Node that its kubelet fills.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<NodeCondition>,
}

/// A condition of a Node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub message: Option<String>,
}

impl Node {
    /// The condition `Ready`.
    pub fn ready(&self) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == "Ready")
    }

    /// Whether its kubelet says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == "True")
    }

    /// Lets go of everything that is not looked at, so that ten thousand of them are small.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let meta = std::mem::take(&mut self.metadata);
        self.metadata = ObjectMeta {
            name: meta.name,
            uid: meta.uid,
            creation_timestamp: meta.creation_timestamp,
            ..ObjectMeta::default()
        };
        self.status.conditions.retain(|condition| condition.kind == "Ready");
        self
    }
}

impl kube::Resource for Node {
    type DynamicType = ();
    type Scope = k8s_openapi::ClusterResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
