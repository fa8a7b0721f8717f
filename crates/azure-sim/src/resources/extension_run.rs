//! The runs of an extension on its VM: from the agent's report to the platform's result.

use crate::azure::Azure;
use crate::event::{ExtensionStep, VmEvent, VmRef};
use crate::exchange::ArmError;
use crate::life::{EXTENSION_PATIENCE, told};
use crate::operation::Progress;
use crate::resources::extension::{Extension, Outcome, View};
use crate::resources::vm::{Os, SOON, VmState};
use crate::scenario::{Script, ScriptRun};

impl Azure {
    /// The agent is ready: the handler is installed and starts soon.
    pub(crate) fn start_extension(&mut self, reference: &VmRef, name: &str) {
        let Some(extension) = self
            .vms
            .get(&reference.key)
            .and_then(|vm| vm.extensions.get(&name.to_ascii_lowercase()))
        else {
            return;
        };
        let event = VmEvent::Extension {
            name: name.to_owned(),
            run: extension.run,
            step: ExtensionStep::Starts,
        };
        self.vm_after(SOON, reference, event);
    }

    pub(crate) fn extension_event(
        &mut self,
        reference: &VmRef,
        name: &str,
        run: u32,
        step: ExtensionStep,
    ) {
        let lower = name.to_ascii_lowercase();
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        let current = vm.extensions.get(&lower).is_some_and(|extension| extension.run == run);
        if !current || matches!(vm.state, VmState::Deleting) {
            return;
        }
        match step {
            ExtensionStep::Starts => self.extension_starts(reference, &lower),
            ExtensionStep::Ends => self.extension_ends(reference, &lower),
            ExtensionStep::Shown => self.extension_shown(reference, &lower),
            ExtensionStep::GivesUp => self.extension_gives_up(reference, &lower),
            ExtensionStep::Gone => {
                if let Some(operation) =
                    vm.extensions.remove(&lower).and_then(|extension| extension.operation)
                {
                    self.end_operation(&operation, Progress::Succeeded { output: None });
                }
            }
        }
    }

    /// The script of an extension: the VM's bootstrap script, or the outcome that the scenario defines for
    /// its type.
    fn script_of(&self, reference: &VmRef, name: &str) -> Script {
        let vm = &self.vms[&reference.key];
        let extension = &vm.extensions[name];
        if extension.is_custom_script() {
            return vm.boot.script.clone();
        }
        vm.boot
            .extensions
            .get(&extension.kind)
            .map_or(Script::Succeeds, |run| Script::Ends(run.clone()))
    }

    fn extension_starts(&mut self, reference: &VmRef, name: &str) {
        let script = self.script_of(reference, name);
        let extension = self.extension(reference, name);
        extension.view = View::Running;
        let run = extension.run;
        let event = |step| VmEvent::Extension { name: name.to_owned(), run, step };
        match script {
            Script::Succeeds | Script::HandlerFails(_) => {
                let lasts = self.script_lasts(reference, run, None);
                self.vm_after(lasts, reference, event(ExtensionStep::Ends));
            }
            Script::Ends(script) => {
                let lasts = self.script_lasts(reference, run, Some(&script));
                self.vm_after(lasts, reference, event(ExtensionStep::Ends));
            }
            Script::Hangs => {
                self.vm_after(EXTENSION_PATIENCE, reference, event(ExtensionStep::GivesUp));
            }
            Script::Runs(command) => self.want_program(reference, Some(name), run, command),
        }
    }

    fn extension_ends(&mut self, reference: &VmRef, name: &str) {
        let bootstrap = self.extension(reference, name).is_custom_script();
        let outcome = match self.script_of(reference, name) {
            Script::HandlerFails(text) => Outcome::HandlerFailed(text),
            script if bootstrap => {
                let script = told(&script);
                let message = self.script_ended(reference, &script);
                if fails(&script, self.vms[&reference.key].os) {
                    Outcome::Failed(message)
                } else {
                    Outcome::Succeeded(message)
                }
            }
            script => {
                let script = told(&script);
                if script.exit_code == 0 {
                    Outcome::Succeeded("Enable succeeded".to_owned())
                } else {
                    Outcome::Failed(script.output)
                }
            }
        };
        let extension = self.extension(reference, name);
        extension.result = Some(outcome);
        let event = VmEvent::Extension {
            name: name.to_owned(),
            run: extension.run,
            step: ExtensionStep::Shown,
        };
        // The agent uploads every six seconds; the platform shows the result a little later.
        let lag = self.lasts(&format!("shown/{}/{name}", reference.vm_id), 1.0, 6.0);
        self.vm_after(lag, reference, event);
    }

