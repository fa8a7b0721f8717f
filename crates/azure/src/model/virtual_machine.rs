//! A machine: what was asked for, and what the platform and the guest say of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::boot_diagnostics::BootDiagnostics;
use super::extension::{Extension, ExtensionHandler, handlers};
use super::image::ImageReference;
use super::read::{list, moment, text};
use super::status::Status;
use crate::id::ResourceId;

/// What runs on it.
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
    /// Its version; `Unknown` until it has reported.
    pub version: Option<String>,
    /// How it is.
    pub statuses: Vec<Status>,
    /// The handlers of extensions that it knows.
    pub handlers: Vec<ExtensionHandler>,
}

impl Agent {
    /// Whether it says that it runs.
    pub fn is_ready(&self) -> bool {
        self.statuses.iter().any(|status| {
            status
                .state("ProvisioningState")
                .is_some_and(|state| state.eq_ignore_ascii_case("succeeded"))
        })
    }
}

/// A virtual machine, or an instance of a scale set, with its instance view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualMachine {
    /// Its id as Azure writes it, whose casing varies; absent if it is none.
    pub id: Option<ResourceId>,
    /// Its name.
    pub name: Option<String>,
    /// Tells it from another machine that had the same name before.
    pub vm_id: Option<String>,
    /// Its region.
    pub location: Option<String>,
    /// Its zones.
    pub zones: Vec<String>,
    /// Its size.
    pub size: Option<String>,
    /// Where its disk came from.
    pub image: Option<ImageReference>,
    /// What runs on it.
    pub os: Option<OsType>,
    /// Its name to itself, and so mostly the Node's.
    pub computer_name: Option<String>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The model's provisioning state, such as `Creating` or `Failed`.
    pub provisioning_state: Option<String>,
    /// Such as `running` or `deallocated`.
    pub power_state: Option<String>,
    /// What the platform says.
    pub statuses: Vec<Status>,
    /// The guest agent; absent until the platform knows of one.
    pub agent: Option<Agent>,
    /// Its extensions.
    pub extensions: Vec<Extension>,
    /// Whether there is a list of extensions in the instance view at all.
    pub extensions_reported: bool,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Whether its serial console is recorded.
    pub boot_diagnostics: BootDiagnostics,
    /// The whole response. Redact it before it is logged, stored or shown.
    pub raw: Value,
}

impl VirtualMachine {
    /// Looks into an answer. An instance view alone will do.
    pub fn of(raw: Value) -> Self {
        let null = Value::Null;
        let properties = raw.get("properties").filter(|value| value.is_object()).unwrap_or(&null);
        let view = properties
            .get("instanceView")
            .filter(|value| value.is_object())
            // `…/instanceView` answers the view itself.
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

    /// Whether it is on its way out.
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

/// The disk says it; a machine that was made from a strange image may say it only by how it was
/// configured, or by what reports from within.
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
