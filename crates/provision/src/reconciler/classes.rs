//! The finalizer and the conditions of a class: whether machines can be created from the class, and when the
//! class may be deleted.

use bringup_flex::class::Class;
use bringup_flex::time::later;
use bringup_objects::MANAGER;
use bringup_objects::condition::{Condition, Status, condition, find, settle};
use bringup_objects::flex::{AzureFlexNodeClass, FINALIZER, FlexNodeClassStatus};
use bringup_runtime::recorder::{Announcement, Recorder};
use jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

use super::memory::ClassFailure;
use crate::inquiries::Found;

/// The condition that the fields of the class are valid.
const VALIDATED: &str = "ValidationSucceeded";
/// The condition that bringup has access to the Azure resources in the class.
const ACCESS: &str = "AzureAccess";
/// The condition that machines can be created from the class.
const READY: &str = "Ready";
const OURS: [&str; 3] = [VALIDATED, ACCESS, READY];
/// The reason if Azure refused a machine, and only the fields of the class or our permissions can be the
/// cause.
const REFUSED: &str = "MachineRefused";
/// How long after the refusal no other machine is created from the class.
const REFUSED_FOR: SignedDuration = SignedDuration::from_mins(5);
/// How often a class that waits for the deletion of its claims is reconciled, and how often the Event is
/// created.
const WAITING: SignedDuration = SignedDuration::from_mins(1);
const EVENT_EACH: SignedDuration = SignedDuration::from_mins(10);
/// The most claims that the Event names.
const NAMED: usize = 5;
/// The pauses between two checks of a class.
const UNANSWERED: SignedDuration = SignedDuration::from_secs(30);
const UNUSABLE: SignedDuration = SignedDuration::from_mins(1);
const USABLE: SignedDuration = SignedDuration::from_mins(10);

/// Writes finalizers and conditions of classes.
pub(super) struct Classes {
    api: Api<AzureFlexNodeClass>,
    recorder: Recorder,
}

/// The results of checks of a class.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Azure's answer about the class; none if Azure was not queried.
    pub(super) azure: Option<Found>,
    /// The problem with the class's version of Kubernetes in this cluster, if any.
    pub(super) version: Option<String>,
    /// The last failure of a machine that the class caused.
    pub(super) failure: Option<ClassFailure>,
}

/// Whether machines can be created from a class now, according to the conditions of its present generation.
pub fn is_ready(class: &AzureFlexNodeClass) -> bool {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    class.metadata.deletion_timestamp.is_none()
        && find(conditions, READY).is_some_and(|ready| {
            ready.status == "True" && ready.observed_generation == class.metadata.generation
        })
}

/// The status of the condition `Ready`, for metrics.
pub(super) fn readiness(class: &AzureFlexNodeClass) -> &'static str {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let ready = find(conditions, READY);
    let current = ready.filter(|ready| ready.observed_generation == class.metadata.generation);
    match current.map(|ready| ready.status.as_str()) {
        Some("True") => "True",
        Some("False") => "False",
        _ => "Unknown",
    }
}

/// Why no machine can be created from a class.
pub(crate) fn why_not_ready(class: &AzureFlexNodeClass) -> String {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let failing: Vec<String> = [VALIDATED, ACCESS]
        .iter()
        .filter_map(|kind| find(conditions, kind))
        .filter(|one| one.status != "True")
        .map(|one| format!("{} {}: {}", one.type_, one.reason, one.message))
        .collect();
    let name = class.name_any();
    if class.metadata.deletion_timestamp.is_some() {
        format!("AzureFlexNodeClass {name} is being deleted")
    } else if failing.is_empty() {
        format!("AzureFlexNodeClass {name} has not been checked yet")
    } else {
        format!("AzureFlexNodeClass {name}: {}", failing.join("; "))
    }
}

