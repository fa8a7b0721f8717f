//! The conditions that a subject should have, as a pure function. If another writer drops a condition, the
//! same condition is written again, with the same transition time.

use bringup_contract::bounds;
use bringup_contract::exit_code::{Catalogue, Lookup};
use bringup_contract::{Cause, ImageVersion, Os, Retryable};
use bringup_diagnosis::diagnosis::Platform;
use bringup_diagnosis::{Confidence, Diagnosis};
use bringup_objects::cluster_api::{AnyCondition, NODE_BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL};
use bringup_objects::condition::{
    BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, Condition, OURS, Status, condition, find, reason, settle,
};
use bringup_objects::report::{BootstrapReport, Phase};
use jiff::Timestamp;

use crate::observation::{Cse, Observation};
use crate::profile::Script;
use crate::subject::{Place, Subject};

/// After this many earlier failures with a cause that may depend on the machine, the cause is believed to be
/// permanent.
const ATTEMPTS: usize = 2;
/// The message for a node that has joined.
const JOINED: &str = "The node has joined the cluster.";
/// The message until the result is known.
const WAITING: &str = "The node has not joined yet.";

/// The conditions that the subject should have now.
pub fn desired(
    subject: &Subject,
    observation: Option<&Observation>,
    report: Option<&BootstrapReport>,
    is_up: bool,
    now: Timestamp,
) -> Vec<Condition> {
    let wanted = match report {
        Some(report) if !is_up || report.phase() == Phase::Superseded => of_report(report),
        _ => {
            let warning = observation.and_then(|seen| seen.warning.as_deref());
            let verdict =
                if is_up { up(subject, warning, now) } else { underway(subject, observation) };
            let useful = not_asked(&verdict);
            cse(subject, observation, now).into_iter().chain([verdict, useful]).collect()
        }
    };
    let wanted = wanted.into_iter().filter(|wanted| subject.profile.bears(&wanted.type_));
    let settled = wanted.map(|wanted| {
        let present = find(&subject.conditions, &wanted.type_);
        // Conditions in a report already have their transition times.
        let mut settled = if report.is_some() { wanted } else { settle(wanted, present) };
        settled.observed_generation = subject.generation.filter(|_| !subject.shape.has_severity);
        settled
    });
    settled.collect()
}

/// The condition to write on the provider's object, if it differs from the present one. Only a verdict has
/// the severity of an error, because the provider computes a condition of its own from all others.
pub fn mirrored(subject: &Subject, wanted: &[Condition]) -> Option<AnyCondition> {
    let mirror = subject.mirror.as_ref()?;
    let verdict = find(wanted, BOOTSTRAP_SUCCEEDED)?;
    let wanted = AnyCondition {
        kind: NODE_BOOTSTRAP_SUCCEEDED.to_owned(),
        // The generation is the subject's, not this object's.
        observed_generation: None,
        ..mirror.shape.shaped(verdict)
    };
    let says_so = mirror.condition.as_ref().is_some_and(|present| {
        let same_severity = present.severity.is_none() || present.severity == wanted.severity;
        (&present.status, &present.reason, &present.message)
            == (&wanted.status, &wanted.reason, &wanted.message)
            && same_severity
    });
    (!says_so).then_some(wanted)
}

/// Whether the subject already has exactly these conditions.
pub fn are_borne(subject: &Subject, wanted: &[Condition]) -> bool {
    wanted.iter().all(|wanted| find(&subject.conditions, &wanted.type_) == Some(wanted))
}

fn of_report(report: &BootstrapReport) -> Vec<Condition> {
    let conditions = report.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let ours =
        |held: &&Condition| OURS.contains(&held.type_.as_str()) || held.type_ == REPLACEMENT_USEFUL;
    conditions.iter().filter(ours).map(storable).collect()
}

/// The condition as the API server stores it: whole seconds, and no characters that the API server refuses in
/// a patch. A condition that changed on the way would be written again and again.
fn storable(held: &Condition) -> Condition {
    let since = bounds::time(held.last_transition_time.0);
    Condition {
        status: held.status.clone(),
        ..condition(&held.type_, Status::Unknown, &held.reason, &held.message, since)
    }
}

/// Whether a replacement would help, while no failure is known.
pub(super) fn not_asked(verdict: &Condition) -> Condition {
    let (status, message) = if verdict.status == Status::True.word() {
        (Status::False, JOINED)
    } else {
        (Status::Unknown, WAITING)
    };
    let since = verdict.last_transition_time.0;
    condition(REPLACEMENT_USEFUL, status, &verdict.reason, message, since)
}

