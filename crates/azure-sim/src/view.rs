//! A VM in answers to reads: the model and the instance view.

use serde_json::{Value, json};

use crate::azure::Azure;
use crate::boot_diagnostics::user_managed_console;
use crate::exchange::{Call, arm_time};
use crate::resources::extension::handler_version;
use crate::resources::run_command;
use crate::resources::vm::{Agent, Os, Power, Vm, VmState};
use crate::scenario::{DeletedExtensions, RunCommandHandler};

impl Azure {
    /// The body of a VM, with the parts that `$expand` selects.
    pub(crate) fn vm_body(&self, vm: &Vm, call: &Call<'_>) -> Value {
        let mut body = vm_model(vm);
        if call.expands("instanceView") {
            body["properties"]["instanceView"] = self.instance_view(vm, &call.base);
        }
        if let (true, Some(data)) = (call.expands("userData"), &vm.user_data) {
            body["properties"]["userData"] = data.as_str().into();
        }
        body
    }

    /// The instance view of a running VM.
    pub(crate) fn instance_view(&self, vm: &Vm, base: &str) -> Value {
        let mut view = json!({});
        if vm.agent != Agent::Absent {
            view["vmAgent"] = agent(vm, self);
            view["disks"] = json!([{
                "name": vm.disk.id.name(),
                "statuses": [{
                    "code": "ProvisioningState/succeeded",
                    "level": "Info",
                    "displayStatus": "Provisioning succeeded",
                    "time": arm_time(vm.booted.unwrap_or(vm.created)),
                }],
            }]);
            view["hyperVGeneration"] = "V2".into();
        }
        if let Some(addresses) = user_managed_console(vm, base) {
            view["bootDiagnostics"] = addresses;
        }
        view["statuses"] = statuses(vm, self.now);
        if matches!(vm.agent, Agent::Ready(_)) {
            let (name, version) = match vm.os {
                Os::Linux => ("azurelinux", "3.0"),
                Os::Windows => ("Windows Server 2022 Datacenter", "10.0.20348"),
            };
            view["computerName"] = vm.computer_name().into();
            view["osName"] = name.into();
            view["osVersion"] = version.into();
        }
        let dropped = matches!(vm.state, VmState::Deleting)
            && self.scenario.quirks.extensions_while_deleting == DeletedExtensions::Dropped;
        let extensions: Vec<Value> = vm
            .extensions
            .values()
            .filter_map(|extension| extension.instance_view(&handler_version(vm, extension)))
            .collect();
        // The key is absent, not an empty list, until the guest has reported an extension.
        if !extensions.is_empty() && !dropped {
            view["extensions"] = extensions.into();
        }
        view
    }
}

/// The model of a VM: the requested properties and the provisioning state.
pub(crate) fn vm_model(vm: &Vm) -> Value {
    let kind = if vm.is_uniform() {
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
    } else {
        "Microsoft.Compute/virtualMachines"
    };
    let mut body = json!({
        "name": vm.id.name(),
        "id": vm.id.to_string(),
        "type": kind,
        "location": vm.location,
    });
    if vm.is_uniform() {
        let set = vm.scale_set.as_ref().map_or("", |set| set.name());
        body["instanceId"] = vm.id.name().into();
        body["name"] = format!("{set}_{}", vm.id.name()).into();
    }
    for (key, value) in [("zones", &vm.zones), ("tags", &vm.tags)] {
        if !value.is_null() {
            body[key] = value.clone();
        }
    }
    for (key, value) in &vm.further {
        body[key.as_str()] = value.clone();
    }
    let mut properties = vm.properties.clone();
    properties["provisioningState"] = vm.state.word().into();
    properties["vmId"] = vm.vm_id.as_str().into();
    properties["timeCreated"] = arm_time(vm.created).into();
    let os = match vm.os {
        Os::Linux => "Linux",
        Os::Windows => "Windows",
    };
    properties["storageProfile"]["osDisk"]["osType"] = os.into();
    properties["storageProfile"]["osDisk"]["name"] = vm.disk.id.name().into();
    body["properties"] = properties;
    body["etag"] = "\"1\"".into();
    if !vm.extensions.is_empty() {
        body["resources"] =
            vm.extensions.values().map(|extension| extension.body(&vm.id, "", false)).collect();
    }
    body
}

fn agent(vm: &Vm, azure: &Azure) -> Value {
    match vm.agent {
        Agent::Absent | Agent::Unavailable => json!({
            "vmAgentVersion": "Unknown",
            "statuses": [{
                "code": "ProvisioningState/Unavailable",
                "level": "Warning",
                "displayStatus": "Not Ready",
                "message": "VM status blob is found but not yet populated.",
                "time": arm_time(azure.now),
            }],
        }),
        Agent::Ready(_) => {
            let is_shown = azure.scenario.quirks.run_command_handler == RunCommandHandler::Shown;
            let commands = run_command::handler_view(vm).filter(|_| is_shown);
            let handlers: Vec<Value> = vm
                .extensions
                .values()
                .filter_map(|extension| extension.handler_view(&handler_version(vm, extension)))
                .chain(commands)
                .collect();
            json!({
                "vmAgentVersion": "2.11.1.4",
                "statuses": [{
                    "code": "ProvisioningState/succeeded",
                    "level": "Info",
                    "displayStatus": "Ready",
                    "message": "Guest Agent is running",
                    "time": arm_time(azure.now),
                }],
                "extensionHandlers": handlers,
            })
        }
    }
}

fn statuses(vm: &Vm, now: jiff::Timestamp) -> Value {
    let mut status = match &vm.state {
        VmState::Creating if vm.power == Power::Off => {
            json!({ "code": "ProvisioningState/creating", "level": "Info", "displayStatus": "Creating" })
        }
        VmState::Creating => json!({
            "code": "ProvisioningState/creating/OSProvisioningInProgress",
            "level": "Info",
            "displayStatus": "OS Provisioning In progress",
        }),
        VmState::Updating => {
            json!({ "code": "ProvisioningState/updating", "level": "Info", "displayStatus": "Updating" })
        }
        VmState::Succeeded => json!({
            "code": "ProvisioningState/succeeded",
            "level": "Info",
            "displayStatus": "Provisioning succeeded",
        }),
        VmState::Failed(error) => json!({
            "code": format!("ProvisioningState/failed/{}", error.code),
            "level": "Error",
            "displayStatus": "Provisioning failed",
            "message": error.message,
        }),
        VmState::Deleting => {
            json!({ "code": "ProvisioningState/deleting", "level": "Info", "displayStatus": "Deleting" })
        }
    };
    status["time"] = arm_time(now).into();
    let power = match vm.power {
        Power::Off => return json!([status]),
        Power::Running => ("PowerState/running", "VM running"),
        Power::Deallocated => ("PowerState/deallocated", "VM deallocated"),
    };
    json!([status, { "code": power.0, "level": "Info", "displayStatus": power.1 }])
}
