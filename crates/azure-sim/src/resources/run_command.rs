//! Run Command, as an action and as a resource. In the simulated guest every command prints the result of the
//! bootstrap script, because people run commands to read it; a scenario may define another outcome for a
//! managed command.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::event::{VmEvent, VmRef};
use crate::exchange::{ArmError, Call, Reply, arm_time};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::not_found;
use crate::resources::vm::{Agent, Os, SOON, Vm};
use crate::route::Id;

/// A command on a VM.
#[derive(Debug)]
pub(crate) struct RunCommand {
    name: String,
    properties: Value,
    state: &'static str,
    view: Value,
    started: Timestamp,
    /// Whether the command was run as an action, which creates no resource.
    action: bool,
    operation: Option<OperationId>,
}

/// The number of bytes at the end of a command's output that are stored.
const KEPT: usize = 4096;

/// The handler of managed run commands, as the agent reports it.
pub(crate) fn handler_view(vm: &Vm) -> Option<Value> {
    let system = match vm.os {
        Os::Linux => "Linux",
        Os::Windows => "Windows",
    };
    vm.run_commands.values().any(|command| !command.action).then(|| {
        json!({
            "type": format!("Microsoft.CPlat.Core.RunCommandHandler{system}"),
            "typeHandlerVersion": "1.3.10",
            "status": { "code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready" },
        })
    })
}

impl RunCommand {
    fn body(&self, vm: &Vm, with_view: bool) -> Value {
        let mut properties = self.properties.clone();
        properties["provisioningState"] = self.state.into();
        if with_view {
            properties["instanceView"] = self.view.clone();
        }
        json!({
            "name": self.name,
            "id": format!("{}/runCommands/{}", vm.id, self.name),
            "type": "Microsoft.Compute/virtualMachines/runCommands",
            "location": vm.location,
            "properties": properties,
        })
    }
}

impl Azure {
    pub(crate) fn post_run_command(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        call.json()?;
        let operation = self.start_run_command(id, "action", Value::Null, true)?;
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    pub(crate) fn put_run_command(
        &mut self,
        call: &Call<'_>,
        id: &Id,
        name: &str,
    ) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let operation = self.start_run_command(id, name, body["properties"].clone(), false)?;
        let vm = &self.vms[&id.key()];
        let reply = Reply::json(201, vm.run_commands[&name.to_ascii_lowercase()].body(vm, false));
        Ok(self.follow(call, reply, &operation, false))
    }

    pub(crate) fn get_run_command(
        &self,
        call: &Call<'_>,
        id: &Id,
        name: &str,
    ) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| not_found(id))?;
        let command = vm
            .run_commands
            .get(&name.to_ascii_lowercase())
            .filter(|command| !command.action)
            .ok_or_else(|| not_found(&id.beside(format!("{}/runCommands/{name}", id.tail))))?;
        Ok(Reply::json(200, command.body(vm, call.expands("instanceView"))))
    }

    pub(crate) fn list_run_commands(&self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| not_found(id))?;
        let managed = vm.run_commands.values().filter(|command| !command.action);
        let expand = call.expands("instanceView");
        Ok(Reply::list(managed.map(|command| command.body(vm, expand)).collect(), None))
    }

    pub(crate) fn delete_run_command(&mut self, id: &Id, name: &str) -> Reply {
        let removed = self
            .vms
            .get_mut(&id.key())
            .and_then(|vm| vm.run_commands.remove(&name.to_ascii_lowercase()));
        Reply::empty(if removed.is_some() { 200 } else { 204 })
    }

    fn start_run_command(
        &mut self,
        id: &Id,
        name: &str,
        properties: Value,
        action: bool,
    ) -> Result<OperationId, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| not_found(id))?;
        let running = vm.run_commands.values().any(|command| command.state == "Creating");
        if action && running {
            let message = "Run command extension execution is in progress. Please wait for completion before invoking a run command.";
            return Err(ArmError::new(409, "Conflict", message));
        }
        if !matches!(vm.agent, Agent::Ready(_)) {
            let message = "The operation requires the VM to be running and its agent to be ready.";
            return Err(ArmError::new(409, "OperationNotAllowed", message));
        }
        let (location, reference) = (vm.location.clone(), vm.reference());
        let told = vm.boot.run_commands.get(name).and_then(|run| run.lasts);
        let operation = self.start_operation(Provider::Compute, id, &location);
        let command = RunCommand {
            name: name.to_owned(),
            properties: if properties.is_object() { properties } else { json!({}) },
            state: "Creating",
            view: json!({ "executionState": "Running" }),
            started: self.now,
            action,
            operation: Some(operation.clone()),
        };
        let vm = self.vms.get_mut(&reference.key).expect("found above");
        vm.run_commands.insert(name.to_ascii_lowercase(), command);
        self.vm_after(
            told.map_or(SOON, |span| span.0),
            &reference,
            VmEvent::RunCommandEnds { name: name.to_ascii_lowercase() },
        );
        Ok(operation)
    }

    pub(crate) fn run_command_ends(&mut self, reference: &VmRef, name: &str) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        let (result, told) = (vm.result.clone(), vm.boot.run_commands.clone());
        let Some(command) = vm.run_commands.get_mut(name) else {
            return;
        };
        let missing = "cat: /var/log/azure/aks/provision.json: No such file or directory\n";
        let (code, output, error) = match (told.get(&command.name), &result) {
            (Some(run), _) => (run.exit_code, tail(&run.output), tail(&run.stderr)),
            (None, Some(json)) => (0, json.as_str(), ""),
            (None, None) => (1, "", missing),
        };
        command.state = "Succeeded";
        command.view = json!({
            "exitCode": code,
            "executionState": if code == 0 { "Succeeded" } else { "Failed" },
            "output": output,
            "error": error,
            "startTime": arm_time(command.started),
            "endTime": arm_time(now),
        });
        let message = format!("Enable succeeded: \n[stdout]\n{output}\n[stderr]\n{error}");
        let shown = json!({ "value": [{
            "code": "ProvisioningState/succeeded",
            "level": "Info",
            "displayStatus": "Provisioning succeeded",
            "message": message,
        }] });
        let output = command.action.then_some(shown);
        if let Some(operation) = command.operation.take() {
            self.end_operation(&operation, Progress::Succeeded { output });
        }
    }
}

/// The stored part of a command's output.
fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(KEPT))..]
}
