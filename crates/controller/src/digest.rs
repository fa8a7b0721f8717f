//! From Azure's answers to an [`Observation`]. Pure: the answers and the time come in.

use bringup_azure::error::ArmFailure;
use bringup_azure::model::{
    ActivityEntry, Extension, ImageReference, Machine, OsType, Status, VirtualMachine,
};
use bringup_azure::{ArmError, ErrorKind};
use bringup_contract::cse::{self, CodeSource};
use bringup_contract::{ImageVersion, Os};
use bringup_diagnosis::redaction::redact;
use bringup_diagnosis::{Piece, Source};
use bringup_objects::condition::cut;
use bringup_objects::report::{Collector, CollectorState};
use jiff::Timestamp;

use crate::observation::{Agent, Cse, Facts, Mode, Observation, Vm};

/// Names of collectors, as reports show them.
pub mod collector {
    /// The VM with its instance view.
    pub const VM: &str = "virtual machine";
    /// The machine of AKS.
    pub const MACHINE: &str = "AKS machine";
    /// Boot diagnostics.
    pub const SERIAL_LOG: &str = "serial log";
    /// Node and certificate requests.
    pub const KUBERNETES: &str = "Kubernetes";
    /// What outlives the VM.
    pub const ACTIVITY_LOG: &str = "activity log";
}

/// How long a collector's detail may be.
const DETAIL: usize = 300;

/// A collector's line in a report. The detail may be text of others: it is redacted.
pub fn collected(name: &str, state: CollectorState, detail: &str) -> Collector {
    let detail = redact(detail).text.truncated(DETAIL).into_string();
    Collector { name: name.to_owned(), state, detail }
}

impl Observation {
    /// What the VM shows, added to what is known.
    #[must_use]
    pub fn with_vm(mut self, vm: &VirtualMachine, now: Timestamp) -> Self {
        self.at = now;
        self.denied = None;
        self.is_full = false;
        self.facts = facts(vm, self.facts);
        self.evidence.image_version = self
            .facts
            .image
            .as_deref()
            .and_then(ImageVersion::find)
            .or(self.evidence.image_version);
        self.evidence.os = vm.os.map(os).or(self.evidence.os);
        self.agent = match &vm.agent {
            Some(agent) if agent.is_ready() => Agent::Ready,
            _ => Agent::Silent,
        };
        let script = script(vm);
        if let Some(script) = script {
            self.cse = dated(state(script), &self.cse, now);
            self.handler_version.clone_from(&script.handler_version);
            self.extension_state = script
                .statuses
                .first()
                .and_then(|status| status.code.clone())
                .or_else(|| script.provisioning_state.clone());
        }
        self.mode = match (self.mode, script) {
            (Mode::Machine, _) => Mode::Machine,
            (_, Some(_)) => Mode::Extension,
            (mode, None) if vm.provisioning_state.as_deref() != Some("Succeeded") => mode,
            (_, None) => Mode::Scriptless,
        };
        let has_failed = vm
            .provisioning_state
            .as_deref()
            .is_some_and(|state| state.eq_ignore_ascii_case("failed"))
            || vm.statuses.iter().any(Status::is_error);
        self.vm = if vm.is_being_deleted() {
            if has_failed || matches!(self.cse, Cse::Failed { .. }) {
                Vm::Failed
            } else {
                Vm::Deleting
            }
        } else if has_failed {
            Vm::Failed
        } else {
            Vm::Present
        };
        for piece in pieces(vm) {
            self.add(piece);
        }
        self.timeline.extend(timeline(vm));
        self.collected(collected(collector::VM, CollectorState::Ok, &shown(vm)));
        self
    }

