//! VM extensions. A Custom Script extension runs the VM's bootstrap script; other extensions succeed, unless
//! the scenario defines another outcome.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::event::{ExtensionStep, VmEvent};
use crate::exchange::{ArmError, Call, Reply};
use crate::life::AGENT_PATIENCE;
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::vm::{Agent, Os, SOON, Vm, VmState};
use crate::resources::{not_found, text};
use crate::route::{Id, Key};

/// An extension of a VM.
#[derive(Debug)]
pub(crate) struct Extension {
    pub(crate) name: String,
    pub(crate) publisher: String,
    pub(crate) kind: String,
    location: Value,
    tags: Value,
    settings: Value,
    asked_version: Value,
    /// The script line, from settings or protected settings. Never returned to clients.
    pub(crate) command: String,
    /// Settings and protected settings as received: an equal PUT does not run the script again.
    fingerprint: String,
    pub(crate) run: u32,
    pub(crate) state: &'static str,
    pub(crate) view: View,
    pub(crate) reported: Option<Timestamp>,
    pub(crate) result: Option<Outcome>,
    pub(crate) operation: Option<OperationId>,
}

/// The state of an extension in the instance view.
#[derive(Debug, Clone)]
pub(crate) enum View {
    Nothing,
    Running,
    Ended(Outcome),
}

/// How a run of an extension ended.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Succeeded(String),
    Failed(String),
    HandlerFailed(String),
}

impl Extension {
    /// The handler's name: publisher and type.
    pub(crate) fn handler(&self) -> String {
        format!("{}.{}", self.publisher, self.kind)
    }

    pub(crate) fn is_custom_script(&self) -> bool {
        ["customscript", "customscriptextension", "customscriptforlinux"]
            .contains(&self.kind.to_ascii_lowercase().as_str())
    }

    /// Whether the extension waits for the guest agent.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.view, View::Nothing) && matches!(self.state, "Creating" | "Updating")
    }

    /// After a reboot, a running script starts again.
    pub(crate) fn interrupted(&mut self) {
        if matches!(self.view, View::Running) && self.result.is_none() {
            self.view = View::Nothing;
            self.run += 1;
        }
    }

    pub(crate) fn state(&self) -> &'static str {
        self.state
    }

    pub(crate) fn body(&self, vm: &Id, version: &str, with_view: bool) -> Value {
        let mut body = json!({
            "name": self.name,
            "id": format!("{vm}/extensions/{}", self.name),
            "type": if vm.tail.matches('/').count() > 2 {
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/extensions"
            } else {
                "Microsoft.Compute/virtualMachines/extensions"
            },
            "location": self.location,
            "properties": {
                "autoUpgradeMinorVersion": true,
                "provisioningState": self.state,
                "publisher": self.publisher,
                "type": self.kind,
                "typeHandlerVersion": self.asked_version,
                "settings": self.settings,
            },
        });
        if !self.tags.is_null() {
            body["tags"] = self.tags.clone();
        }
        if let (true, Some(view)) = (with_view, self.instance_view(version)) {
            body["properties"]["instanceView"] = view;
        }
        body
    }

    /// The extension in an instance view; `None` until the guest has reported.
    pub(crate) fn instance_view(&self, version: &str) -> Option<Value> {
        let status = |code: &str, level: &str, display: &str, message: &str| {
            json!({
                "code": code, "level": level, "displayStatus": display, "message": message,
            })
        };
        let mut substatuses = Value::Null;
        let status = match &self.view {
            View::Nothing => return None,
            View::Running => status(
                "ProvisioningState/transitioning",
                "Info",
                "Transitioning",
                "Enable in progress",
            ),
            View::Ended(Outcome::Succeeded(message)) => {
                status("ProvisioningState/succeeded", "Info", "Provisioning succeeded", message)
            }
            View::Ended(Outcome::Failed(message)) => {
                let new = !message.starts_with("Enable failed") && self.kind == "CustomScript";
                if new {
                    substatuses = json!([status(
                        "ComponentStatus/ErrorClarification/failed/2",
                        "Error",
                        "Provisioning failed",
                        ""
                    )]);
                }
                // The number in this text is not the exit code, although it looks like one.
                let code =
                    if new { "ProvisioningState/failed/2" } else { "ProvisioningState/failed/0" };
                status(code, "Error", "Provisioning failed", message)
            }
            View::Ended(Outcome::HandlerFailed(message)) => {
                status("ProvisioningState/failed/1", "Error", "Provisioning failed", message)
            }
        };
        let mut view = json!({
            "name": self.name,
            "type": self.handler(),
            "typeHandlerVersion": version,
            "statuses": [status],
        });
        if !substatuses.is_null() {
            view["substatuses"] = substatuses;
        }
        Some(view)
    }

    /// The handler in the agent's list.
    pub(crate) fn handler_view(&self, version: &str) -> Option<Value> {
        let (code, level, display, message) = match &self.view {
            View::Nothing => return None,
            View::Ended(Outcome::HandlerFailed(message)) => {
                ("ProvisioningState/failed/1", "Error", "Not Ready", message.as_str())
            }
            View::Running | View::Ended(_) => {
                ("ProvisioningState/succeeded", "Info", "Ready", "Plugin enabled")
            }
        };
        Some(json!({
            "type": self.handler(),
            "typeHandlerVersion": version,
            "status": { "code": code, "level": level, "displayStatus": display, "message": message },
        }))
    }
}