/// The field manager of another controller that writes the status of a class.
fn rival(class: &AzureFlexNodeClass) -> Option<&str> {
    let fields = class.metadata.managed_fields.iter().flatten();
    let mut writers = fields.filter(|field| field.subresource.as_deref() == Some("status"));
    writers.find_map(|field| field.manager.as_deref().filter(|manager| *manager != MANAGER))
}

impl Classes {
    pub(super) fn new(client: Client, recorder: Recorder) -> Self {
        Self { api: Api::all(client), recorder }
    }

    fn parameters() -> PostParams {
        PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: false }
    }

    /// Blocks the deletion of a class while claims or machines use it. Returns when the class is due again.
    pub(super) async fn finalize(
        &self,
        class: &AzureFlexNodeClass,
        users: &[String],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, kube::Error> {
        if !class.finalizers().iter().any(|held| held == FINALIZER) {
            return Ok(None);
        }
        if users.is_empty() {
            let mut class = class.clone();
            class.finalizers_mut().retain(|held| held != FINALIZER);
            // If another client has changed the class meanwhile, the write fails, and the new state is
            // reconciled.
            self.api.replace(&class.name_any(), &Self::parameters(), &class).await?;
            return Ok(None);
        }
        let names = users.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match users.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let announcement = Announcement {
            warning: false,
            reason: "WaitingOnNodeClaimTermination",
            action: "Terminate",
            note: &format!("Waiting on NodeClaim termination for {names}{more}"),
            mark: &(now.as_second() / EVENT_EACH.as_secs()).to_string(),
        };
        self.recorder.announce(class, &announcement, now).await;
        Ok(Some(later(now, WAITING)))
    }

    /// Adds the finalizer. Returns whether it was missing.
    pub(super) async fn add_finalizer(
        &self,
        class: &AzureFlexNodeClass,
    ) -> Result<bool, kube::Error> {
        if class.finalizers().iter().any(|held| held == FINALIZER) {
            return Ok(false);
        }
        let mut class = class.clone();
        class.finalizers_mut().push(FINALIZER.to_owned());
        // The watch delivers the change, and the class is reconciled again.
        self.api.replace(&class.name_any(), &Self::parameters(), &class).await?;
        Ok(true)
    }

    /// Writes the conditions of a class. Returns when the class is due again.
    pub(super) async fn write_status(
        &self,
        class: &AzureFlexNodeClass,
        findings: &Findings,
        now: Timestamp,
    ) -> Result<Timestamp, kube::Error> {
        let wanted = conditions(class, findings, now);
        let present = class.status.as_ref().map(|status| status.conditions.as_slice());
        if present != Some(&wanted) {
            let status = Some(FlexNodeClassStatus { conditions: wanted.clone() });
            let class = AzureFlexNodeClass { status, ..class.clone() };
            self.api.replace_status(&class.name_any(), &Self::parameters(), &class).await?;
        }
        let is_true = find(&wanted, READY).is_some_and(|ready| ready.status == "True");
        Ok(match &findings.azure {
            Some(Found::Unanswered(_)) => later(now, UNANSWERED),
            _ if is_true => later(now, USABLE),
            _ => later(now, UNUSABLE),
        })
    }
}

/// The conditions of a class; those of other writers stay. The transition time changes only with the status.
fn conditions(class: &AzureFlexNodeClass, findings: &Findings, now: Timestamp) -> Vec<Condition> {
    let present = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let one = |kind: &str, status: Status, reason: &str, message: &str| {
        let wanted = condition(kind, status, reason, message, now);
        Condition {
            observed_generation: class.metadata.generation,
            ..settle(wanted, find(present, kind))
        }
    };
    let validated = validation(class, findings, now, present);
    let validated = one(VALIDATED, validated.0, &validated.1, &validated.2);
    let access = access(class, findings, now, present);
    let access = one(ACCESS, access.0, &access.1, &access.2);
    let not_true: Vec<String> = [&validated, &access]
        .iter()
        .filter(|one| one.status != "True")
        .map(|one| format!("{}={}", one.type_, one.status))
        .collect();
    let ready = if let Some(manager) = rival(class) {
        let what = format!("{manager} writes the status of this class too: only one may own it");
        one(READY, Status::False, "OwnershipConflict", &what)
    } else if not_true.is_empty() {
        one(READY, Status::True, READY, "")
    } else if not_true.iter().any(|one| one.ends_with("=False")) {
        one(READY, Status::False, "UnhealthyDependents", &not_true.join(", "))
    } else {
        one(READY, Status::Unknown, "UnhealthyDependents", &not_true.join(", "))
    };
    let others = present.iter().filter(|one| !OURS.contains(&one.type_.as_str()));
    others.cloned().chain([validated, access, ready]).collect()
}

