//! VM extensions: their model, and the guest's reports.

use serde_json::Value;

use super::read::{list, text};
use super::status::Status;

/// An extension, joined from two sources: the model and the instance view. Azure updates them at different
/// times, and either may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extension {
    /// The name of the extension.
    pub name: String,
    /// The publisher, such as `Microsoft.Azure.Extensions`.
    pub publisher: Option<String>,
    /// The type without the publisher, such as `CustomScript`.
    pub kind: Option<String>,
    /// The version of the handler: the running one, or else the requested one.
    pub handler_version: Option<String>,
    /// The model's provisioning state.
    pub provisioning_state: Option<String>,
    /// Whether the guest has reported on the extension.
    pub reported: bool,
    /// The statuses that the guest reports.
    pub statuses: Vec<Status>,
    /// The substatuses that the guest reports.
    pub substatuses: Vec<Status>,
}

/// The program in the guest that runs extensions of a type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtensionHandler {
    /// Publisher and type, such as `Microsoft.Azure.Extensions.CustomScript`.
    pub kind: Option<String>,
    /// The version of the handler.
    pub version: Option<String>,
    /// The status of the handler.
    pub status: Option<Status>,
}

impl ExtensionHandler {
    pub(super) fn of(value: &Value) -> Self {
        Self {
            kind: text(value, "/type"),
            version: text(value, "/typeHandlerVersion"),
            status: value.get("status").filter(|status| status.is_object()).map(Status::of),
        }
    }
}

impl Extension {
    /// Parses an extension resource, with its own instance view if the response contains one.
    pub(crate) fn of_resource(value: &Value) -> Self {
        let mut extension = Self {
            name: name(value).unwrap_or_default(),
            publisher: text(value, "/properties/publisher"),
            kind: text(value, "/properties/type"),
            handler_version: text(value, "/properties/typeHandlerVersion"),
            provisioning_state: text(value, "/properties/provisioningState"),
            ..Self::default()
        };
        if let Some(view) = value.pointer("/properties/instanceView") {
            extension.report(view);
        }
        extension
    }

    /// All extensions of a VM, in the order in which they first appear.
    pub(super) fn join(resources: &[Value], views: &[Value]) -> Vec<Self> {
        let mut joined: Vec<Self> = resources
            .iter()
            .filter(|resource| is_extension(resource))
            .map(Self::of_resource)
            .collect();
        for view in views {
            let Some(name) = text(view, "/name") else { continue };
            let known = joined.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&name));
            if let Some(extension) = known {
                extension.report(view);
            } else {
                let mut extension = Self { name, ..Self::default() };
                extension.report(view);
                joined.push(extension);
            }
        }
        joined
    }

    /// Publisher and type with a dot between them, such as `Microsoft.Azure.Extensions.CustomScript`.
    pub fn full_kind(&self) -> Option<String> {
        match (&self.publisher, &self.kind) {
            (Some(publisher), Some(kind)) => Some(format!("{publisher}.{kind}")),
            (None, kind) => kind.clone(),
            (Some(_), None) => None,
        }
    }

    /// Whether this is a Custom Script extension, on Linux or Windows, of any publisher.
    pub fn is_custom_script(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| {
            let kind = kind.rsplit('.').next().unwrap_or(kind);
            ["CustomScript", "CustomScriptExtension"]
                .iter()
                .any(|script| kind.eq_ignore_ascii_case(script))
        })
    }

    fn report(&mut self, view: &Value) {
        if !view.is_object() {
            return;
        }
        self.statuses = Status::list(view, "/statuses");
        self.substatuses = Status::list(view, "/substatuses");
        self.reported = !self.statuses.is_empty() || !self.substatuses.is_empty();
        if let Some(version) = text(view, "/typeHandlerVersion") {
            self.handler_version = Some(version);
        }
        // The view contains publisher and type in one text, and is the only source once the model was
        // deleted.
        if self.kind.is_none()
            && let Some(full) = text(view, "/type")
        {
            let (publisher, kind) = match full.rsplit_once('.') {
                Some((publisher, kind)) => (Some(publisher.to_owned()), kind.to_owned()),
                None => (None, full),
            };
            self.publisher = self.publisher.take().or(publisher);
            self.kind = Some(kind);
        }
    }
}

/// A VM's child resources are extensions, and in theory others.
fn is_extension(resource: &Value) -> bool {
    resource.is_object()
        && text(resource, "/type")
            .is_none_or(|kind| kind.to_ascii_lowercase().ends_with("/extensions"))
        && name(resource).is_some()
}

/// The extension's own name: some responses contain `machine/extension`, and some only an ID.
fn name(resource: &Value) -> Option<String> {
    let full = text(resource, "/name").or_else(|| text(resource, "/id"))?;
    full.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

pub(super) fn handlers(agent: &Value) -> Vec<ExtensionHandler> {
    list(agent, "/extensionHandlers")
        .iter()
        .filter(|handler| handler.is_object())
        .map(ExtensionHandler::of)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn model_and_instance_view_are_joined_by_name_whatever_its_case() {
        let resources = [
            json!({"name": "vm/CSE", "type": "Microsoft.Compute/virtualMachines/extensions", "properties": {
                "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript",
                "typeHandlerVersion": "2.0", "provisioningState": "Creating"}}),
            json!({"name": "other", "type": "Microsoft.Compute/virtualMachines/runCommands"}),
            json!(null),
        ];
        let views = [
            json!({"name": "cse", "type": "Microsoft.Azure.Extensions.CustomScript", "typeHandlerVersion": "2.1.16",
                "statuses": [{"code": "ProvisioningState/transitioning", "level": "Info"}]}),
            json!({"name": "billing", "type": "Microsoft.AKS.Compute.AKS.Linux.Billing"}),
            json!({"type": "nameless"}),
        ];
        let joined = Extension::join(&resources, &views);
        let names: Vec<&str> = joined.iter().map(|extension| extension.name.as_str()).collect();
        assert_eq!(names, ["CSE", "billing"]);
        assert_eq!(joined[0].handler_version.as_deref(), Some("2.1.16"));
        assert_eq!(joined[0].provisioning_state.as_deref(), Some("Creating"));
        assert_eq!(joined[0].statuses[0].state("provisioningstate"), Some("transitioning"));
        assert!(joined[0].is_custom_script() && joined[0].reported);
        assert_eq!(joined[1].publisher.as_deref(), Some("Microsoft.AKS.Compute.AKS.Linux"));
        assert!(!joined[1].is_custom_script() && !joined[1].reported);
    }
}
