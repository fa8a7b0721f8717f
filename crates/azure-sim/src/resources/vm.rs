//! Virtual machines: their state, and how they are read and deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::azure::Azure;
use crate::catalog::Size;
use crate::event::{Event, VmEvent, VmRef};
use crate::exchange::{ArmError, Call, Reply};
use crate::operation::{OperationId, Progress, Provider};
use crate::resources::extension::Extension;
use crate::resources::not_found;
use crate::resources::run_command::RunCommand;
use crate::route::{Id, Key, Scope};
use crate::scenario::{Boot, Preemption};
use crate::view::vm_model;

/// A virtual machine, alone or in a scale set.
#[derive(Debug)]
pub(crate) struct Vm {
    pub(crate) id: Id,
    /// A unique ID that, unlike the name, is never reused.
    #[expect(clippy::struct_field_names, reason = "what Azure calls it; `id` is another thing")]
    pub(crate) vm_id: String,
    pub(crate) created: Timestamp,
    pub(crate) location: String,
    pub(crate) zones: Value,
    pub(crate) tags: Value,
    /// The properties of the PUT, without the fields that Azure never returns.
    pub(crate) properties: Value,
    /// Further parts of the body that are returned unchanged: identity, plan.
    pub(crate) further: Vec<(String, Value)>,
    pub(crate) custom_data: String,
    pub(crate) user_data: Option<String>,
    pub(crate) size: &'static Size,
    pub(crate) os: Os,
    pub(crate) image_version: Option<String>,
    pub(crate) state: VmState,
    pub(crate) power: Power,
    pub(crate) agent: Agent,
    /// When the kernel of the current boot started.
    pub(crate) booted: Option<Timestamp>,
    pub(crate) boots: u32,
    pub(crate) boot: Boot,
    /// The error with which the creation will fail.
    pub(crate) fails_with: Option<ArmError>,
    pub(crate) extensions: BTreeMap<String, Extension>,
    pub(crate) run_commands: BTreeMap<String, RunCommand>,
    /// Counts runs of scripts, so that the end of an abandoned run is not mistaken for the end of a new one.
    pub(crate) runs: u32,
    /// The result that the script, run by cloud-init or by the extension, wrote on the node.
    pub(crate) result: Option<String>,
    pub(crate) console: Vec<(Timestamp, String)>,
    pub(crate) joined: Option<Timestamp>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) nics: Vec<Attached>,
    pub(crate) disk: Attached,
    pub(crate) scale_set: Option<Id>,
}

/// A resource that a VM uses.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(crate) id: Id,
    /// Whether the resource is deleted with the VM.
    pub(crate) delete: bool,
}

/// The operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Os {
    Linux,
    Windows,
}

/// The provisioning state of a VM.
#[derive(Debug, Clone)]
pub(crate) enum VmState {
    Creating,
    Updating,
    Succeeded,
    Failed(ArmError),
    Deleting,
}

impl VmState {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::Deleting => "Deleting",
        }
    }
}

/// Whether the VM is powered on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    Off,
    Running,
    Deallocated,
}

/// The guest agent, as the platform sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Absent,
    Unavailable,
    Ready(Timestamp),
}

impl Vm {
    pub(crate) fn reference(&self) -> VmRef {
        VmRef { key: self.id.key(), vm_id: self.vm_id.clone() }
    }

    /// Whether the VM is an instance of a uniform scale set.
    pub(crate) fn is_uniform(&self) -> bool {
        self.id.tail.matches('/').count() > 2
    }

    pub(crate) fn computer_name(&self) -> &str {
        self.properties["osProfile"]["computerName"].as_str().unwrap_or_else(|| self.id.name())
    }

    pub(crate) fn is_spot(&self) -> bool {
        self.properties["priority"].as_str().is_some_and(|word| word.eq_ignore_ascii_case("Spot"))
    }
}

impl Azure {
    pub(crate) fn get_vm(&self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        match self.vms.get(&id.key()) {
            Some(vm) if self.shows(vm.created, self.scenario.quirks.hidden_after_create.0) => {
                Ok(Reply::json(200, self.vm_body(vm, call)))
            }
            Some(_) => Err(not_found(id)),
            None => self.missing(id),
        }
    }

    pub(crate) fn get_instance_view(&self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let vm = self.vms.get(&id.key()).ok_or_else(|| {
            ArmError::new(404, "NotFound", "The entity was not found in this Azure location.")
        })?;
        Ok(Reply::json(200, self.instance_view(vm, &call.base)))
    }

    pub(crate) fn list_vms(&self, call: &Call<'_>, scope: &Scope) -> Reply {
        let filter = call.query("$filter").unwrap_or_default();
        let status_only = call.query("statusOnly") == Some("true");
        let set = filter
            .split('\'')
            .nth(1)
            .filter(|_| filter.to_ascii_lowercase().contains("virtualmachinescaleset"))
            .and_then(Id::parse)
            .map(|id| id.key());
        let living = self
            .vms
            .values()
            .filter(|vm| !vm.is_uniform())
            .filter(|vm| {
                set.as_ref()
                    .is_none_or(|set| vm.scale_set.as_ref().is_some_and(|id| id.key() == *set))
            })
            .map(|vm| {
                // A list contains instance views only if it is filtered by scale set, or if the request
                // expands nothing else.
                let mut body = if set.is_some() { self.vm_body(vm, call) } else { vm_model(vm) };
                if status_only {
                    body["properties"]["instanceView"] = self.instance_view(vm, &call.base);
                }
                (&vm.id, vm.created, body)
            });
        self.page(call, scope, "microsoft.compute/virtualmachines", living)
    }

