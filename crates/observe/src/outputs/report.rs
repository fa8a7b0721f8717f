//! The report of a failure. It is written once as a whole, and conditions, Events and log lines are derived
//! from it.

use std::collections::BTreeSet;

use bringup_contract::{ImageVersion, Open};
use bringup_diagnosis::evidence::Content;
use bringup_diagnosis::redaction::Redacted;
use bringup_diagnosis::{Diagnosis, Evidence};
use bringup_objects::cluster_api::CLUSTER_LABEL;
use bringup_objects::condition::{Condition, Status, condition, cut, find, settle};
use bringup_objects::karpenter::POOL_LABEL;
use bringup_objects::names;
use bringup_objects::report::{
    ANNOUNCED, BootstrapReport, CAUSE_LABEL, CollectorState, Contributing, CseResult, EvidenceLine,
    IMAGE_LABEL, LONGEST_LINE, MOST_LINES, MOST_TEXT, Moment, ParentReference, Phase, Redactions,
    ReportSpec, ReportStatus, ReportVerdict, TARGET_UID_LABEL, TargetReference,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::ResourceExt as _;

use super::conditions;
use crate::collector::{self, collected};
use crate::judge::{Failure, mode};
use crate::observation::{Cse, Observation};
use crate::profile::{Kind, Script};
use crate::subject::{Place, Subject};

/// The most overruled causes in a report.
const MOST_CONTRIBUTING: usize = 4;

/// The report of a subject's failure in one attempt to create its VM.
pub fn of_failure(
    subject: &Subject,
    attempt: u32,
    observation: Option<&Observation>,
    failure: &Failure,
    namespace: &str,
    earlier: usize,
    now: Timestamp,
) -> BootstrapReport {
    // A subject's own namespace takes precedence: a report must be in the same namespace as its owner.
    let namespace = subject.namespace.as_deref().unwrap_or(namespace);
    let spec = spec(subject, attempt, observation, &failure.diagnosis);
    let name = name(subject, &spec);
    let place = format!("{namespace}/{name}");
    let mut report = BootstrapReport::new(&name, spec);
    report.metadata.namespace = Some(namespace.to_owned());
    let mut status = status(observation, failure, now);
    if let Some(held) = &subject.held {
        let why = format!("not written for now: {held}");
        status.collectors.push(collected(collector::CONDITIONS, CollectorState::Disabled, &why));
    }
    status.conditions =
        conditions::of_failure(&failure.diagnosis, observation, &place, earlier, now);
    status.conditions.retain(|held| subject.profile.bears(&held.type_));
    report.status = Some(status);
    label(&mut report, subject);
    report
}

/// The name of a VM's report: the same, whichever replica creates it.
fn name(subject: &Subject, spec: &ReportSpec) -> String {
    let vm = spec.vm_id.as_deref().unwrap_or_default();
    names::stable(&subject.name, '-', &[&subject.uid, vm, &spec.attempt.to_string()])
}

/// The report with a better verdict. Name and namespace stay.
#[must_use]
pub fn improved(
    old: &BootstrapReport,
    observation: &Observation,
    failure: &Failure,
    earlier: usize,
    now: Timestamp,
) -> BootstrapReport {
    let mut improved = old.clone();
    let place = format!("{}/{}", old.namespace().unwrap_or_default(), old.name_any());
    let held = old.status.clone().unwrap_or_default();
    let mut status = status(Some(observation), failure, now);
    // Earlier collectors stay, except those that were run again.
    let asked: Vec<String> = status.collectors.iter().map(|asked| asked.name.clone()).collect();
    let before = held.collectors.into_iter().filter(|known| !asked.contains(&known.name));
    status.collectors = before.chain(status.collectors).collect();
    // The conditions that the report already had, and the script's condition, which may be known only now.
    let kind = Kind::named(&old.spec.target_ref.kind);
    let mut new =
        conditions::of_failure(&failure.diagnosis, Some(observation), &place, earlier, now);
    new.retain(|held| kind.is_none_or(|kind| kind.profile().bears(&held.type_)));
    status.conditions = new
        .into_iter()
        .map(|condition| {
            let present = find(&held.conditions, &condition.type_);
            settle(condition, present)
        })
        .collect();
    status.conditions.extend(held.conditions.into_iter().filter(|held| held.type_ == ANNOUNCED));
    if let Some(labels) = &mut improved.metadata.labels {
        let cause = failure.diagnosis.cause.reason.reason();
        labels.insert(CAUSE_LABEL.to_owned(), names::label(cause));
    }
    improved.status = Some(status);
    improved
}

/// The report of a node that joined after its verdict.
#[must_use]
pub fn superseded(old: &BootstrapReport, subject: &Subject, now: Timestamp) -> BootstrapReport {
    let mut closed = old.clone();
    let status = closed.status.get_or_insert_default();
    status.phase = Phase::Superseded.into();
    let cause = old.cause().unwrap_or("Unknown");
    let warning = format!("its bootstrap was said to have failed: {cause}");
    let warning = Some(warning).filter(|_| subject.profile.script == Script::Waiter);
    let up = conditions::up(subject, warning.as_deref(), now);
    // A machine that joined needs no replacement.
    let useful = conditions::not_asked(&up);
    for condition in &mut status.conditions {
        for new in [&up, &useful] {
            if condition.type_ == new.type_ {
                *condition = new.clone();
            }
        }
    }
    closed
}

/// The report with the record that its verdict was announced.
#[must_use]
pub fn announced(old: &BootstrapReport, now: Timestamp) -> BootstrapReport {
    let mut told = old.clone();
    let reason = old.announcement().unwrap_or("Unknown").to_owned();
    let mark = condition(ANNOUNCED, Status::True, &reason, "The Events exist.", now);
    let status = told.status.get_or_insert_default();
    status.conditions.retain(|condition| condition.type_ != ANNOUNCED);
    status.conditions.push(mark);
    told
}

/// The report whose lost evidence can no longer be found.
#[must_use]
pub fn given_up(old: &BootstrapReport, seen: &Observation) -> BootstrapReport {
    let mut closed = old.clone();
    let status = closed.status.get_or_insert_default();
    status.phase = Phase::Final.into();
    for asked in &seen.collectors {
        status.collectors.retain(|known| known.name != asked.name);
        status.collectors.push(asked.clone());
    }
    closed
}

/// Makes the subject's parent, which outlives the subject, the owner of the report.
pub fn own(report: &mut BootstrapReport, api_version: &str, kind: &str, name: &str, uid: &str) {
    report.metadata.owner_references = Some(vec![OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }]);
}

