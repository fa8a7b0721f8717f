//! The life of a VM after its PUT: the VM powers on, its operation ends, its agent reports, its script runs,
//! its Node joins; or one of these steps fails.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::azure::{Azure, ProgramEnd, ProgramRun};
use crate::event::{ExtensionStep, VmEvent, VmRef};
use crate::exchange::ArmError;
use crate::operation::Progress;
use crate::output::{BootTimes, Finished};
use crate::resources::later;
use crate::resources::vm::{Agent, Power, Vm, VmState};
use crate::scenario::{AgentOutcome, Bootstrap, NodeOutcome, OsOutcome, Script, ScriptRun};

/// A real program that runs as the bootstrap of a VM.
#[derive(Debug)]
pub(crate) struct Running {
    vm: VmRef,
    /// The extension that runs the program; `None` when cloud-init runs it.
    extension: Option<String>,
    run: u32,
}

impl Azure {
    pub(crate) fn vm_powers_on(&mut self, reference: &VmRef) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        vm.power = Power::Running;
        vm.agent = Agent::Unavailable;
        vm.booted = Some(now);
        vm.boots += 1;
        let mut banner = boot_banner(vm);
        banner.push_str(&vm.boot.early_console);
        vm.console.push((now, banner));
        self.journal.state(now, &vm.id.tail, "powered on");
    }

    pub(crate) fn vm_create_ends(&mut self, reference: &VmRef) {
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        if !matches!(vm.state, VmState::Creating) {
            return;
        }
        let failure = vm.fails_with.clone().or_else(|| os_failure(vm));
        let agent_comes = failure.is_none() || vm.boot.os == OsOutcome::TimesOutThenReady;
        let silent = vm.boot.agent == AgentOutcome::Silent;
        let agent_after = vm.boot.agent_ready_after;
        let (id, operation) = (vm.id.clone(), vm.operation.take());
        let end = match &failure {
            None => Progress::Succeeded { output: None },
            Some(error) => Progress::Failed(error.clone()),
        };
        vm.state = failure.clone().map_or(VmState::Succeeded, VmState::Failed);
        self.journal.state(self.now, &id.tail, self.vms[&reference.key].state.word());
        if let Some(operation) = operation {
            self.end_operation(&operation, end);
        }
        self.log_activity(&id, "virtualMachines/write", failure.as_ref());
        self.scale_set_progresses_with(&reference.key);
        if agent_comes && !silent {
            let drawn = || self.lasts(&format!("agent/{}", reference.vm_id), 3.0, 12.0);
            let wait = agent_after.map_or_else(drawn, |span| span.0);
            self.vm_after(wait, reference, VmEvent::AgentReady);
        }
    }

    pub(crate) fn vm_agent_ready(&mut self, reference: &VmRef) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        if vm.power != Power::Running || matches!(vm.state, VmState::Deleting) {
            return;
        }
        vm.agent = Agent::Ready(now);
        // The platform reported a timeout, and the VM came up later.
        if vm.boot.os == OsOutcome::TimesOutThenReady {
            vm.state = VmState::Succeeded;
        }
        let reboot = vm.boot.reboot_after.filter(|_| vm.boots == 1);
        let from_custom_data = vm.boot.bootstrap != Bootstrap::Extension;
        let waiting: Vec<String> = vm
            .extensions
            .values()
            .filter(|extension| extension.waits())
            .map(|extension| extension.name.clone())
            .collect();
        self.journal.state(now, &vm.id.tail, "agent ready");
        for name in waiting {
            self.start_extension(reference, &name);
        }
        if from_custom_data {
            self.start_custom_data_script(reference);
        }
        if let Some(wait) = reboot {
            self.vm_after(wait.0, reference, VmEvent::Reboots);
        }
    }

    /// The VM reboots: a running script is lost and starts again.
    pub(crate) fn vm_reboots(&mut self, reference: &VmRef) {
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        if vm.power != Power::Running || matches!(vm.state, VmState::Deleting) {
            return;
        }
        vm.joined = None;
        for extension in vm.extensions.values_mut() {
            extension.interrupted();
        }
        // The end of a script that was running is ignored from now on.
        vm.runs += 1;
        self.vm_powers_on(reference);
        let wait = self.lasts(&format!("agent-again/{}", reference.vm_id), 10.0, 25.0);
        self.vm_after(wait, reference, VmEvent::AgentReady);
    }

    fn start_custom_data_script(&mut self, reference: &VmRef) {
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        vm.runs += 1;
        let run = vm.runs;
        let lasts = match vm.boot.script.clone() {
            Script::Succeeds => self.script_lasts(reference, run, None),
            Script::Ends(script) => self.script_lasts(reference, run, Some(&script)),
            Script::Runs(command) => return self.want_program(reference, None, run, command),
            Script::Hangs | Script::HandlerFails(_) => return,
        };
        self.vm_after(lasts, reference, VmEvent::ScriptEnds { run });
    }

    pub(crate) fn custom_data_script_ends(&mut self, reference: &VmRef, run: u32) {
        let Some(vm) = self.vms.get(&reference.key) else {
            return;
        };
        if vm.runs != run {
            return;
        }
        let script = told(&vm.boot.script);
        self.script_ended(reference, &script);
    }

    /// How long a script runs.
    pub(crate) fn script_lasts(
        &self,
        reference: &VmRef,
        run: u32,
        script: Option<&ScriptRun>,
    ) -> Duration {
        script.and_then(|script| script.lasts).map_or_else(
            || self.lasts(&format!("script/{}/{run}", reference.vm_id), 15.0, 90.0),
            |span| span.0,
        )
    }

    /// A script has ended: its result is written on the node, and the Node joins or not. Returns
    /// the status message of an extension.
    pub(crate) fn script_ended(&mut self, reference: &VmRef, script: &ScriptRun) -> String {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return String::new();
        };
        let started = match vm.agent {
            Agent::Ready(at) => at,
            Agent::Absent | Agent::Unavailable => now,
        };
        let finished = Finished {
            script,
            times: BootTimes::new(vm.booted.unwrap_or(started), started),
            started,
            ended: now,
            os: vm.os,
            handler: vm.boot.handler.as_deref().unwrap_or("2.1.16"),
        };
        let result = finished.provision_json();
        let message = finished.message();
        let (joins, wait) = match vm.boot.node {
            NodeOutcome::Joins if script.exit_code == 0 => (true, None),
            NodeOutcome::JoinsAfter(wait) => (true, Some(wait.0)),
            NodeOutcome::Joins | NodeOutcome::Never => (false, None),
        };
        let console = console_of_script(vm, &result);
        vm.console.push((now, console));
        vm.result = Some(result);
        self.journal.state(now, &vm.id.tail, &format!("script ended with {}", script.exit_code));
        if joins {
            let wait =
                wait.unwrap_or_else(|| self.lasts(&format!("join/{}", reference.vm_id), 3.0, 12.0));
            self.vm_after(wait, reference, VmEvent::NodeJoins);
        }
        message
    }

    pub(crate) fn vm_joins(&mut self, reference: &VmRef) {
        let now = self.now;
        let Some(vm) = self.vms.get_mut(&reference.key) else {
            return;
        };
        if vm.power == Power::Running && vm.joined.is_none() {
            vm.joined = Some(now);
            vm.console.push((now, "kubelet: node registered\r\n".to_owned()));
            self.journal.state(now, &vm.id.tail, "node joined");
        }
    }

    /// Requests a real program as the bootstrap of a VM.
    pub(crate) fn want_program(
        &mut self,
        reference: &VmRef,
        extension: Option<&str>,
        run: u32,
        command: Vec<String>,
    ) {
        let Some(vm) = self.vms.get(&reference.key) else {
            return;
        };
        let asked = extension.and_then(|name| vm.extensions.get(&name.to_ascii_lowercase()));
        let environment = BTreeMap::from([
            ("BRINGUP_SIM_VM".to_owned(), vm.id.to_string()),
            ("BRINGUP_SIM_CUSTOM_DATA".to_owned(), vm.custom_data.clone()),
            (
                "BRINGUP_SIM_COMMAND".to_owned(),
                asked.map(|extension| extension.command.clone()).unwrap_or_default(),
            ),
        ]);
        self.programs_started += 1;
        let number = self.programs_started;
        self.running.insert(
            number,
            Running { vm: reference.clone(), extension: extension.map(str::to_owned), run },
        );
        self.programs.push(ProgramRun { run: number, command, environment });
    }

    /// Whether a real program still runs as the bootstrap of a VM.
    pub fn programs_run(&self) -> bool {
        !self.running.is_empty()
    }

    /// Records how a program ended. The result is discarded if its VM is deleted or has rebooted.
    pub fn program_ended(&mut self, run: u64, end: ProgramEnd) {
        let Some(Running { vm: reference, extension, run }) = self.running.remove(&run) else {
            return;
        };
        let Some(vm) = self.vms.get_mut(&reference.key).filter(|vm| vm.vm_id == reference.vm_id)
        else {
            return;
        };
        let script = ScriptRun {
            exit_code: end.exit_code,
            output: end.stdout,
            stderr: end.stderr,
            json: crate::scenario::JsonShape::Absent,
            ..ScriptRun::default()
        };
        match extension {
            Some(name) => {
                vm.boot.script = Script::Ends(script);
                self.extension_event(&reference, &name, run, ExtensionStep::Ends);
            }
            None if vm.runs == run => {
                // cloud-init copies the output to the console.
                vm.boot.console.push_str(&script.output);
                self.script_ended(&reference, &script);
            }
            None => {}
        }
    }
}

