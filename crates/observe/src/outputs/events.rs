//! The Events of a verdict. Their names are the same, whichever replica creates them: a second attempt to
//! create an Event finds the first one.

use bringup_contract::Open;
use bringup_objects::condition::{CSE_PROVISIONED, cut, find, reason};
use bringup_objects::report::{BootstrapReport, Phase};
use bringup_objects::{MANAGER, names};
use bringup_runtime::recorder::{LONGEST_NOTE, NAMESPACE};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;

use crate::profile::{Kind, Scope};
use crate::subject::Subject;

/// For this long, failures in one pool with the same cause and image share one Event.
const POOL_WINDOW: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Warning,
    Normal,
}

/// The Event on the subject itself.
pub fn on_target(report: &BootstrapReport, instance: &str, now: Timestamp) -> Option<Event> {
    let target = &report.spec.target_ref;
    let (reason, event_type) = reason_of(report)?;
    let name = names::stable(
        &target.name,
        '.',
        &[&target.uid, report.spec.vm_id.as_deref().unwrap_or_default(), reason, report.cause()?],
    );
    let regarding = ObjectReference {
        api_version: Some(target.api_version.clone()),
        kind: Some(target.kind.clone()),
        name: Some(target.name.clone()),
        namespace: namespace_of(report),
        uid: Some(target.uid.clone()),
        ..ObjectReference::default()
    };
    let related = parent(report, None);
    Some(event(name, reason, event_type, note(report)?, regarding, related, instance, now))
}

/// The Event on the subject's parent, because the subject will be deleted.
pub fn on_parent(
    report: &BootstrapReport,
    parent_uid: &str,
    instance: &str,
    now: Timestamp,
) -> Option<Event> {
    let (reason, event_type) = reason_of(report)?;
    if report.phase() == Phase::Superseded {
        return None;
    }
    let image = report.spec.image_version.as_deref().unwrap_or_default();
    let window = report.finished_at()?.as_second() / POOL_WINDOW.as_secs();
    let parent_name = &report.spec.parent_ref.as_ref()?.name;
    let name = names::stable(
        parent_name,
        '.',
        &[parent_uid, reason, report.cause()?, image, &window.to_string()],
    );
    let regarding = parent(report, Some(parent_uid))?;
    Some(event(name, reason, event_type, note(report)?, regarding, None, instance, now))
}

/// The Event on a subject that already has the most conditions it may have, so that ours do not fit.
pub fn no_room(subject: &Subject, instance: &str, now: Timestamp) -> Event {
    let reason = "NoRoomForConditions";
    let regarding = ObjectReference {
        api_version: Some(subject.shape.resource.api_version.clone()),
        kind: Some(subject.kind().word().to_owned()),
        name: Some(subject.name.clone()),
        namespace: subject.namespace.clone(),
        uid: Some(subject.uid.clone()),
        ..ObjectReference::default()
    };
    let name = names::stable(&subject.name, '.', &[&subject.uid, reason]);
    let most = subject.shape.most.unwrap_or_default();
    let note = format!(
        "{} {} has {most} conditions, the most that its definition allows: the bootstrap's result is in its BootstrapReport only, if it failed.",
        subject.kind().word(),
        subject.name
    );
    event(name, reason, EventType::Warning, note, regarding, None, instance, now)
}

/// The Event's reason: `CSEFailed` if the extension failed, `BootstrapFailed` if the VM has no extension.
fn reason_of(report: &BootstrapReport) -> Option<(&'static str, EventType)> {
    let status = report.status.as_ref()?;
    let cse = find(&status.conditions, CSE_PROVISIONED);
    Some(match status.phase {
        Open::Known(Phase::Superseded) => ("BootstrapRecovered", EventType::Normal),
        Open::Known(Phase::Final | Phase::Lost) | Open::Other(_) => {
            if cse.is_some_and(|cse| cse.reason == reason::CSE_FAILED) {
                ("CSEFailed", EventType::Warning)
            } else {
                ("BootstrapFailed", EventType::Warning)
            }
        }
    })
}

fn note(report: &BootstrapReport) -> Option<String> {
    let status = report.status.as_ref()?;
    let verdict = status.verdict.as_ref()?;
    let node = report.spec.node_name.as_deref().unwrap_or(&report.spec.target_ref.name);
    let name = report.metadata.name.as_deref().unwrap_or_default();
    let namespace = report.metadata.namespace.as_deref().unwrap_or_default();
    let cause = format!("cause {}: {}", verdict.cause, verdict.title);
    let text = match (&status.phase, status.cse.as_ref().and_then(|cse| cse.exit_code)) {
        (Open::Known(Phase::Superseded), _) => {
            format!(
                "Node {node} joined after its bootstrap had been reported as failed; the report is closed."
            )
        }
        (_, Some(code)) => {
            let cse = status.cse.as_ref();
            let constant = cse
                .and_then(|cse| cse.constant.clone())
                .or_else(|| {
                    cse.map(|cse| cse.constant_candidates.join(" or "))
                        .filter(|name| !name.is_empty())
                })
                .map(|constant| format!(": {constant}"))
                .unwrap_or_default();
            format!("CSE exited with code {code} on node {node}{constant}; {cause}.")
        }
        (_, None) => format!("Node {node} did not come up; {cause}."),
    };
    let place = format!(" Report {namespace}/{name}.");
    Some(format!("{}{place}", cut(&text, LONGEST_NOTE.saturating_sub(place.len()))))
}

/// The namespace of a report's subject; none for a claim, which is cluster-scoped.
fn namespace_of(report: &BootstrapReport) -> Option<String> {
    let kind = Kind::named(&report.spec.target_ref.kind);
    let is_cluster_scoped = kind.is_some_and(|kind| kind.profile().scope == Scope::Cluster);
    report.metadata.namespace.clone().filter(|_| !is_cluster_scoped)
}

fn parent(report: &BootstrapReport, uid: Option<&str>) -> Option<ObjectReference> {
    let owner = report.metadata.owner_references.as_ref()?.first()?;
    Some(ObjectReference {
        namespace: namespace_of(report),
        api_version: Some(owner.api_version.clone()),
        kind: Some(owner.kind.clone()),
        name: Some(owner.name.clone()),
        uid: uid.map(str::to_owned).or_else(|| Some(owner.uid.clone())),
        ..ObjectReference::default()
    })
}

#[allow(clippy::too_many_arguments, reason = "an Event has this many parts")]
fn event(
    name: String,
    reason: &str,
    event_type: EventType,
    note: String,
    regarding: ObjectReference,
    related: Option<ObjectReference>,
    instance: &str,
    now: Timestamp,
) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: regarding.namespace.clone().or_else(|| Some(NAMESPACE.to_owned())),
            ..ObjectMeta::default()
        },
        action: Some("Diagnose".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(note),
        reason: Some(reason.to_owned()),
        regarding: Some(regarding),
        related,
        reporting_controller: Some(MANAGER.to_owned()),
        reporting_instance: Some(cut(instance, 128)),
        type_: Some(
            match event_type {
                EventType::Warning => "Warning",
                EventType::Normal => "Normal",
            }
            .to_owned(),
        ),
        ..Event::default()
    }
}

/// The fields that reports with a shared Event on their parent have in common.
pub fn shared(report: &BootstrapReport) -> Option<(&str, &str, Option<&str>, i64)> {
    let window = report.finished_at()?.as_second() / POOL_WINDOW.as_secs();
    let parent = report.spec.parent_ref.as_ref()?;
    Some((&parent.name, report.cause()?, report.spec.image_version.as_deref(), window))
}