    fn extension_shown(&mut self, reference: &VmRef, name: &str) {
        let now = self.now;
        let vm_name = self.vms[&reference.key].id.name().to_owned();
        let extension = self.extension(reference, name);
        let Some(outcome) = extension.result.clone() else {
            return;
        };
        extension.view = View::Ended(outcome.clone());
        extension.reported = Some(now);
        let error = match outcome {
            Outcome::Succeeded(_) => None,
            Outcome::Failed(message) => Some(script_error(extension, &message)),
            Outcome::HandlerFailed(message) => Some(handler_error(extension, &vm_name, &message)),
        };
        self.extension_settles(reference, name, error.as_ref());
    }

    fn extension_gives_up(&mut self, reference: &VmRef, name: &str) {
        let vm_name = self.vms[&reference.key].id.name().to_owned();
        let extension = self.extension(reference, name);
        let error = match extension.view {
            View::Ended(_) => return,
            View::Nothing => ArmError::new(
                409,
                "VMAgentStatusCommunicationError",
                format!(
                    "VM '{vm_name}' has not reported status for VM agent or extensions. Verify that the OS is up and healthy, the VM has a running VM agent, and that it can establish outbound connections to Azure storage."
                ),
            ),
            View::Running if extension.result.is_some() => return,
            View::Running => ArmError::new(
                409,
                "VMExtensionProvisioningTimeout",
                format!(
                    "Provisioning of VM extension {} has timed out. Extension provisioning has taken too long to complete. The extension last reported \"Plugin enabled\". More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot",
                    extension.name
                ),
            ),
        };
        self.extension_settles(reference, name, Some(&error));
    }

    /// The platform has the final result: model, VM and operation follow.
    fn extension_settles(&mut self, reference: &VmRef, name: &str, error: Option<&ArmError>) {
        let extension = self.extension(reference, name);
        extension.state = if error.is_some() { "Failed" } else { "Succeeded" };
        let operation = extension.operation.take();
        let state = extension.state;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        let id = vm.id.beside(format!("{}/extensions/{name}", vm.id.tail));
        let others_failed =
            vm.extensions.values().any(|other| other.state == "Failed" && other.name != name);
        match error {
            Some(error) => vm.state = VmState::Failed(error.clone()),
            None if matches!(vm.state, VmState::Updating) && !others_failed => {
                vm.state = VmState::Succeeded;
            }
            None => {}
        }
        self.journal.state(self.now, &id.tail, state);
        if let Some(operation) = operation {
            self.end_operation(
                &operation,
                match error {
                    None => Progress::Succeeded { output: None },
                    Some(error) => Progress::Failed(error.clone()),
                },
            );
        }
        self.log_activity(&id, "virtualMachines/extensions/write", error);
        self.scale_set_progresses_with(&reference.key);
    }

    pub(crate) fn extension(&mut self, reference: &VmRef, name: &str) -> &mut Extension {
        self.vms
            .get_mut(&reference.key)
            .and_then(|vm| vm.extensions.get_mut(name))
            .expect("the event was checked against the extension before")
    }
}

fn fails(script: &ScriptRun, os: Os) -> bool {
    let usual = match os {
        Os::Linux => script.exit_code,
        Os::Windows => i32::from(script.exit_code != 0),
    };
    script.outer_exit_code.unwrap_or(usual) != 0
}

fn script_error(extension: &Extension, message: &str) -> ArmError {
    let message = format!(
        "VM has reported a failure when processing extension '{}' (publisher '{}' and type '{}'). Error message: '{message}'. More information on troubleshooting is available at https://aka.ms/VMExtensionCSELinuxTroubleshoot. ",
        extension.name, extension.publisher, extension.kind
    );
    ArmError::new(409, "VMExtensionProvisioningError", message)
}

fn handler_error(extension: &Extension, vm: &str, message: &str) -> ArmError {
    let message = format!(
        "The handler for VM extension type '{}' has reported terminal failure for VM extension '{}' on VM '{vm}' with error message: '{message}'.\n    \n'Install handler failed for the extension.'",
        extension.handler(),
        extension.name
    );
    ArmError::new(409, "VMExtensionHandlerNonTransientError", message)
}