    /// That the VM could not be read, and why. What is known stays.
    #[must_use]
    pub fn without_vm(mut self, error: &ArmError, now: Timestamp) -> Self {
        self.at = now;
        self.is_full = false;
        if error.is_not_found() {
            self.vm = Vm::Gone;
            let detail = "the VM does not exist, or not any more";
            self.collected(collected(collector::VM, CollectorState::Late, detail));
            return self;
        }
        let (state, detail) = refusal(error);
        self.denied = Some(redact(&detail).text.truncated(DETAIL).into_string());
        self.collected(collected(collector::VM, state, &detail));
        self
    }

    /// What AKS says of its machine.
    #[must_use]
    pub fn with_machine(mut self, machine: &Machine, now: Timestamp) -> Self {
        self.at = now;
        self.mode = Mode::Machine;
        if let Some(version) = machine.node_image_version.as_deref() {
            self.facts.image.get_or_insert_with(|| version.to_owned());
            self.evidence.image_version =
                ImageVersion::find(version).or(self.evidence.image_version);
        }
        let failed = machine
            .provisioning_state
            .as_deref()
            .is_some_and(|state| state.eq_ignore_ascii_case("failed"));
        if let Some(failure) = &machine.provisioning_error {
            let most = failure.details.first().unwrap_or(failure);
            self.add(Piece::seen(Source::Arm, "AKS machine's error", &words(most)));
        }
        if failed {
            self.vm = Vm::Failed;
        }
        let state = machine.provisioning_state.as_deref().unwrap_or("not said");
        let detail = format!("provisioning state {state}");
        self.collected(collected(collector::MACHINE, CollectorState::Ok, &detail));
        self
    }

    /// What the console shows. Where the scripts run without an extension, their result is there.
    #[must_use]
    pub fn with_console(mut self, text: &str, cut_off: bool) -> Self {
        if text.trim().is_empty() {
            let detail = "nothing was written yet";
            self.collected(collected(collector::SERIAL_LOG, CollectorState::Empty, detail));
            return self;
        }
        if self.cse == Cse::Absent {
            let at = Some(self.at);
            match cse::read(text).code {
                Some((0, CodeSource::Json | CodeSource::Node)) => self.cse = Cse::Succeeded { at },
                Some((_, CodeSource::Json | CodeSource::Node)) => self.cse = Cse::Failed { at },
                Some((_, CodeSource::Trace | CodeSource::Outer)) | None => {}
            }
        }
        let size = text.len();
        let part = if cut_off { "the last " } else { "" };
        self.add(Piece::seen(Source::SerialLog, "serial log", text));
        let detail = format!("{part}{size} bytes");
        self.collected(collected(collector::SERIAL_LOG, CollectorState::Ok, &detail));
        self
    }

    /// What Kubernetes shows of the node and its certificate.
    #[must_use]
    pub fn with_kubernetes(mut self, lines: &[String]) -> Self {
        let state = if lines.is_empty() { CollectorState::Empty } else { CollectorState::Ok };
        let detail = match lines.first() {
            Some(first) => first.as_str(),
            None => "no Node, and no certificate request of one",
        };
        self.collected(collected(collector::KUBERNETES, state, detail));
        if !lines.is_empty() {
            self.add(Piece::seen(Source::Kubernetes, "Kubernetes", &lines.join("\n")));
        }
        self
    }