/// Whether a replacement would help after a failure: if the cause may be specific to the machine, and has not
/// occurred repeatedly.
pub fn replacement(
    diagnosis: &Diagnosis,
    observation: Option<&Observation>,
    earlier: usize,
    now: Timestamp,
) -> Condition {
    let blame = &diagnosis.cause;
    let is_unanswered = observation.is_some_and(|seen| seen.denied.is_some());
    let (status, why) = match blame.retryable {
        // An outage of Azure must not replace machines.
        _ if blame.reason == Cause::Unknown && is_unanswered => {
            (Status::Unknown, "Azure could not be read".to_owned())
        }
        Retryable::Yes => (Status::True, "a replacement may succeed".to_owned()),
        Retryable::Maybe if earlier < ATTEMPTS => (
            Status::True,
            format!(
                "a replacement may succeed; earlier Machines that failed with this cause: {earlier}"
            ),
        ),
        Retryable::Maybe => {
            (Status::False, format!("earlier Machines that failed with this cause: {earlier}"))
        }
        Retryable::No => (
            Status::False,
            format!("a replacement would fail with the same cause; owner: {}", blame.owner),
        ),
    };
    let message = format!("{}: {why}.", blame.reason);
    condition(REPLACEMENT_USEFUL, status, blame.reason.reason(), &message, now)
}

/// The condition of a subject whose Node exists.
pub fn up(subject: &Subject, warning: Option<&str>, now: Timestamp) -> Condition {
    let since = subject.registered.unwrap_or(now);
    let present = find(&subject.conditions, BOOTSTRAP_SUCCEEDED);
    let present = present.filter(|it| it.status == Status::True.word());
    let message = match (warning, present) {
        (Some(warning), _) => format!("{JOINED} But {warning}."),
        // An earlier warning stays, because the bootstrap is not examined again.
        (None, Some(present)) if subject.profile.script == Script::Waiter => {
            present.message.clone()
        }
        (None, _) => JOINED.to_owned(),
    };
    condition(BOOTSTRAP_SUCCEEDED, Status::True, reason::NODE_REGISTERED, &message, since)
}

fn underway(subject: &Subject, observation: Option<&Observation>) -> Condition {
    let since = subject.launched().unwrap_or(subject.created);
    let detail = match (&subject.place, observation.and_then(|seen| seen.denied.as_deref())) {
        (Place::Malformed(why), _) => format!("{WAITING} Azure cannot be read: {why}."),
        (_, Some(denied)) => format!("{WAITING} Azure cannot be read: {denied}."),
        _ => WAITING.to_owned(),
    };
    condition(BOOTSTRAP_SUCCEEDED, Status::Unknown, reason::DIAGNOSING, &detail, since)
}

/// The condition for the extension's result; if the extension is no longer shown, the last one.
fn cse(subject: &Subject, observation: Option<&Observation>, now: Timestamp) -> Option<Condition> {
    let present = find(&subject.conditions, CSE_PROVISIONED).filter(|held| {
        // The condition may be about an earlier VM of this subject.
        let is_failure = held.status == Status::False.word();
        let launched = subject.launched();
        !(is_failure && launched.is_some_and(|launched| held.last_transition_time.0 < launched))
    });
    let Some(seen) = observation else { return present.cloned() };
    match seen.cse {
        // Only a report sets the condition to failed.
        Cse::Absent | Cse::Failed { .. } => present.cloned(),
        Cse::Running { since } => {
            let message = "The bootstrap script is running.";
            let since = since.unwrap_or(seen.at);
            Some(condition(CSE_PROVISIONED, Status::Unknown, reason::CSE_RUNNING, message, since))
        }
        Cse::Succeeded { at } => Some(succeeded(at.unwrap_or(now))),
    }
}

fn succeeded(at: Timestamp) -> Condition {
    let message = "CSE exited with code 0.";
    condition(CSE_PROVISIONED, Status::True, reason::CSE_SUCCEEDED, message, at)
}