fn label(report: &mut BootstrapReport, subject: &Subject) {
    let mut labels = vec![(TARGET_UID_LABEL, subject.uid.clone())];
    labels.extend(report.cause().map(|cause| (CAUSE_LABEL, names::label(cause))));
    labels.extend(
        report.spec.image_version.as_deref().map(|image| (IMAGE_LABEL, names::label(image))),
    );
    let pool = subject.parent.as_ref().filter(|parent| parent.kind == "NodePool");
    labels.extend(pool.map(|pool| (POOL_LABEL, names::label(&pool.name))));
    let cluster = subject.labels.cluster.as_deref();
    labels.extend(cluster.map(|cluster| (CLUSTER_LABEL, names::label(cluster))));
    labels.extend(subject.profile.report_labels.iter().map(|label| (*label, String::new())));
    report.metadata.labels =
        Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
}

fn spec(
    subject: &Subject,
    attempt: u32,
    observation: Option<&Observation>,
    diagnosis: &Diagnosis,
) -> ReportSpec {
    let facts = observation.map(|seen| seen.facts.clone()).unwrap_or_default();
    let image = subject.image.clone().or(facts.image);
    let image_version = image
        .as_deref()
        .and_then(ImageVersion::find)
        .or(diagnosis.image_version)
        .map(|version| version.to_string());
    ReportSpec {
        target_ref: TargetReference {
            api_version: subject.shape.resource.api_version.clone(),
            kind: subject.kind().word().to_owned(),
            name: subject.name.clone(),
            uid: subject.uid.clone(),
        },
        parent_ref: subject
            .parent
            .as_ref()
            .map(|parent| ParentReference { kind: parent.kind.clone(), name: parent.name.clone() }),
        provider_id: match &subject.place {
            Place::Known(id) => Some(id.to_string()),
            Place::NotSaid | Place::Malformed(_) => None,
        },
        vm_id: facts.vm_id,
        attempt,
        node_name: subject.node_name.clone().or(facts.computer_name).or_else(|| subject.vm_name()),
        image,
        image_version,
        vm_size: subject.labels.size.clone().or(facts.size),
        zone: subject.labels.zone.clone().or(facts.zone),
        region: subject.labels.region.clone().or(facts.region),
        capacity_type: subject.labels.capacity.as_deref().map(Open::parse),
        provision_mode: Some(mode(subject, observation).into()),
        os: facts.os.or_else(|| subject.labels.os.clone()),
        created_at: Some(Time(subject.created)),
    }
}