/// The scripted outcome of a scenario.
pub(crate) fn told(script: &Script) -> ScriptRun {
    match script {
        Script::Ends(run) => run.clone(),
        Script::Succeeds | Script::Hangs | Script::HandlerFails(_) | Script::Runs(_) => ScriptRun {
            output: "+ echo endcustomscript\n+ exit 0\n".to_owned(),
            ..ScriptRun::default()
        },
    }
}

fn os_failure(vm: &Vm) -> Option<ArmError> {
    let name = vm.id.name();
    let (code, message) = match vm.boot.os {
        OsOutcome::Ready => return None,
        OsOutcome::TimesOut | OsOutcome::TimesOutThenReady => (
            "OSProvisioningTimedOut",
            format!(
                "OS Provisioning for VM '{name}' did not finish in the allotted time. The VM may still finish provisioning successfully. Please check provisioning state later."
            ),
        ),
        OsOutcome::ClientError => (
            "OSProvisioningClientError",
            format!(
                "OS Provisioning for VM '{name}' did not finish in the allotted time. However, the VM guest agent was detected running. This suggests the guest OS has not been properly prepared to be used as a VM image (with CreateOption=FromImage)."
            ),
        ),
        OsOutcome::InternalError => (
            "OSProvisioningInternalError",
            format!("OS Provisioning failed for VM '{name}' due to an internal error."),
        ),
    };
    Some(ArmError::new(409, code, message))
}

