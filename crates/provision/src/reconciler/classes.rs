//! What is known of a class: whether it is as it must be, and when it may go.

use bringup_flex::class::Class;
use bringup_flex::time::later;
use bringup_objects::MANAGER;
use bringup_objects::condition::{Condition, Status, condition, find, settle};
use bringup_objects::flex::{AzureFlexNodeClass, FINALIZER, FlexNodeClassStatus};
use bringup_runtime::recorder::{Announcement, Recorder};
use jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

use crate::inquiries::Found;

/// Its fields are as they must be.
const VALIDATED: &str = "ValidationSucceeded";
/// Azure lets us use what it names.
const ACCESS: &str = "AzureAccess";
/// Nodes can be made from it.
const READY: &str = "Ready";
const OURS: [&str; 3] = [VALIDATED, ACCESS, READY];
/// The reason of a class from which a machine was refused: nothing but its fields can have been the
/// cause, or our rights.
const REFUSED: &str = "MachineRefused";
/// For so long no other machine is tried.
const REFUSED_FOR: SignedDuration = SignedDuration::from_mins(5);
/// How often a class that waits for its claims is looked at, and how often that is said.
const WAITING: SignedDuration = SignedDuration::from_mins(1);
const SAID_EACH: SignedDuration = SignedDuration::from_mins(10);
/// So many claims are named.
const NAMED: usize = 5;
/// How soon Azure is asked about a class again.
const UNANSWERED: SignedDuration = SignedDuration::from_secs(30);
const UNUSABLE: SignedDuration = SignedDuration::from_mins(1);
const USABLE: SignedDuration = SignedDuration::from_mins(10);

/// Settles classes.
pub(super) struct Classes {
    api: Api<AzureFlexNodeClass>,
    recorder: Recorder,
}

/// A machine of a class was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// By the class as it was then.
    pub(super) generation: Option<i64>,
    /// Because of our rights, and not of its fields.
    pub(super) is_access: bool,
    pub(super) what: String,
    pub(super) at: Timestamp,
}

/// What is known of a class beside itself.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What Azure says of it; none: it was not asked.
    pub(super) found: Option<Found>,
    /// What its version of Kubernetes is to this cluster, if that is wrong.
    pub(super) version: Option<String>,
    /// A machine was refused.
    pub(super) refusal: Option<Refusal>,
}

/// Whether nodes can be made from a class now: by what was found of the class as it is.
pub fn is_ready(class: &AzureFlexNodeClass) -> bool {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    class.metadata.deletion_timestamp.is_none()
        && find(conditions, READY).is_some_and(|ready| {
            ready.status == "True" && ready.observed_generation == class.metadata.generation
        })
}

/// Whether nodes can be made from a class, in one word.
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