/// Status, reason and message of a condition.
type Content = (Status, String, String);

fn validation(
    class: &AzureFlexNodeClass,
    findings: &Findings,
    now: Timestamp,
    present: &[Condition],
) -> Content {
    let invalid = |what: String| (Status::False, "InvalidSpec".to_owned(), what);
    if let Err(wrong) = Class::of(&class.spec) {
        let errors: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        return invalid(errors.join("; "));
    }
    if let Some(version) = &findings.version {
        return invalid(format!("kubernetesVersion: {version}"));
    }
    if let Some(Found::Wrong(field)) = &findings.azure {
        return invalid(field.to_string());
    }
    if let Some(what) = recent_failure(class, findings, false, now, find(present, VALIDATED)) {
        return (Status::False, REFUSED.to_owned(), what);
    }
    (Status::True, VALIDATED.to_owned(), String::new())
}

fn access(
    class: &AzureFlexNodeClass,
    findings: &Findings,
    now: Timestamp,
    present: &[Condition],
) -> Content {
    let before = find(present, ACCESS);
    if let Some(what) = recent_failure(class, findings, true, now, before) {
        return (Status::False, REFUSED.to_owned(), what);
    }
    match &findings.azure {
        Some(Found::Usable) => (Status::True, ACCESS.to_owned(), String::new()),
        Some(Found::Denied(trouble)) => {
            (Status::False, trouble.cause.reason().to_owned(), trouble.message.clone())
        }
        // The condition for this generation stays as written.
        Some(Found::Unanswered(_)) | None
            if before.is_some_and(|one| one.observed_generation == class.metadata.generation) =>
        {
            let (status, reason, message) =
                before.map_or(("Unknown", "", ""), |one| (&one.status, &one.reason, &one.message));
            let status = match status {
                "True" => Status::True,
                "False" => Status::False,
                _ => Status::Unknown,
            };
            (status, reason.to_owned(), message.to_owned())
        }
        Some(Found::Unanswered(why)) => {
            (Status::Unknown, "AwaitingReconciliation".to_owned(), why.clone())
        }
        Some(Found::Wrong(field)) => {
            (Status::Unknown, "AwaitingReconciliation".to_owned(), field.to_string())
        }
        None => (Status::Unknown, "AwaitingReconciliation".to_owned(), String::new()),
    }
}

/// A recent failure of a machine that the class at its present generation caused: from memory, or from the
/// condition that was written before a restart.
fn recent_failure(
    class: &AzureFlexNodeClass,
    findings: &Findings,
    is_access: bool,
    now: Timestamp,
    before: Option<&Condition>,
) -> Option<String> {
    let generation = class.metadata.generation;
    let fresh = findings.failure.as_ref().filter(|failure| {
        failure.is_access == is_access
            && failure.generation == generation
            && later(failure.at, REFUSED_FOR) > now
    });
    if let Some(fresh) = fresh {
        return Some(fresh.what.clone());
    }
    let written = before.filter(|before| {
        before.status == "False"
            && before.reason == REFUSED
            && before.observed_generation == generation
            && later(before.last_transition_time.0, REFUSED_FOR) > now
    });
    written.map(|written| written.message.clone())
}