impl Azure {
    pub(crate) fn put_extension(
        &mut self,
        call: &Call<'_>,
        vm_id: &Id,
        name: &str,
    ) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let key = vm_id.key();
        if !self.vms.contains_key(&key) {
            let message = format!(
                "Can not perform requested operation on nested resource. Parent resource '{}' not found.",
                vm_id.name()
            );
            return Err(ArmError::new(404, "ParentResourceNotFound", message).at_gateway());
        }
        if matches!(self.vms[&key].state, VmState::Deleting) {
            let message = format!(
                "Operation is not allowed on VM '{}' since the VM is marked for deletion.",
                vm_id.name()
            );
            return Err(ArmError::new(409, "OperationNotAllowed", message));
        }
        self.refuse_second_custom_script(&key, name, &body)?;
        let existed = self.vms[&key].extensions.contains_key(&name.to_ascii_lowercase());
        let location = self.vms[&key].location.clone();
        let operation = self.start_operation(Provider::Compute, vm_id, &location);
        let runs = self.install_extension(&key, name, &body, Some(operation.clone()));
        if !runs {
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
        let vm = &self.vms[&key];
        let body = vm.extensions[&name.to_ascii_lowercase()].body(&vm.id, "", false);
        let reply = Reply::json(if existed { 200 } else { 201 }, body);
        Ok(self.follow(call, reply, &operation, false))
    }

    /// Installs an extension on a VM and starts it. Returns false, and starts nothing, if an equal extension
    /// exists.
    pub(crate) fn install_extension(
        &mut self,
        key: &Key,
        name: &str,
        body: &Value,
        operation: Option<OperationId>,
    ) -> bool {
        let updating = self.scenario.quirks.updating_during_extension;
        let Some(vm) = self.vms.get_mut(key) else {
            return false;
        };
        let properties = &body["properties"];
        let fingerprint = format!("{}{}", properties["settings"], properties["protectedSettings"]);
        let old = vm.extensions.get(&name.to_ascii_lowercase());
        if old.is_some_and(|old| old.fingerprint == fingerprint && old.state == "Succeeded") {
            return false;
        }
        let run = old.map_or(1, |old| old.run + 1);
        let command = ["/protectedSettings/commandToExecute", "/settings/commandToExecute"]
            .iter()
            .find_map(|pointer| text(properties, pointer))
            .unwrap_or_default();
        let extension = Extension {
            name: name.to_owned(),
            publisher: text(properties, "/publisher").unwrap_or_default().to_owned(),
            kind: text(properties, "/type").unwrap_or_default().to_owned(),
            location: vm.location.as_str().into(),
            tags: body["tags"].clone(),
            settings: match &properties["settings"] {
                Value::Null => json!({}),
                settings => settings.clone(),
            },
            asked_version: properties["typeHandlerVersion"].clone(),
            command: command.to_owned(),
            fingerprint,
            run,
            state: if old.is_some() { "Updating" } else { "Creating" },
            view: View::Nothing,
            reported: None,
            result: None,
            operation,
        };
        vm.extensions.insert(name.to_ascii_lowercase(), extension);
        if updating && matches!(vm.state, VmState::Succeeded | VmState::Failed(_)) {
            vm.state = VmState::Updating;
        }
        let (reference, agent) = (vm.reference(), vm.agent);
        if matches!(agent, Agent::Ready(_)) {
            self.start_extension(&reference, name);
        } else {
            let step = ExtensionStep::GivesUp;
            let event = VmEvent::Extension { name: name.to_owned(), run, step };
            self.vm_after(AGENT_PATIENCE, &reference, event);
        }
        true
    }