/// Why nodes cannot be made from a class, in words.
pub(crate) fn why_not_ready(class: &AzureFlexNodeClass) -> String {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let told: Vec<String> = [VALIDATED, ACCESS]
        .iter()
        .filter_map(|kind| find(conditions, kind))
        .filter(|one| one.status != "True")
        .map(|one| format!("{} {}: {}", one.type_, one.reason, one.message))
        .collect();
    let name = class.name_any();
    if class.metadata.deletion_timestamp.is_some() {
        format!("AzureFlexNodeClass {name} is being deleted")
    } else if told.is_empty() {
        format!("AzureFlexNodeClass {name} has not been checked yet")
    } else {
        format!("AzureFlexNodeClass {name}: {}", told.join("; "))
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

    /// Keeps a class that is being deleted while something needs it; when to look again. `None`:
    /// it is not being deleted.
    pub(super) async fn part(
        &self,
        class: &AzureFlexNodeClass,
        needed: &[String],
        now: Timestamp,
    ) -> Result<Option<Option<Timestamp>>, kube::Error> {
        if class.metadata.deletion_timestamp.is_none() {
            return Ok(None);
        }
        if !class.finalizers().iter().any(|held| held == FINALIZER) {
            return Ok(Some(None));
        }
        if needed.is_empty() {
            let mut class = class.clone();
            class.finalizers_mut().retain(|held| held != FINALIZER);
            // If another client has written meanwhile, this fails, and the new state is decided
            // upon again.
            self.api.replace(&class.name_any(), &Self::parameters(), &class).await?;
            return Ok(Some(None));
        }
        let names = needed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match needed.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let saying = Announcement {
            warning: false,
            reason: "WaitingOnNodeClaimTermination",
            action: "Terminate",
            note: &format!("Waiting on NodeClaim termination for {names}{more}"),
            mark: &(now.as_second() / SAID_EACH.as_secs()).to_string(),
        };
        self.recorder.announce(class, &saying, now).await;
        Ok(Some(Some(later(now, WAITING))))
    }

    /// Holds a class that is not held yet. Whether it was not.
    pub(super) async fn hold(&self, class: &AzureFlexNodeClass) -> Result<bool, kube::Error> {
        if class.finalizers().iter().any(|held| held == FINALIZER) {
            return Ok(false);
        }
        let mut class = class.clone();
        class.finalizers_mut().push(FINALIZER.to_owned());
        // The change is noticed, and the rest is done then.
        self.api.replace(&class.name_any(), &Self::parameters(), &class).await?;
        Ok(true)
    }

    /// Says what is known of a class; when to look again.
    pub(super) async fn tell(
        &self,
        class: &AzureFlexNodeClass,
        known: &Known,
        now: Timestamp,
    ) -> Result<Timestamp, kube::Error> {
        let wanted = conditions(class, known, now);
        let present = class.status.as_ref().map(|status| status.conditions.as_slice());
        if present != Some(&wanted) {
            let status = Some(FlexNodeClassStatus { conditions: wanted.clone() });
            let class = AzureFlexNodeClass { status, ..class.clone() };
            self.api.replace_status(&class.name_any(), &Self::parameters(), &class).await?;
        }
        let is_true = find(&wanted, READY).is_some_and(|ready| ready.status == "True");
        Ok(match &known.found {
            Some(Found::Unanswered(_)) => later(now, UNANSWERED),
            _ if is_true => later(now, USABLE),
            _ => later(now, UNUSABLE),
        })
    }
}

/// The conditions of a class, with those of others kept. Times move with the status only.
fn conditions(class: &AzureFlexNodeClass, known: &Known, now: Timestamp) -> Vec<Condition> {
    let present = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let one = |kind: &str, status: Status, reason: &str, message: &str| {
        let wanted = condition(kind, status, reason, message, now);
        Condition {
            observed_generation: class.metadata.generation,
            ..settle(wanted, find(present, kind))
        }
    };
    let validated = validation(class, known, now, present);
    let validated = one(VALIDATED, validated.0, &validated.1, &validated.2);
    let access = access(class, known, now, present);
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
    } else if not_true.iter().any(|told| told.ends_with("=False")) {
        one(READY, Status::False, "UnhealthyDependents", &not_true.join(", "))
    } else {
        one(READY, Status::Unknown, "UnhealthyDependents", &not_true.join(", "))
    };
    let others = present.iter().filter(|one| !OURS.contains(&one.type_.as_str()));
    others.cloned().chain([validated, access, ready]).collect()
}

type Told = (Status, String, String);

fn validation(
    class: &AzureFlexNodeClass,
    known: &Known,
    now: Timestamp,
    present: &[Condition],
) -> Told {
    let invalid = |what: String| (Status::False, "InvalidSpec".to_owned(), what);
    if let Err(wrong) = Class::of(&class.spec) {
        let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        return invalid(told.join("; "));
    }
    if let Some(version) = &known.version {
        return invalid(format!("kubernetesVersion: {version}"));
    }
    if let Some(Found::Wrong(field)) = &known.found {
        return invalid(field.to_string());
    }
    if let Some(what) = refusal(class, known, false, now, find(present, VALIDATED)) {
        return (Status::False, REFUSED.to_owned(), what);
    }
    (Status::True, VALIDATED.to_owned(), String::new())
}

fn access(
    class: &AzureFlexNodeClass,
    known: &Known,
    now: Timestamp,
    present: &[Condition],
) -> Told {
    let before = find(present, ACCESS);
    if let Some(what) = refusal(class, known, true, now, before) {
        return (Status::False, REFUSED.to_owned(), what);
    }
    match &known.found {
        Some(Found::Usable) => (Status::True, ACCESS.to_owned(), String::new()),
        Some(Found::Denied(trouble)) => {
            (Status::False, trouble.cause.reason().to_owned(), trouble.message.clone())
        }
        // What was known of the class as it is still holds.
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

/// What a machine of the class as it is was refused for, lately: by memory, or by what was written
/// before a restart.
fn refusal(
    class: &AzureFlexNodeClass,
    known: &Known,
    is_access: bool,
    now: Timestamp,
    before: Option<&Condition>,
) -> Option<String> {
    let generation = class.metadata.generation;
    let fresh = known.refusal.as_ref().filter(|refusal| {
        refusal.is_access == is_access
            && refusal.generation == generation
            && later(refusal.at, REFUSED_FOR) > now
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
