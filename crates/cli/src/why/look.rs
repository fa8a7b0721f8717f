//! Diagnoses objects without a verdict of the controller: with the same requests and the same diagnosis.

use std::sync::Arc;
use std::time::Duration;

use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_diagnosis::{Signatures, Verdict};
use bringup_objects::BootstrapReport;
use bringup_objects::cluster_api::{Machine, REPLACEMENT_USEFUL};
use bringup_objects::report::Moment;
use bringup_observe::claims::{self, NodeClassKind};
use bringup_observe::collect::Collect;
use bringup_observe::inquiry::inquire;
use bringup_observe::machines::{INFRA_KINDS, MachineIndex};
use bringup_observe::shape::CLUSTER;
use bringup_observe::subject::{Launch, Subject};
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::Health;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::case::{Case, Look};
use super::living::{Living, Object};
use crate::azure::AzureArguments;
use crate::cluster::Cluster;
use crate::safe;

/// The longest wait for Azure.
const LIMIT: Duration = Duration::from_secs(30);

/// The options for requests, as in the configuration of the controller.
pub(super) struct Asking<'a> {
    pub(super) azure: &'a AzureArguments,
    pub(super) signatures: Signatures,
    pub(super) machine_deadline: SignedDuration,
}

/// The collector for evidence from Azure and Kubernetes.
fn collect(cluster: &Cluster, asking: Asking<'_>) -> anyhow::Result<Collect> {
    let clock = Arc::new(WallClock);
    let arm = asking.azure.arm(Limits::default(), clock.clone())?;
    let collect =
        Collect::new(arm, cluster.client(), clock, Health::default(), EffectHook::default());
    Ok(collect.with_signatures(asking.signatures))
}

/// The subject of an object, as in the controller; `None` if its VM is not on Azure.
pub(crate) async fn subject(
    cluster: &Cluster,
    living: &Living,
    machine_deadline: SignedDuration,
) -> Option<Subject> {
    match &living.object {
        Object::Claim(claim) => {
            // The command does not know which classes the controller handles, so it accepts the
            // claim's own.
            let class = &claim.spec.node_class_ref;
            let (group, kind) = (class.group.clone(), class.kind.clone());
            claims::subject(claim, &[NodeClassKind { group, kind }])
        }
        Object::Machine(machine) => machine_subject(cluster, machine, machine_deadline).await,
    }
}

/// The subject of a Machine. Provider objects that the user may not read are missing, and the diagnosis
/// reports them as missing.
async fn machine_subject(
    cluster: &Cluster,
    machine: &Machine,
    deadline: SignedDuration,
) -> Option<Subject> {
    let namespace = machine.metadata.namespace.as_deref()?;
    let machines = MachineIndex::new(deadline);
    for found in cluster.azure_clusters(namespace).await.unwrap_or_default() {
        machines.shared_seen(found);
    }
    let named = &machine.spec.cluster_name;
    for found in cluster.clusters_called(namespace, named).await.unwrap_or_default() {
        machines.shared_seen(found);
    }
    machines.listed(CLUSTER);
    let reference = &machine.spec.infrastructure_ref;
    if let Some(kind) = INFRA_KINDS.into_iter().find(|kind| *kind == reference.kind) {
        if kind == INFRA_KINDS[1] {
            for found in cluster.pools(namespace).await.unwrap_or_default() {
                machines.shared_seen(found);
            }
        }
        let provided = cluster.provided_called(kind, Some(namespace), &reference.name).await;
        for object in provided.unwrap_or_default() {
            machines.infra_machine_seen(kind, object);
        }
    }
    machines.machine_seen(machine.clone())
}

/// Collects evidence and diagnoses it. If that is impossible, a note gives the reason.
pub(super) async fn look(
    cluster: &Cluster,
    case: &mut Case,
    reports: &[BootstrapReport],
    asking: Asking<'_>,
) {
    let Some(living) = &case.living else { return };
    let subject = subject(cluster, living, asking.machine_deadline).await;
    case.is_early = subject.as_ref().is_some_and(|subject| subject.launch == Launch::NotYet);
    let Some(subject) = subject.filter(Subject::is_pending) else { return };
    if let Some(held) = &subject.held {
        case.notes.push(safe::line(&format!("the controller writes no conditions: {held}")));
    }
    let collect = match collect(cluster, asking) {
        Ok(collect) => collect,
        Err(error) => {
            let why = safe::line(&format!("{error:#}"));
            case.notes.push(format!("no evidence was read from Azure: {why}"));
            return;
        }
    };
    let inquiry = inquire(&collect, &subject, case.node.as_ref(), reports, Timestamp::now());
    let Ok(inquiry) = tokio::time::timeout(LIMIT, inquiry).await else {
        let limit = LIMIT.as_secs();
        case.notes.push(format!("no evidence was read from Azure: no response in {limit} seconds"));
        return;
    };
    let moments = inquiry.seen.timeline.into_iter();
    let mut timeline: Vec<(Timestamp, String)> = moments.collect();
    timeline.sort();
    case.look = Some(Look {
        asked: inquiry.seen.collectors,
        timeline: timeline.into_iter().map(|(at, what)| Moment { at: Time(at), what }).collect(),
    });
    if let Some(mut report) = inquiry.report {
        // The other conditions refer to the report, which is not stored.
        if let Some(status) = &mut report.status {
            status.conditions.retain(|held| held.type_ == REPLACEMENT_USEFUL);
        }
        case.verdict = Verdict::Failed;
        case.report = Some(report);
        let note = "the controller has not reported this yet; this command found it now and does not store it";
        case.notes.push(note.to_owned());
    }
}
