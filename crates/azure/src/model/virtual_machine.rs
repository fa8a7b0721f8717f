//! A virtual machine: its model, and the reports of platform and guest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::boot_diagnostics::BootDiagnostics;
use super::extension::{Extension, ExtensionHandler, handlers};
use super::image::ImageReference;
use super::read::{list, moment, text};
use super::status::Status;
use crate::id::ResourceId;

/// The operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsType {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// The guest agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agent {
    /// The agent's version; `Unknown` until the agent has reported.
    pub version: Option<String>,
    /// The statuses of the agent.
    pub statuses: Vec<Status>,
    /// The extension handlers that the agent reports.
    pub handlers: Vec<ExtensionHandler>,
}

impl Agent {
    /// Whether the agent reports that it runs.
    pub fn is_ready(&self) -> bool {
        self.statuses.iter().any(|status| {
            status
                .state("ProvisioningState")
                .is_some_and(|state| state.eq_ignore_ascii_case("succeeded"))
        })
    }
}

/// A virtual machine or a scale set instance, with its instance view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualMachine {
    /// The resource ID in Azure's letter case, which varies; absent if it cannot be parsed.
    pub id: Option<ResourceId>,
    /// The VM's name.
    pub name: Option<String>,
    /// The vmId, which distinguishes the VM from an earlier one of the same name.
    pub vm_id: Option<String>,
    /// The VM's region.
    pub location: Option<String>,
    /// The VM's zones.
    pub zones: Vec<String>,
    /// The VM's size.
    pub size: Option<String>,
    /// The image of the OS disk.
    pub image: Option<ImageReference>,
    /// The operating system.
    pub os: Option<OsType>,
    /// The host name in the guest, and so mostly the Node's name.
    pub computer_name: Option<String>,
    /// When the VM was created.
    pub created: Option<Timestamp>,
    /// The model's provisioning state, such as `Creating` or `Failed`.
    pub provisioning_state: Option<String>,
    /// The power state, such as `running` or `deallocated`.
    pub power_state: Option<String>,
    /// The statuses that the platform reports.
    pub statuses: Vec<Status>,
    /// The guest agent; absent until the platform knows of one.
    pub agent: Option<Agent>,
    /// The VM's extensions.
    pub extensions: Vec<Extension>,
    /// Whether the instance view contains a list of extensions at all.
    pub extensions_reported: bool,
    /// The VM's tags.
    pub tags: BTreeMap<String, String>,
    /// Whether Azure records the serial console.
    pub boot_diagnostics: BootDiagnostics,
    /// The whole response. Redact it before it is logged, stored or shown.
    pub raw: Value,
}

impl VirtualMachine {
    /// Parses a response. An instance view alone is enough.
    pub fn of(raw: Value) -> Self {
        let null = Value::Null;
        let properties = raw.get("properties").filter(|value| value.is_object()).unwrap_or(&null);
        let view = properties
            .get("instanceView")
            .filter(|value| value.is_object())
            // `…/instanceView` returns the view itself.
            .unwrap_or(if properties.is_null() { &raw } else { &null });
        let statuses = Status::list(view, "/statuses");
        let state =
            |kind: &str| statuses.iter().find_map(|status| status.state(kind)).map(str::to_owned);
        let agent = view.get("vmAgent").filter(|agent| agent.is_object()).map(|agent| Agent {
            version: text(agent, "/vmAgentVersion"),
            statuses: Status::list(agent, "/statuses"),
            handlers: handlers(agent),
        });
        Self {
            id: text(&raw, "/id").and_then(|id| id.parse().ok()),
            name: text(&raw, "/name"),
            vm_id: text(properties, "/vmId"),
            location: text(&raw, "/location"),
            zones: texts(&raw, "/zones"),
            size: text(properties, "/hardwareProfile/vmSize").or_else(|| text(&raw, "/sku/name")),
            image: properties
                .pointer("/storageProfile/imageReference")
                .and_then(ImageReference::of),
            os: os(properties, view),
            computer_name: text(view, "/computerName")
                .or_else(|| text(properties, "/osProfile/computerName")),
            created: moment(properties, "/timeCreated"),
            provisioning_state: text(properties, "/provisioningState"),
            power_state: state("PowerState"),
            agent,
            extensions: Extension::join(list(&raw, "/resources"), list(view, "/extensions")),
            extensions_reported: view.get("extensions").is_some_and(Value::is_array),
            tags: tags(&raw),
            boot_diagnostics: BootDiagnostics::of(properties, view),
            statuses,
            raw,
        }
    }

    /// Whether the VM is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.provisioning_state
            .as_deref()
            .is_some_and(|state| state.eq_ignore_ascii_case("deleting"))
    }
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn tags(raw: &Value) -> BTreeMap<String, String> {
    raw.get("tags")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The disk has the operating system. For some images, only the VM's configuration or the guest's report has
/// it.
fn os(properties: &Value, view: &Value) -> Option<OsType> {
    let word = text(properties, "/storageProfile/osDisk/osType").or_else(|| text(view, "/osName"));
    let configured =
        |key: &str| properties.pointer("/osProfile").and_then(|profile| profile.get(key)).is_some();
    match word.map(|word| word.to_ascii_lowercase()) {
        Some(word) if word.starts_with("windows") => Some(OsType::Windows),
        Some(_) => Some(OsType::Linux),
        None if configured("windowsConfiguration") => Some(OsType::Windows),
        None if configured("linuxConfiguration") => Some(OsType::Linux),
        None => None,
    }
}
