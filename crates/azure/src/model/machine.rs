//! AKS machines.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{list, moment, text};
use crate::error::ArmFailure;
use crate::id::ResourceId;

/// An AKS machine: AKS creates its virtual machine, and reports the outcome in a format of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The name of the machine.
    pub name: Option<String>,
    /// The provisioning state.
    pub provisioning_state: Option<String>,
    /// Why the provisioning failed.
    pub provisioning_error: Option<ArmFailure>,
    /// The ID of the machine's virtual machine or scale set instance.
    pub resource_id: Option<ResourceId>,
    /// The name and version of the node image.
    pub node_image_version: Option<String>,
    /// The state of the machine's virtual machine.
    pub vm_state: Option<String>,
    /// When the machine was created.
    pub created: Option<Timestamp>,
    /// The machine's zones.
    pub zones: Vec<String>,
    /// The machine's tags.
    pub tags: BTreeMap<String, String>,
    /// The whole response. Redact it before it is logged, stored or shown.
    pub raw: Value,
}

impl Machine {
    /// Whether AKS is still creating the machine.
    pub fn is_underway(&self) -> bool {
        self.provisioning_state.as_deref().is_some_and(|state| {
            ["Creating", "Updating", "Provisioning"]
                .iter()
                .any(|word| state.eq_ignore_ascii_case(word))
        })
    }

    /// Parses a response.
    pub fn of(raw: Value) -> Self {
        let null = Value::Null;
        let properties = raw.get("properties").unwrap_or(&null);
        let failure = properties
            .pointer("/status/provisioningError")
            .map(ArmFailure::of)
            .filter(|failure| !failure.is_empty());
        let tags = properties.get("tags").and_then(Value::as_object);
        Self {
            name: text(&raw, "/name"),
            provisioning_state: text(properties, "/provisioningState"),
            provisioning_error: failure,
            resource_id: text(properties, "/resourceId").and_then(|id| id.parse().ok()),
            node_image_version: text(properties, "/nodeImageVersion"),
            vm_state: text(properties, "/status/vmState"),
            created: moment(properties, "/status/creationTimestamp"),
            zones: list(&raw, "/zones")
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            tags: tags
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            raw,
        }
    }
}
