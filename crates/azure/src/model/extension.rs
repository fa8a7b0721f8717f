//! Extensions: what was asked for, and what the guest says of it.

use serde_json::Value;

use super::read::{list, text};
use super::status::Status;

/// An extension, from both sources that know of it: the model, and the instance view. They are
/// updated at different times, and either may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extension {
    /// Its name.
    pub name: String,
    /// Its publisher, such as `Microsoft.Azure.Extensions`.
    pub publisher: Option<String>,
    /// Its type without the publisher, such as `CustomScript`.
    pub kind: Option<String>,
    /// The version of its handler: the one that runs, or else the one that was asked for.
    pub handler_version: Option<String>,
    /// The model's provisioning state.
    pub provisioning_state: Option<String>,
    /// Whether the guest has reported anything of it.
    pub reported: bool,
    /// What the guest reports.
    pub statuses: Vec<Status>,
    /// What it reports beneath that.
    pub substatuses: Vec<Status>,
}

/// The program on the machine that runs extensions of a type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtensionHandler {
    /// Publisher and type, such as `Microsoft.Azure.Extensions.CustomScript`.
    pub kind: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// How it is.
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
    /// An extension as a resource: with its own instance view if that was asked for.
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

    /// All extensions of a machine, in the order in which they are first named.
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

    /// Publisher and type with a dot between, such as `Microsoft.Azure.Extensions.CustomScript`.
    pub fn full_kind(&self) -> Option<String> {
        match (&self.publisher, &self.kind) {
            (Some(publisher), Some(kind)) => Some(format!("{publisher}.{kind}")),
            (None, kind) => kind.clone(),
            (Some(_), None) => None,
        }
    }

    /// Whether it runs a script of ours: Custom Script, on Linux or Windows, of any publisher.
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
        // The view has publisher and type in one; it is the only source once the model is gone.
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

/// Resources beneath a machine are extensions, and in theory others.
fn is_extension(resource: &Value) -> bool {
    resource.is_object()
        && text(resource, "/type")
            .is_none_or(|kind| kind.to_ascii_lowercase().ends_with("/extensions"))
        && name(resource).is_some()
}

/// Its own name: some answers have `machine/extension`, and some an id alone.
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