    /// What the activity log has of the VM and its extensions.
    #[must_use]
    pub fn with_activity(mut self, entries: &[&ActivityEntry]) -> Self {
        let texts: Vec<String> = entries
            .iter()
            .filter(|entry| {
                entry.status.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("failed"))
            })
            .filter_map(|entry| match &entry.failure {
                Some(failure) if !failure.is_empty() => Some(words(failure)),
                _ => entry.status_message.clone(),
            })
            .collect();
        let (state, detail) = match texts.len() {
            0 => (CollectorState::Empty, format!("{} entries, none failed", entries.len())),
            failed => (CollectorState::Ok, format!("{failed} failed entries")),
        };
        self.collected(collected(collector::ACTIVITY_LOG, state, &detail));
        for text in texts {
            self.add(Piece::seen(Source::ActivityLog, "activity log", &text));
        }
        self
    }

    /// What Karpenter said.
    #[must_use]
    pub fn with_signal(mut self, text: &str) -> Self {
        self.add(Piece::seen(Source::Kubernetes, "Event AsyncProvisioningError", text));
        self
    }

    /// Adds a piece, in place of what the same place said before.
    fn add(&mut self, piece: Piece) {
        let pieces = &mut self.evidence.pieces;
        let same = |known: &Piece| known.source == piece.source && known.name == piece.name;
        // An activity log has many entries, all of them worth reading.
        if piece.source != Source::ActivityLog {
            pieces.retain(|known| !same(known));
        }
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }

    /// Notes who was asked, in place of an earlier answer.
    pub fn collected(&mut self, asked: Collector) {
        match self.collectors.iter_mut().find(|known| known.name == asked.name) {
            Some(known) => *known = asked,
            None => self.collectors.push(asked),
        }
    }
}

/// What a refusal means to somebody who reads a report.
pub fn refusal(error: &ArmError) -> (CollectorState, String) {
    match error.kind() {
        ErrorKind::Forbidden { action, scope } => {
            let action = action.as_deref().unwrap_or("reading it");
            let scope = scope.as_deref().map(|scope| format!(" on {scope}")).unwrap_or_default();
            (CollectorState::Denied, format!("the permission {action}{scope} is missing"))
        }
        ErrorKind::Throttled { policy, .. } => {
            let policy = policy.as_deref().unwrap_or("the front door");
            (CollectorState::Throttled, format!("Azure throttles ({policy})"))
        }
        ErrorKind::NotFound => (CollectorState::Late, error.to_string()),
        _ => (CollectorState::Failed, error.to_string()),
    }
}

/// The extension that runs the bootstrap; of several, the one that failed.
fn script(vm: &VirtualMachine) -> Option<&Extension> {
    let scripts = vm.extensions.iter().filter(|extension| extension.is_custom_script());
    scripts.max_by_key(|extension| match state(extension) {
        Cse::Failed { .. } => 3,
        Cse::Running { .. } => 2,
        Cse::Succeeded { .. } => 1,
        Cse::Absent => 0,
    })
}

/// The guest's word goes before the model's: the model follows it.
fn state(extension: &Extension) -> Cse {
    let reported = extension.statuses.first();
    let at = reported.and_then(|status| status.time);
    let word = reported
        .and_then(|status| status.state("ProvisioningState"))
        .or(extension.provisioning_state.as_deref())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let word = word.split('/').next().unwrap_or_default();
    match word {
        _ if reported.is_some_and(Status::is_error) => Cse::Failed { at },
        "failed" => Cse::Failed { at },
        "succeeded" => Cse::Succeeded { at },
        _ => Cse::Running { since: at },
    }
}

/// A state that Azure does not date is dated by when it was first seen.
fn dated(new: Cse, known: &Cse, now: Timestamp) -> Cse {
    match (new, known) {
        (Cse::Running { since: None }, Cse::Running { since: Some(since) }) => {
            Cse::Running { since: Some(*since) }
        }
        (Cse::Succeeded { at: None }, Cse::Succeeded { at: Some(at) }) => {
            Cse::Succeeded { at: Some(*at) }
        }
        (Cse::Failed { at: None }, Cse::Failed { at: Some(at) }) => Cse::Failed { at: Some(*at) },
        (Cse::Running { since: None }, _) => Cse::Running { since: Some(now) },
        (Cse::Succeeded { at: None }, _) => Cse::Succeeded { at: Some(now) },
        (new, _) => new,
    }
}

fn facts(vm: &VirtualMachine, known: Facts) -> Facts {
    Facts {
        vm_id: vm.vm_id.clone().or(known.vm_id),
        size: vm.size.clone().or(known.size),
        region: vm.location.clone().or(known.region),
        zone: vm.zones.first().cloned().or(known.zone),
        image: vm.image.as_ref().map(image).or(known.image),
        computer_name: vm.computer_name.clone().or(known.computer_name),
        os: vm.os.map(|kind| word_of(kind).to_owned()).or(known.os),
    }
}

