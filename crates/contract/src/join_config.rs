//! What a plain image is told to become a node: the configuration of `bringup-node join`.
//!
//! The controller writes it, the node reads it. Both refuse the same mistakes, by the name of the
//! field, so that a wrong class is told before a machine is made of it.

mod cloud_config;
mod exit;
mod labels;
mod step;
mod validation;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use cloud_config::{AgentArtifact, CONFIG_PATH, LIMIT, TooLong, join_custom_data};
pub use exit::JoinExit;
pub use labels::{Labels, is_refused_by_kubelet};
pub use step::Step;
pub use validation::{Invalid, InvalidConfig};

/// A text that must not be shown: `Debug` prints `***`, and only the serialized configuration holds it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for callers that have to use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// All that a join needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinConfig {
    /// The cluster to join.
    pub cluster: Cluster,
    /// The bootstrap token, `abcdef.0123456789abcdef`; one per machine, short-lived.
    pub token: Secret,
    /// What the node is to be.
    pub node: Node,
    /// The version of kubeadm, kubelet and kubectl, such as `1.34.2`.
    pub kubernetes_version: String,
    /// What is downloaded.
    pub artifacts: Artifacts,
    /// The image of the pause container, where the one that containerd knows cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_image: Option<String>,
    /// Other time limits than the usual ones, in seconds, by step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<Step, u32>,
}

/// The cluster to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// The address of its API server, `https://name:443`.
    pub server: String,
    /// Its authority: PEM, in base64, as kubeconfigs have it.
    pub certificate_authority_data: String,
    /// The version of its control plane, if it is known: kubelet must go with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What the node is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Its name in the cluster.
    pub name: String,
    /// The address that it registers with; kubelet finds one if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// `spec.providerID`.
    pub provider_id: String,
    /// How many pods it takes.
    pub max_pods: u32,
    /// Its labels, also those that kubelet may not set itself: they are left out on the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// Pods that run leave too.
    NoExecute,
}

/// What is downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifacts {
    /// containerd's release, a tar.gz with `bin/`.
    pub containerd: Artifact,
    /// runc, the program itself.
    pub runc: Artifact,
    /// kubeadm, the program itself.
    pub kubeadm: Artifact,
    /// kubelet, the program itself.
    pub kubelet: Artifact,
    /// kubectl, the program itself.
    pub kubectl: Artifact,
    /// The basic network plugins, a tar.gz of programs, where the cluster's own do not bring them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<Artifact>,
}

/// One download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// Its version, which it must say of itself.
    pub version: String,
    /// Where it is.
    pub url: String,
    /// What it must be.
    pub sha256: String,
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinConfigError {
    /// It is not JSON of this form. The text names line, column and field, and quotes no value.
    #[error("line {line} column {column}: {why}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// It is of this form and says something that cannot be.
    #[error(transparent)]
    Invalid(#[from] InvalidConfig),
}

impl JoinConfig {
    /// Reads and checks a configuration.
    pub fn parse(text: &[u8]) -> Result<Self, JoinConfigError> {
        let config: Self = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
        config.validate()?;
        Ok(config)
    }

    /// Every mistake in it, by the name of the field.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        validation::validate(self)
    }

    /// Its values that must not be shown, in every form in which they can appear.
    pub fn secrets(&self) -> Vec<&str> {
        let token = self.token.reveal();
        let behind_the_point = token.split_once('.').map(|(_, secret)| secret);
        [token].into_iter().chain(behind_the_point).collect()
    }

    /// Its labels: those that kubelet may set itself, and the others.
    pub fn labels(&self) -> Labels {
        Labels::of(&self.node.labels)
    }

    /// How long a step may take, in seconds.
    pub fn limit(&self, step: Step) -> u32 {
        self.limits.get(&step).copied().unwrap_or_else(|| step.usual_limit())
    }
}

/// serde quotes the value that it does not understand, and that may be the token.
fn malformed(error: &serde_json::Error) -> JoinConfigError {
    let text = error.to_string();
    let told = ["missing field `", "unknown field `", "duplicate field `", "unknown variant `"];
    let why = if told.iter().any(|begin| text.starts_with(begin)) {
        text.split(" at line ").next().unwrap_or_default().to_owned()
    } else {
        match error.classify() {
            serde_json::error::Category::Data => "a value is of the wrong type".to_owned(),
            serde_json::error::Category::Eof => "it ends too early".to_owned(),
            _ => "it is not JSON".to_owned(),
        }
    };
    JoinConfigError::Malformed { line: error.line(), column: error.column(), why }
}