fn status(observation: Option<&Observation>, failure: &Failure, now: Timestamp) -> ReportStatus {
    let diagnosis = &failure.diagnosis;
    let empty = Evidence::default();
    let evidence = observation.map_or(&empty, |seen| &seen.evidence);
    let lines = lines(diagnosis, evidence, observation.map_or(now, |seen| seen.at));
    let status = ReportStatus {
        phase: if failure.lost { Phase::Lost } else { Phase::Final }.into(),
        verdict: Some(verdict(diagnosis)),
        cse: cse(diagnosis, observation),
        // Without a proof, lines are still shown, for a person to read.
        root_evidence: diagnosis.proof.first().zip(lines.first()).map(|(proof, line)| {
            let (before, after) = (around(&proof.before), around(&proof.after));
            EvidenceLine { before, after, ..line.clone() }
        }),
        evidence: lines,
        contributing: contributing(diagnosis),
        timeline: timeline(diagnosis, observation, now),
        collectors: observation.map(|seen| seen.collectors.clone()).unwrap_or_default(),
        remediation: vec![diagnosis.remedy.clone()],
        redactions: redactions(evidence),
        conditions: Vec::<Condition>::new(),
        finished_at: Some(Time(now)),
    };
    within_limits(status)
}

/// Cuts the least important fields until the report is small enough.
fn within_limits(mut status: ReportStatus) -> ReportStatus {
    let size = |status: &ReportStatus| serde_json::to_vec(status).map_or(0, |text| text.len());
    while size(&status) > MOST_TEXT && status.evidence.len() > 1 {
        status.evidence.pop();
    }
    while size(&status) > MOST_TEXT && !status.timeline.is_empty() {
        status.timeline.pop();
    }
    for collector in &mut status.collectors {
        collector.detail = cut(&collector.detail, LONGEST_LINE);
    }
    status
}

fn verdict(diagnosis: &Diagnosis) -> ReportVerdict {
    let blame = &diagnosis.cause;
    let explanation = diagnosis.overruled.iter().map(|overruled| overruled.why.as_str()).next();
    ReportVerdict {
        cause: blame.reason.into(),
        family: blame.family.into(),
        owner: blame.owner.to_owned(),
        retryable: blame.retryable.into(),
        confidence: blame.confidence.into(),
        title: cut(&diagnosis.summary, LONGEST_LINE),
        explanation: explanation.map(|why| cut(why, LONGEST_LINE)),
        overrules_code: diagnosis.overruled.iter().any(|overruled| {
            Some(overruled.reason.as_str()) == diagnosis.constant.as_deref()
                || Some(overruled.reason.clone())
                    == diagnosis.exit_code.map(|code| code.to_string())
        }),
    }
}