fn image(reference: &ImageReference) -> String {
    match reference {
        ImageReference::CommunityGallery(id)
        | ImageReference::SharedGallery(id)
        | ImageReference::Id(id) => id.clone(),
        ImageReference::Marketplace { .. } => {
            format!("marketplace image {}", reference.version().unwrap_or("latest"))
        }
    }
}

fn os(kind: OsType) -> Os {
    match kind {
        OsType::Linux => Os::Linux,
        OsType::Windows => Os::Windows,
    }
}

fn word_of(kind: OsType) -> &'static str {
    match kind {
        OsType::Linux => "linux",
        OsType::Windows => "windows",
    }
}

/// Everything on the VM that says something: extensions, and what has failed.
fn pieces(vm: &VirtualMachine) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for extension in &vm.extensions {
        let statuses = extension.statuses.iter().chain(&extension.substatuses);
        let messages: Vec<&str> = statuses
            .filter(|status| extension.is_custom_script() || status.is_error())
            .filter_map(|status| status.message.as_deref())
            .collect();
        if !messages.is_empty() {
            let name = format!("extension {}", extension.name);
            pieces.push(Piece::seen(Source::Extension, &name, &messages.join("\n")));
        }
    }
    let errors: Vec<String> =
        vm.statuses.iter().filter(|status| status.is_error()).map(said).collect();
    if !errors.is_empty() {
        pieces.push(Piece::seen(Source::Arm, "VM status", &errors.join("\n")));
    }
    let agent = vm.agent.iter().flat_map(|agent| {
        let handlers = agent.handlers.iter().filter_map(|handler| handler.status.as_ref());
        agent.statuses.iter().chain(handlers.filter(|status| status.is_error()))
    });
    let agent: Vec<String> = agent
        .filter(|status| status.state("ProvisioningState") != Some("succeeded"))
        .map(said)
        .collect();
    if !agent.is_empty() {
        pieces.push(Piece::seen(Source::Arm, "VM agent", &agent.join("\n")));
    }
    pieces
}

fn said(status: &Status) -> String {
    let code = status.code.as_deref().unwrap_or_default();
    let message = status.message.as_deref().or(status.display.as_deref()).unwrap_or_default();
    format!("{code}: {message}")
}

/// A failure and what lies beneath it, as one text.
fn words(failure: &ArmFailure) -> String {
    let said = failure.chain().into_iter().map(|failure| {
        let code = failure.code.as_deref().unwrap_or_default();
        let message = failure.message.as_deref().unwrap_or_default();
        format!("Code=\"{code}\" Message={message}")
    });
    said.collect::<Vec<_>>().join("\n")
}

fn shown(vm: &VirtualMachine) -> String {
    let state = vm.provisioning_state.as_deref().unwrap_or("no state");
    let names: Vec<&str> = vm.extensions.iter().map(|extension| extension.name.as_str()).collect();
    let extensions =
        if names.is_empty() { "no extension".to_owned() } else { cut(&names.join(", "), 120) };
    format!("{state}; {extensions}")
}

fn timeline(vm: &VirtualMachine) -> Vec<(Timestamp, String)> {
    let created = vm.created.map(|at| (at, "VM created".to_owned()));
    let agent = vm.agent.iter().filter(|agent| agent.is_ready()).flat_map(|agent| &agent.statuses);
    let agent = agent.filter_map(|status| Some((status.time?, "agent ready".to_owned())));
    let script = script(vm).and_then(|script| {
        let status = script.statuses.first()?;
        let state = status.state("ProvisioningState")?.split('/').next()?.to_owned();
        Some((status.time?, format!("CSE {state}")))
    });
    created.into_iter().chain(agent.take(1)).chain(script).collect()
}