    pub(crate) fn delete_vm(&mut self, call: &Call<'_>, id: &Id) -> Result<Reply, ArmError> {
        let key = id.key();
        let Some(vm) = self.vms.get(&key) else {
            return Ok(Reply::empty(204));
        };
        let location = vm.location.clone();
        if let (VmState::Deleting, Some(operation)) = (&vm.state, vm.operation.clone()) {
            return Ok(self.follow(call, Reply::empty(202), &operation, true));
        }
        self.preempt(&key)?;
        let operation = self.start_operation(Provider::Compute, id, &location);
        let forced =
            call.query("forceDeletion").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        self.vm_starts_deleting(&key, Some(operation.clone()), forced);
        Ok(self.follow(call, Reply::empty(202), &operation, true))
    }

    /// Begins to delete a VM.
    pub(crate) fn vm_starts_deleting(
        &mut self,
        key: &Key,
        operation: Option<OperationId>,
        forced: bool,
    ) {
        let what = format!("vm-delete/{}/{}", key.0, self.now);
        let lasts =
            if forced { self.lasts(&what, 20.0, 60.0) } else { self.lasts(&what, 60.0, 150.0) };
        let now = self.now;
        let Some(vm) = self.vms.get_mut(key) else {
            return;
        };
        let lasts = vm.boot.gone_after.map_or(lasts, |span| span.0);
        vm.state = VmState::Deleting;
        vm.operation = operation;
        let reference = vm.reference();
        self.journal.state(now, &vm.id.tail, "deleting");
        self.vm_after(lasts, &reference, VmEvent::Gone);
    }

    /// A newer PUT or DELETE arrives: either the running operation ends, or the new request is refused.
    pub(crate) fn preempt(&mut self, key: &Key) -> Result<(), ArmError> {
        let Some(vm) = self.vms.get_mut(key) else {
            return Ok(());
        };
        let how = self.scenario.quirks.preemption;
        let running: Vec<OperationId> = vm
            .operation
            .iter()
            .chain(vm.extensions.values().filter_map(|extension| extension.operation.as_ref()))
            .cloned()
            .collect();
        let running: Vec<OperationId> = running
            .into_iter()
            .filter(|id| {
                self.operations
                    .get(id)
                    .is_some_and(|found| matches!(found.progress, Progress::Running))
            })
            .collect();
        let preempted = ArmError::new(
            409,
            "OperationPreempted",
            "Operation execution has been preempted by a more recent operation.",
        );
        if how == Preemption::Conflict && !running.is_empty() {
            let message = "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to get more details on the conflicting requests.";
            return Err(ArmError::new(409, "Conflict", message));
        }
        for id in running {
            let end = match how {
                Preemption::Failed => Progress::Failed(preempted.clone()),
                Preemption::Canceled | Preemption::Conflict => {
                    Progress::Canceled(preempted.clone())
                }
            };
            self.end_operation(&id, end);
        }
        Ok(())
    }

    /// The VM is deleted; resources with the delete option follow a little later, other resources stay.
    pub(crate) fn vm_gone(&mut self, reference: &VmRef) {
        let Some(vm) = self.vms.remove(&reference.key) else {
            return;
        };
        self.journal.state(self.now, &vm.id.tail, "gone");
        let body = vm_model(&vm);
        self.bury(&vm.id, body);
        for nic in &vm.nics {
            let key = nic.id.key();
            if let Some(found) = self.nics.get_mut(&key) {
                found.vm = None;
            }
            if nic.delete {
                let wait = self.lasts(&format!("nic-follows/{}/{}", key.0, vm.vm_id), 1.0, 15.0);
                self.after(wait, Event::NicGone(key));
            }
        }
        let key = vm.disk.id.key();
        let its = |disk: &&mut crate::resources::disk::Disk| {
            disk.vm.as_ref().is_none_or(|of| of.key() == reference.key)
        };
        if let Some(found) = self.disks.get_mut(&key).filter(its) {
            found.vm = None;
        }
        if vm.disk.delete {
            let wait = self.lasts(&format!("disk-follows/{}/{}", key.0, vm.vm_id), 1.0, 15.0);
            self.after(wait, Event::DiskGone(key));
        }
        if let Some(operation) = &vm.operation {
            self.end_operation(operation, Progress::Succeeded { output: None });
        }
        self.log_activity(&vm.id, "virtualMachines/delete", None);
        self.scale_set_lost(&vm);
    }

    /// A spot VM is evicted: Azure deallocates it, and its Node disappears.
    pub(crate) fn vm_evicted(&mut self, reference: &VmRef) {
        let now = self.now;
        if let Some(vm) = self.vms.get_mut(&reference.key) {
            vm.power = Power::Deallocated;
            vm.agent = Agent::Unavailable;
            vm.joined = None;
            self.journal.state(now, &vm.id.tail, "evicted");
        }
    }

    /// An update that changes nothing in the guest ends soon.
    pub(crate) fn vm_update_ends(&mut self, reference: &VmRef) {
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        if let (VmState::Updating, Some(operation)) = (&vm.state, vm.operation.clone()) {
            vm.state = VmState::Succeeded;
            self.end_operation(&operation, Progress::Succeeded { output: None });
        }
    }
}

/// A short delay, for events that follow at once.
pub(crate) const SOON: Duration = Duration::from_secs(2);