fn boot_banner(vm: &Vm) -> String {
    format!(
        "\u{1b}[0m[    0.000000] Linux version 6.6.0-simulated (build@contoso) #1 SMP\r\n\
         [    1.004711] systemd[1]: Hostname set to <{}>.\r\n\
         [    4.200000] cloud-init[611]: Cloud-init v. 25.1 running 'init-local'. Up 4.20 seconds.\r\n",
        vm.computer_name()
    )
}

/// Without an extension, cloud-init writes the result to the console.
fn console_of_script(vm: &Vm, result: &str) -> String {
    let mut text = match (vm.boot.bootstrap, &vm.boot.script) {
        // A real program writes its own output.
        (Bootstrap::CustomData, Script::Runs(_))
        | (Bootstrap::Extension | Bootstrap::UserData, _) => String::new(),
        (Bootstrap::CustomData, _) => format!("[   13.261278] cloud-init[1899]: {result}\r\n"),
    };
    for line in vm.boot.console.lines() {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str(
        "[   13.900000] cloud-init[1899]: Cloud-init v. 25.1 finished. Up 13.90 seconds\r\n",
    );
    text
}

/// How long the platform waits for an agent that never reports, counted from the PUT of the
/// extension.
pub(crate) const AGENT_PATIENCE: Duration = Duration::from_mins(25);
/// How long the platform waits for an extension that never ends.
pub(crate) const EXTENSION_PATIENCE: Duration = Duration::from_mins(90);

impl Azure {
    /// The VMs whose Node is registered.
    pub fn nodes(&self) -> Vec<crate::azure::JoinedNode> {
        self.vms
            .values()
            .filter_map(|vm| {
                let joined = vm.joined?;
                let address = vm
                    .nics
                    .first()
                    .and_then(|nic| self.nics.get(&nic.id.key()))
                    .map_or_else(|| "10.255.0.4".to_owned(), |nic| nic.address.to_string());
                Some(crate::azure::JoinedNode {
                    name: vm.computer_name().to_ascii_lowercase(),
                    provider_id: provider_id(vm),
                    internal_ip: address,
                    size: vm.size.name.to_owned(),
                    region: vm.location.clone(),
                    zone: vm.zones[0].as_str().map(str::to_owned),
                    image_version: vm.image_version.clone(),
                    tags: crate::resources::tag_map(&vm.tags),
                    joined,
                })
            })
            .collect()
    }

    /// When the next event is due, if any.
    pub fn next_due(&self) -> Option<jiff::Timestamp> {
        self.queue.keys().next().map(|(at, _)| later(*at, Duration::ZERO))
    }
}

/// The provider id of a VM. The resource group is in lower case, as the cloud provider writes it.
fn provider_id(vm: &Vm) -> String {
    let mut id = vm.id.clone();
    id.group = id.group.to_ascii_lowercase();
    format!("azure://{id}")
}