    fn refuse_second_custom_script(
        &self,
        key: &Key,
        name: &str,
        body: &Value,
    ) -> Result<(), ArmError> {
        let kind = text(body, "/properties/type").unwrap_or_default();
        let publisher = text(body, "/properties/publisher").unwrap_or_default();
        let other = self.vms[key].extensions.values().find(|other| {
            !other.name.eq_ignore_ascii_case(name)
                && other.handler().eq_ignore_ascii_case(&format!("{publisher}.{kind}"))
        });
        let Some(other) = other else { return Ok(()) };
        let message = format!(
            "Multiple VMExtensions per handler not supported for OS type 'Linux'. VMExtension '{name}' with handler '{publisher}.{kind}' already added or specified in input: '{}'.",
            other.name
        );
        Err(ArmError::new(self.scenario.quirks.second_custom_script, "BadRequest", message))
    }

    pub(crate) fn get_extension(
        &self,
        call: &Call<'_>,
        vm_id: &Id,
        name: &str,
    ) -> Result<Reply, ArmError> {
        let id = vm_id.beside(format!("{}/extensions/{name}", vm_id.tail));
        let vm = self.vms.get(&vm_id.key()).ok_or_else(|| not_found(&id))?;
        let extension =
            vm.extensions.get(&name.to_ascii_lowercase()).ok_or_else(|| not_found(&id))?;
        Ok(Reply::json(
            200,
            extension.body(&vm.id, &handler_version(vm, extension), call.expands("instanceView")),
        ))
    }

    pub(crate) fn list_extensions(&self, call: &Call<'_>, vm_id: &Id) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&vm_id.key()).ok_or_else(|| not_found(vm_id))?;
        let expand = call.expands("instanceView");
        let items = vm
            .extensions
            .values()
            .map(|extension| extension.body(&vm.id, &handler_version(vm, extension), expand))
            .collect();
        Ok(Reply::list(items, None))
    }

    pub(crate) fn delete_extension(&mut self, call: &Call<'_>, vm_id: &Id, name: &str) -> Reply {
        let key = vm_id.key();
        let lower = name.to_ascii_lowercase();
        let Some(vm) = self.vms.get(&key).filter(|vm| vm.extensions.contains_key(&lower)) else {
            return Reply::empty(204);
        };
        let (location, reference) = (vm.location.clone(), vm.reference());
        let operation = self.start_operation(Provider::Compute, vm_id, &location);
        let extension = self.extension(&reference, &lower);
        extension.state = "Deleting";
        extension.operation = Some(operation.clone());
        extension.run += 1;
        let event =
            VmEvent::Extension { name: lower, run: extension.run, step: ExtensionStep::Gone };
        self.vm_after(SOON, &reference, event);
        self.follow(call, Reply::empty(202), &operation, true)
    }
}

/// The version of the extension's handler.
pub(crate) fn handler_version(vm: &Vm, extension: &Extension) -> String {
    match (extension.is_custom_script(), vm.os) {
        (true, Os::Linux) => vm.boot.handler.clone().unwrap_or_else(|| "2.1.16".to_owned()),
        (true, Os::Windows) => vm.boot.handler.clone().unwrap_or_else(|| "1.10.15".to_owned()),
        (false, _) => "1.0.0".to_owned(),
    }
}
