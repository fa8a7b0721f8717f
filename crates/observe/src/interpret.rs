//! Builds an [`Observation`] from Azure's answers. Pure: the answers and the time are arguments.

mod run_commands;
mod vm;

use bringup_azure::ArmError;
use bringup_azure::model::{ActivityEntry, Machine, Status, VirtualMachine};
use bringup_contract::ImageVersion;
use bringup_contract::cse::{self, CodeSource};
use bringup_diagnosis::redaction::redact;
use bringup_diagnosis::{Piece, Source};
use bringup_objects::report::{Collector, CollectorState};
use jiff::Timestamp;

use self::vm::{
    dated, exit_of_wait, facts, is_providers, only_users_extensions_failed, os, pieces, script,
    shown, state, timeline, told, waiter, words,
};
use crate::collector::{self, DETAIL, collected, refusal};
use crate::observation::{Agent, Aks, Cse, Mode, Observation, Vm};
use crate::profile::Script;

/// The name of the piece of evidence that holds the platform's status of the guest agent.
pub const AGENT_PIECE: &str = "VM agent";
/// The most steps in a timeline.
const MOST_STEPS: usize = 64;
impl Observation {
    /// Adds the state and instance view of the VM.
    #[must_use]
    pub fn with_vm(mut self, vm: &VirtualMachine, now: Timestamp) -> Self {
        self.at = now;
        self.denied = None;
        self.is_full = false;
        self.facts = facts(vm, self.facts);
        let image_version = self.facts.image.as_deref().and_then(ImageVersion::find);
        let evidence = self.evidence.change();
        evidence.image_version = image_version.or(evidence.image_version);
        evidence.os = vm.os.map(os).or(evidence.os);
        self.agent = match &vm.agent {
            Some(agent) if agent.is_ready() => Agent::Ready,
            _ => Agent::Silent,
        };
        self.runs_commands = run_commands::are_shown(vm);
        // The meaning of bringup-node's exit code decides: a code other than 0 is not always a failure.
        let (script, exit) = match self.script {
            Script::Bootstrap => (script(vm), None),
            Script::Waiter => (waiter(vm), waiter(vm).and_then(exit_of_wait)),
        };
        let is_excused = exit.is_some_and(|exit| !matches!(told(exit, None), Cse::Failed { .. }));
        if let Some(script) = script {
            let at = script.statuses.first().and_then(|status| status.time);
            let state = exit.map_or_else(|| state(script), |exit| told(exit, at));
            self.cse = dated(state, &self.cse, now);
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
        let is_said = vm
            .provisioning_state
            .as_deref()
            .is_some_and(|state| state.eq_ignore_ascii_case("failed"))
            || vm.statuses.iter().any(Status::is_error);
        let is_users = self.script == Script::Waiter && only_users_extensions_failed(vm);
        let has_failed = is_said && !is_excused && !is_users;
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
        let gave_up = script.is_some_and(is_providers);
        self.warn(exit, gave_up);
        for step in timeline(vm) {
            if !self.timeline.contains(&step) && self.timeline.len() < MOST_STEPS {
                self.timeline.push(step);
            }
        }
        self.collected(collected(collector::VM, CollectorState::Ok, &shown(vm)));
        self
    }

    /// Records that the VM could not be read, and why. Earlier facts remain.
    #[must_use]
    pub fn without_vm(mut self, error: &ArmError, now: Timestamp) -> Self {
        if error.is_not_found() {
            return self.with_no_vm(now);
        }
        self.at = now;
        self.is_full = false;
        let (state, detail) = refusal(error);
        self.denied = Some(redact(&detail).text.truncated(DETAIL).into_string());
        self.collected(collected(collector::VM, state, &detail));
        self
    }

    /// Records that bringup may not read the VM, and why. Earlier facts remain.
    #[must_use]
    pub fn outside_read_scope(mut self, why: &str, now: Timestamp) -> Self {
        self.at = now;
        self.is_full = false;
        self.denied = Some(redact(why).text.truncated(DETAIL).into_string());
        self.collected(collected(collector::VM, CollectorState::Denied, why));
        self
    }

    /// Records that the VM does not exist. Earlier facts remain.
    #[must_use]
    pub fn with_no_vm(mut self, now: Timestamp) -> Self {
        self.at = now;
        self.is_full = false;
        self.vm = Vm::Gone;
        let detail = "the VM does not exist, or not any more";
        self.collected(collected(collector::VM, CollectorState::Late, detail));
        self
    }

    /// Records that the VM was not read in time: all facts about the VM are from an earlier look.
    #[must_use]
    pub fn unread(mut self, now: Timestamp) -> Self {
        self.agent = self.agent.unread();
        self.is_full = false;
        self.without_turn(collector::VM, now)
    }

    /// Records that Azure refuses reads of this VM until the given time. Earlier facts remain.
    #[must_use]
    pub(crate) fn refused_until(mut self, until: Timestamp) -> Self {
        let until = until.strftime("%H:%M:%S UTC");
        self.denied = Some(format!("it refuses reads of this VM until {until} (Retry-After)"));
        self
    }

    /// Records that a source was not read and judged before the verdict was due, because Azure allows too few
    /// reads or because other evidence was being judged.
    #[must_use]
    pub fn without_turn(mut self, name: &str, now: Timestamp) -> Self {
        self.at = now;
        let detail = "not read before the verdict was due: other reads, or long evidence of other nodes, \
                      came first";
        self.collected(collected(name, CollectorState::Throttled, detail));
        self
    }

    /// Adds the state of the AKS machine.
    #[must_use]
    pub fn with_machine(mut self, machine: &Machine, now: Timestamp) -> Self {
        self.at = now;
        self.agent = self.agent.unread();
        self.mode = Mode::Machine;
        if let Some(version) = machine.node_image_version.as_deref() {
            self.facts.image.get_or_insert_with(|| version.to_owned());
            let evidence = self.evidence.change();
            evidence.image_version = ImageVersion::find(version).or(evidence.image_version);
        }
        let failed = machine
            .provisioning_state
            .as_deref()
            .is_some_and(|state| state.eq_ignore_ascii_case("failed"));
        if let Some(failure) = &machine.provisioning_error {
            let most = failure.details.first().unwrap_or(failure);
            self.add(Piece::seen(Source::Arm, "AKS machine's error", &words(most)));
        }
        // The AKS machine failed even if its VM was deleted or never created.
        self.aks = if failed { Aks::Failed } else { Aks::NotFailed };
        if failed {
            self.vm = Vm::Failed;
        } else if machine.is_underway() {
            self.vm = Vm::Present;
            self.cse = dated(Cse::Running { since: None }, &self.cse, now);
        }
        let state = machine.provisioning_state.as_deref().unwrap_or("not said");
        let detail = format!("provisioning state {state}");
        self.collected(collected(collector::MACHINE, CollectorState::Ok, &detail));
        self
    }

    /// Adds the text of the console. For scripts that run without an extension, the console contains their
    /// result.
    #[must_use]
    pub fn with_console(mut self, text: &str, cut_off: bool) -> Self {
        if text.trim().is_empty() {
            let detail = "nothing was written yet";
            self.collected(collected(collector::SERIAL_LOG, CollectorState::Empty, detail));
            return self;
        }
        if is_page(text) {
            let detail = "an HTML page came instead of a log: a proxy or portal answers in place of the storage account";
            self.collected(collected(collector::SERIAL_LOG, CollectorState::Failed, detail));
            return self;
        }
        if self.cse == Cse::Absent {
            let at = Some(self.at);
            let read = cse::read(text);
            let ended = match read.code {
                Some((code, CodeSource::Json | CodeSource::Node)) => Some(code),
                // A join has exit codes of its own, which are not those of the scripts.
                Some((_, CodeSource::Trace | CodeSource::Outer)) | None => None,
            };
            let exit =
                read.node.filter(|node| node.waited && node.whole).and_then(|node| node.exit);
            match (ended, exit) {
                (Some(0), _) => self.cse = Cse::Succeeded { at },
                (Some(_), _) => self.cse = Cse::Failed { at },
                (None, Some(exit)) => self.cse = told(exit, at),
                (None, None) => {}
            }
            self.warn(exit, false);
        }
        let size = text.len();
        let part = if cut_off { "the last " } else { "" };
        self.add(Piece::seen(Source::SerialLog, "serial log", text));
        let detail = format!("{part}{size} bytes");
        self.collected(collected(collector::SERIAL_LOG, CollectorState::Ok, &detail));
        self
    }

    /// Adds the state of the Node and its certificate requests in Kubernetes.
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

    /// Adds the activity log's entries about the VM and its extensions.
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

    /// Adds the text of Karpenter's Event.
    #[must_use]
    pub fn with_signal(mut self, text: &str) -> Self {
        self.add(Piece::seen(Source::Kubernetes, "Event AsyncProvisioningError", text));
        self
    }

    /// Records a problem with a bootstrap that bringup-node waited for, to warn of in case the Node joins all
    /// the same.
    fn warn(&mut self, exit: Option<i32>, gave_up: bool) {
        self.warning = match (exit, &self.cse) {
            _ if self.script != Script::Waiter => None,
            (Some(3), _) => Some("its bootstrap left no sentinel".to_owned()),
            _ if gave_up => Some("its bootstrap left no sentinel in time".to_owned()),
            (_, Cse::Failed { .. }) => {
                let cause = self.evidence.diagnosis().cause.reason;
                Some(format!("its bootstrap reported a failure: {cause}"))
            }
            _ => None,
        };
    }

    /// Adds a piece of evidence, and replaces an earlier piece from the same place.
    fn add(&mut self, piece: Piece) {
        let pieces = &mut self.evidence.change().pieces;
        let same = |known: &Piece| known.source == piece.source && known.name == piece.name;
        // An activity log has many entries, and all of them are kept.
        if piece.source != Source::ActivityLog {
            pieces.retain(|known| !same(known));
        }
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }

    /// Records the result of a collector, and replaces an earlier one.
    pub fn collected(&mut self, asked: Collector) {
        match self.collectors.iter_mut().find(|known| known.name == asked.name) {
            Some(known) => *known = asked,
            None => self.collectors.push(asked),
        }
    }
}

fn is_page(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}
