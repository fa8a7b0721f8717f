//! The configuration of `bringup-node join`, which turns a plain image into a node.
//!
//! The controller writes the configuration, the node reads it. Both reject the same mistakes by the name of
//! the field, so that a wrong class is reported before a machine is created from it.

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

/// A secret text: `Debug` prints `***`, and only the serialized configuration contains the text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
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

/// The configuration of a join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinConfig {
    /// The cluster to join.
    pub cluster: Cluster,
    /// The bootstrap token, `abcdef.0123456789abcdef`; one per machine, short-lived.
    pub token: Secret,
    /// The properties of the node.
    pub node: Node,
    /// The version of kubeadm, kubelet and kubectl, such as `1.34.2`.
    pub kubernetes_version: String,
    /// The downloads.
    pub artifacts: Artifacts,
    /// The image of the pause container, if containerd's default image cannot be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_image: Option<String>,
    /// Time limits that differ from the defaults, in seconds, by step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<Step, u32>,
}

/// The cluster to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    /// The URL of the API server, `https://name:443`.
    pub server: String,
    /// The certificate authority of the API server: PEM, in base64, as in kubeconfigs.
    pub certificate_authority_data: String,
    /// The version of the control plane, if known: kubelet must be compatible with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The properties of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// The name of the Node object.
    pub name: String,
    /// The address to register with; without it, kubelet chooses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// `spec.providerID`.
    pub provider_id: String,
    /// The maximum number of pods.
    pub max_pods: u32,
    /// The labels, including those that kubelet may not set itself and that are left out on the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The taints to register with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// A taint of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    /// The key of the taint.
    pub key: String,
    /// The value of the taint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The effect on pods.
    pub effect: Effect,
}

/// The effect of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// New pods are not scheduled.
    NoSchedule,
    /// New pods are scheduled only if no other node fits.
    PreferNoSchedule,
    /// Running pods are evicted too.
    NoExecute,
}

/// The downloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifacts {
    /// The release of containerd, a tar.gz with `bin/`.
    pub containerd: Artifact,
    /// runc, the program itself.
    pub runc: Artifact,
    /// kubeadm, the program itself.
    pub kubeadm: Artifact,
    /// kubelet, the program itself.
    pub kubelet: Artifact,
    /// kubectl, the program itself.
    pub kubectl: Artifact,
    /// The basic network plugins, a tar.gz of programs, if the network of the cluster does not install them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<Artifact>,
}

/// One download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// The version that the program must report.
    pub version: String,
    /// The URL of the download.
    pub url: String,
    /// The checksum of the download.
    pub sha256: String,
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinConfigError {
    /// The configuration is not JSON of this structure. The text names line, column and field, and quotes no
    /// value.
    #[error("line {line} column {column}: {why}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The problem.
        why: String,
    },
    /// The structure is right, but a value is not allowed.
    #[error(transparent)]
    Invalid(#[from] InvalidConfig),
}

impl JoinConfig {
    /// Parses and validates a configuration.
    pub fn parse(text: &[u8]) -> Result<Self, JoinConfigError> {
        let config: Self = serde_json::from_slice(text).map_err(|error| malformed(&error))?;
        config.validate()?;
        Ok(config)
    }

    /// Returns every mistake, by the name of the field.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        validation::validate(self)
    }

    /// The secret values, in every form in which they can appear.
    pub fn secrets(&self) -> Vec<&str> {
        let token = self.token.reveal();
        let behind_the_point = token.split_once('.').map(|(_, secret)| secret);
        [token].into_iter().chain(behind_the_point).collect()
    }

    /// The labels, separated into those that kubelet may set itself and the others.
    pub fn labels(&self) -> Labels {
        Labels::of(&self.node.labels)
    }

    /// The time limit of a step, in seconds.
    pub fn limit(&self, step: Step) -> u32 {
        self.limits.get(&step).copied().unwrap_or_else(|| step.usual_limit())
    }
}

/// serde quotes an invalid value, and the value may be the token.
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