fn cse(diagnosis: &Diagnosis, observation: Option<&Observation>) -> Option<CseResult> {
    let (started, ended) = match observation.map(|seen| &seen.cse) {
        Some(Cse::Running { since }) => (*since, None),
        Some(Cse::Succeeded { at } | Cse::Failed { at }) => (None, *at),
        Some(Cse::Absent) | None => (None, None),
    };
    let started = started.or_else(|| {
        diagnosis.timeline.iter().find(|step| step.what.contains("CSE")).map(|step| step.at)
    });
    let result = CseResult {
        exit_code: diagnosis.exit_code,
        constant: diagnosis.constant.clone(),
        constant_candidates: diagnosis.constant_candidates.clone(),
        code_source: diagnosis.code_source.map(Open::from),
        outer_status: diagnosis.outer_exit_code,
        handler_version: observation.and_then(|seen| seen.handler_version.clone()),
        extension_state: observation.and_then(|seen| seen.extension_state.clone()),
        started_at: started.map(Time),
        ended_at: ended.map(Time),
    };
    (result != CseResult::default()).then_some(result)
}

fn lines(diagnosis: &Diagnosis, evidence: &Evidence, at: Timestamp) -> Vec<EvidenceLine> {
    let whole = |name: &str| {
        evidence
            .pieces
            .iter()
            .find(|piece| piece.name == name)
            .and_then(|piece| piece.text())
            .map(names::fingerprint)
    };
    let proof = diagnosis.proof.iter().map(|proof| EvidenceLine {
        source: proof.source.words().to_owned(),
        at: Some(Time(at)),
        line: cut(proof.text.as_str().trim(), LONGEST_LINE),
        sha256: whole(&proof.name),
        ..EvidenceLine::default()
    });
    let mut lines: Vec<EvidenceLine> = proof.collect();
    for piece in &evidence.pieces {
        let Some(text) = piece.text() else { continue };
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let Some(last) = last else { continue };
        let line = cut(last.trim(), LONGEST_LINE);
        if !lines.iter().any(|known| known.line == line) {
            let source = piece.source.words().to_owned();
            let sha256 = Some(names::fingerprint(text));
            let at = Some(Time(at));
            lines.push(EvidenceLine { source, at, line, sha256, ..EvidenceLine::default() });
        }
    }
    lines.truncate(MOST_LINES);
    lines
}

/// The lines before or after a line.
fn around(lines: &[Redacted]) -> Vec<String> {
    lines.iter().map(|line| cut(line.as_str().trim(), LONGEST_LINE)).collect()
}

fn contributing(diagnosis: &Diagnosis) -> Vec<Contributing> {
    let others = diagnosis.overruled.iter().map(|overruled| Contributing {
        cause: overruled.reason.clone(),
        line: cut(&overruled.why, LONGEST_LINE),
    });
    others.take(MOST_CONTRIBUTING).collect()
}

fn timeline(
    diagnosis: &Diagnosis,
    observation: Option<&Observation>,
    now: Timestamp,
) -> Vec<Moment> {
    let seen = observation.into_iter().flat_map(|seen| seen.timeline.iter().cloned());
    let told = diagnosis.timeline.iter().map(|step| (step.at, step.what.to_owned()));
    let mut moments: Vec<(Timestamp, String)> =
        seen.chain(told).chain([(now, "verdict".to_owned())]).collect();
    moments.sort();
    moments.dedup();
    moments.into_iter().take(20).map(|(at, what)| Moment { at: Time(at), what }).collect()
}

/// The number of redaction marks by kind.
fn redactions(evidence: &Evidence) -> Redactions {
    const MARK: &str = "[redacted ";
    let mut count = 0;
    let mut rules = BTreeSet::new();
    for piece in &evidence.pieces {
        let (Content::Seen(text) | Content::Missing(text)) = &piece.content else { continue };
        for part in text.as_str().split(MARK).skip(1) {
            count += 1;
            let rule: String = part.chars().take_while(|letter| *letter != ']').take(40).collect();
            rules.insert(rule.split(' ').next().unwrap_or_default().to_owned());
        }
    }
    Redactions { count, rules: rules.into_iter().collect() }
}
