//! Facts and evidence from a VM's model and instance view: extensions, statuses, properties.

use bringup_azure::error::ArmFailure;
use bringup_azure::model::{Extension, ImageReference, OsType, Status, VirtualMachine};
use bringup_contract::{Os, cse};
use bringup_diagnosis::{Piece, Source};
use bringup_objects::condition::cut;
use jiff::Timestamp;

use super::AGENT_PIECE;
use crate::diagnosed::SUMMARY;
use crate::observation::{Cse, Facts};

/// The extension that runs the bootstrap script. If the VM has several such extensions, the one that failed.
pub(super) fn script(vm: &VirtualMachine) -> Option<&Extension> {
    let scripts = vm.extensions.iter().filter(|extension| extension.is_custom_script());
    scripts.max_by_key(|extension| match state(extension) {
        Cse::Failed { .. } => 3,
        Cse::Running { .. } => 2,
        Cse::Succeeded { .. } => 1,
        Cse::Absent => 0,
    })
}

/// The extension that shows how the bootstrap of a Cluster API machine ended: an extension in which
/// bringup-node waited, or else the provider's own, which shows only that the bootstrap failed. All other
/// extensions belong to the user, and do not affect the bootstrap.
pub(super) fn waiter(vm: &VirtualMachine) -> Option<&Extension> {
    let provided = |extension: &&Extension| {
        is_providers(extension) && matches!(state(extension), Cse::Failed { .. })
    };
    vm.extensions.iter().find(|one| says_ours(one)).or_else(|| vm.extensions.iter().find(provided))
}

/// Whether the extension contains output of bringup-node.
fn says_ours(extension: &Extension) -> bool {
    let statuses = extension.statuses.iter().chain(&extension.substatuses);
    statuses.filter_map(|status| status.message.as_deref()).any(|text| text.contains(SUMMARY))
}

/// Whether this is the extension of Cluster API's Azure provider. Its failure means that the sentinel file
/// did not appear in time, and never shows why.
pub(super) fn is_providers(extension: &Extension) -> bool {
    let name = extension.name.to_ascii_lowercase();
    name.starts_with("capz.") && name.ends_with(".bootstrapping")
}

/// Whether only the user's own extensions failed on a VM of Cluster API: they do not affect how the VM joins.
pub(super) fn only_users_extensions_failed(vm: &VirtualMachine) -> bool {
    let mut failed =
        vm.extensions.iter().filter(|one| matches!(state(one), Cse::Failed { .. })).peekable();
    let is_users = |extension: &Extension| !is_providers(extension) && !says_ours(extension);
    let about_extensions = |status: &Status| {
        status.code.as_deref().is_some_and(|code| code.to_ascii_lowercase().contains("vmextension"))
    };
    failed.peek().is_some()
        && failed.all(is_users)
        && vm.statuses.iter().filter(|status| status.is_error()).all(about_extensions)
}

/// The exit code with which bringup-node ended its wait in this extension.
pub(super) fn exit_of_wait(extension: &Extension) -> Option<i32> {
    let statuses = extension.statuses.iter().chain(&extension.substatuses);
    waited(statuses.filter_map(|status| status.message.as_deref()))
}

/// The exit code with which bringup-node ended its wait, if one of these texts contains it.
pub(super) fn waited<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<i32> {
    let mut said = texts.into_iter().filter_map(|text| cse::read(text).node);
    said.find(|node| node.waited && node.whole).and_then(|node| node.exit)
}

/// The bootstrap's result according to the exit code of a wait: 3 is a node that joined without its sentinel
/// file, 75 is a wait that continues elsewhere.
pub(super) fn told(exit: i32, at: Option<Timestamp>) -> Cse {
    match exit {
        0 | 3 => Cse::Succeeded { at },
        75 => Cse::Running { since: at },
        _ => Cse::Failed { at },
    }
}

/// The extension's state. The guest's status takes precedence over the model's, because Azure updates the
/// model later.
pub(super) fn state(extension: &Extension) -> Cse {
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

/// A state without a time from Azure gets the time at which it was first seen.
pub(super) fn dated(new: Cse, known: &Cse, now: Timestamp) -> Cse {
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

pub(super) fn facts(vm: &VirtualMachine, known: Facts) -> Facts {
    Facts {
        vm_id: vm.vm_id.clone().or(known.vm_id),
        made: vm.created.or(known.made),
        size: vm.size.clone().or(known.size),
        region: vm.location.clone().or(known.region),
        zone: vm.zones.first().cloned().or(known.zone),
        image: vm.image.as_ref().map(image).or(known.image),
        computer_name: vm.computer_name.clone().or(known.computer_name),
        os: vm.os.map(|kind| word_of(kind).to_owned()).or(known.os),
    }
}

pub(super) fn image(reference: &ImageReference) -> String {
    match reference {
        ImageReference::CommunityGallery(id)
        | ImageReference::SharedGallery(id)
        | ImageReference::Id(id) => id.clone(),
        ImageReference::Marketplace { .. } => {
            format!("marketplace image {}", reference.version().unwrap_or("latest"))
        }
    }
}

pub(super) fn os(kind: OsType) -> Os {
    match kind {
        OsType::Linux => Os::Linux,
        OsType::Windows => Os::Windows,
    }
}

pub(super) fn word_of(kind: OsType) -> &'static str {
    match kind {
        OsType::Linux => "linux",
        OsType::Windows => "windows",
    }
}

/// All texts on the VM as pieces of evidence: extensions, and failed statuses.
pub(super) fn pieces(vm: &VirtualMachine) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for extension in vm.extensions.iter().filter(|extension| !is_providers(extension)) {
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
        pieces.push(Piece::seen(Source::Arm, AGENT_PIECE, &agent.join("\n")));
    }
    pieces
}

pub(super) fn said(status: &Status) -> String {
    let code = status.code.as_deref().unwrap_or_default();
    let message = status.message.as_deref().or(status.display.as_deref()).unwrap_or_default();
    format!("{code}: {message}")
}

/// A failure and its inner errors as one text.
pub(super) fn words(failure: &ArmFailure) -> String {
    let said = failure.chain().into_iter().map(|failure| {
        let code = failure.code.as_deref().unwrap_or_default();
        let message = failure.message.as_deref().unwrap_or_default();
        format!("Code=\"{code}\" Message={message}")
    });
    said.collect::<Vec<_>>().join("\n")
}

pub(super) fn shown(vm: &VirtualMachine) -> String {
    let state = vm.provisioning_state.as_deref().unwrap_or("no state");
    let names: Vec<&str> = vm.extensions.iter().map(|extension| extension.name.as_str()).collect();
    let extensions =
        if names.is_empty() { "no extension".to_owned() } else { cut(&names.join(", "), 120) };
    format!("{state}; {extensions}")
}

pub(super) fn timeline(vm: &VirtualMachine) -> Vec<(Timestamp, String)> {
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
