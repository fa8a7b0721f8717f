//! Scheduled events, in order. Handling an event may schedule others.

use std::time::Duration;

use jiff::Timestamp;

use crate::azure::Azure;
use crate::operation::OperationId;
use crate::resources::later;
use crate::route::Key;

/// An event that is due at a moment.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    NicSettled(Key),
    NicGone(Key),
    DiskGone(Key),
    PublicIpGone(Key),
    Vm(VmRef, VmEvent),
}

/// One incarnation of a VM. An event scheduled for a deleted VM does not apply to a new VM of the
/// same name.
#[derive(Debug, Clone)]
pub(crate) struct VmRef {
    pub(crate) key: Key,
    pub(crate) vm_id: String,
}

/// Something that happens to a VM.
#[derive(Debug, Clone)]
pub(crate) enum VmEvent {
    DiskAppears,
    PowersOn,
    CreateEnds,
    UpdateEnds,
    AgentReady,
    ScriptEnds { run: u32 },
    NodeJoins,
    Reboots,
    Restarts { operation: OperationId },
    Evicted,
    Gone,
    Extension { name: String, run: u32, step: ExtensionStep },
    RunCommandEnds { name: String },
}

/// The steps of one run of an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExtensionStep {
    /// The handler is installed and calls the script.
    Starts,
    /// The script has ended on the node.
    Ends,
    /// The platform shows the result.
    Shown,
    /// The platform reports a timeout.
    GivesUp,
    /// The extension was deleted.
    Gone,
}

impl Azure {
    /// Handles every event due until `now` by the caller's clock. Earlier moments are ignored.
    pub fn advance_to(&mut self, now: Timestamp) {
        let now = later(now, self.ahead);
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(now);
    }

    /// Schedules an event. Events due at the same moment are handled in the order they were
    /// scheduled.
    pub(crate) fn after(&mut self, wait: Duration, event: Event) {
        self.scheduled += 1;
        self.queue.insert((later(self.now, wait), self.scheduled), event);
    }

    pub(crate) fn vm_after(&mut self, wait: Duration, vm: &VmRef, event: VmEvent) {
        self.after(wait, Event::Vm(vm.clone(), event));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::NicSettled(key) => self.nic_settled(&key),
            Event::NicGone(key) => self.nic_gone(&key),
            Event::DiskGone(key) => self.disk_gone(&key),
            Event::PublicIpGone(key) => self.public_ip_gone(&key),
            Event::Vm(vm, event) => {
                if self.vms.get(&vm.key).is_some_and(|found| found.vm_id == vm.vm_id) {
                    self.vm_event(&vm, event);
                }
            }
        }
    }

    fn vm_event(&mut self, vm: &VmRef, event: VmEvent) {
        match event {
            VmEvent::DiskAppears => self.disk_appears(vm),
            VmEvent::PowersOn => self.vm_powers_on(vm),
            VmEvent::CreateEnds => self.vm_create_ends(vm),
            VmEvent::UpdateEnds => self.vm_update_ends(vm),
            VmEvent::AgentReady => self.vm_agent_ready(vm),
            VmEvent::ScriptEnds { run } => self.custom_data_script_ends(vm, run),
            VmEvent::NodeJoins => self.vm_joins(vm),
            VmEvent::Reboots => self.vm_reboots(vm),
            VmEvent::Restarts { operation } => self.vm_restarts(vm, &operation),
            VmEvent::Evicted => self.vm_evicted(vm),
            VmEvent::Gone => self.vm_gone(vm),
            VmEvent::Extension { name, run, step } => self.extension_event(vm, &name, run, step),
            VmEvent::RunCommandEnds { name } => self.run_command_ends(vm, &name),
        }
    }
}