/// The conditions of a failure, as the report stores them.
pub fn of_failure(
    diagnosis: &Diagnosis,
    observation: Option<&Observation>,
    report: &str,
    earlier: usize,
    now: Timestamp,
) -> Vec<Condition> {
    let useful = replacement(diagnosis, observation, earlier, now);
    let verdict = condition(
        BOOTSTRAP_SUCCEEDED,
        Status::False,
        diagnosis.cause.reason.reason(),
        &verdict_message(diagnosis, report),
        now,
    );
    let cse = match observation.map(|seen| &seen.cse) {
        Some(Cse::Succeeded { at }) => Some(succeeded(at.unwrap_or(now))),
        Some(Cse::Running { since }) => {
            let message = "The bootstrap script is running.";
            let since = since.unwrap_or(now);
            Some(condition(CSE_PROVISIONED, Status::Unknown, reason::CSE_RUNNING, message, since))
        }
        Some(Cse::Failed { .. }) => Some(cse_failed(diagnosis, report, now)),
        // The exit code comes from another source: an error of ARM, or the activity log.
        Some(Cse::Absent) | None => diagnosis
            .exit_code
            .filter(|code| *code != 0)
            .map(|_| cse_failed(diagnosis, report, now)),
    };
    cse.into_iter().chain([verdict, useful]).collect()
}

fn cse_failed(diagnosis: &Diagnosis, report: &str, now: Timestamp) -> Condition {
    let message = cse_message(diagnosis, report);
    condition(CSE_PROVISIONED, Status::False, reason::CSE_FAILED, &message, now)
}

/// `CSE exited with code 211 (ERR_ORAS_PULL_NETWORK_TIMEOUT): …` with the script's own sentence, if there is
/// one, and the meaning of the code; then our cause if it differs, and a reference to the report.
pub fn cse_message(diagnosis: &Diagnosis, report: &str) -> String {
    let said = match diagnosis.exit_code {
        Some(code) => {
            let exited = exited(diagnosis, code);
            let own = diagnosis.last_words.as_ref();
            let meaning = meaning(diagnosis, code);
            match own {
                Some(words) => {
                    format!("{exited} {} {}", sentence(words.as_str()), capital(&meaning))
                }
                None => format!("{exited} {meaning}"),
            }
        }
        None => "CSE failed without an exit code: its script did not end by itself.".to_owned(),
    };
    let cause = diagnosis.cause.reason;
    let misleads = if diagnosis.overruled.is_empty() { "" } else { "; the code is misleading" };
    format!("{said} Cause: {cause}{misleads}, see BootstrapSucceeded. Report {report}.")
}

fn exited(diagnosis: &Diagnosis, code: i32) -> String {
    match name(diagnosis) {
        Some(name) => format!("CSE exited with code {code} ({name}):"),
        None => format!("CSE exited with code {code}:"),
    }
}

/// The name of the exit code, or all names that the code may have.
pub fn name(diagnosis: &Diagnosis) -> Option<String> {
    match (&diagnosis.constant, diagnosis.constant_candidates.as_slice()) {
        (Some(constant), _) => Some(constant.clone()),
        (None, []) => None,
        (None, candidates) => Some(candidates.join(" or ")),
    }
}

/// The meaning of the exit code in the catalogue.
fn meaning(diagnosis: &Diagnosis, code: i32) -> String {
    let os = match diagnosis.platform {
        Some(Platform::Windows) => Os::Windows,
        Some(Platform::Linux | Platform::Arm) | None => Os::Linux,
    };
    let (catalogue, image): (_, Option<ImageVersion>) =
        (Catalogue::of(os), diagnosis.image_version);
    let named = diagnosis.constant.as_deref().and_then(|name| catalogue.named(code, name, image));
    if let Some(meaning) = named {
        return sentence(&meaning.meaning);
    }
    match catalogue.lookup(code, image) {
        Lookup::Exact(meaning) => sentence(&meaning.meaning),
        Lookup::Ambiguous(_) => {
            "the code has several meanings, which depend on the image version.".to_owned()
        }
        Lookup::Unknown => "the code is not known.".to_owned(),
    }
}

/// The text with a capital letter at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    format!("{text}.")
}

/// The failure, the line that proves it, the remedy, and a reference to the report.
pub fn verdict_message(diagnosis: &Diagnosis, report: &str) -> String {
    let proof = diagnosis.proof.first().map(|proof| {
        let line = proof.text.truncated(300);
        format!(" Proof: \"{}\".", line.as_str().trim())
    });
    let confidence = match diagnosis.cause.confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    };
    let mut summary = diagnosis.summary.clone();
    if let Some(first) = summary.get(..1) {
        summary.replace_range(..1, &first.to_uppercase());
    }
    format!(
        "{}{} Confidence {confidence}. {} (owner: {}). Report {report}.",
        sentence(&summary),
        proof.unwrap_or_default(),
        sentence(&diagnosis.remedy),
        diagnosis.cause.owner,
    )
}
