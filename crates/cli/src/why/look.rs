//! Looks itself at what the controller has no verdict on yet: the same questions, the same judgement.

use std::sync::Arc;
use std::time::Duration;

use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_controller::claims::{self, NodeClassKind};
use bringup_controller::collect::Collect;
use bringup_controller::health::Health;
use bringup_controller::inquiry::inquire;
use bringup_controller::machines::{DEADLINE, Land, PROVIDED};
use bringup_controller::shape::CLUSTER;
use bringup_controller::subject::Subject;
use bringup_controller::witness::Witness;
use bringup_diagnosis::Verdict;
use bringup_objects::BootstrapReport;
use bringup_objects::cluster_api::{Machine, REPLACEMENT_USEFUL};
use bringup_objects::report::Moment;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::case::{Case, Look};
use super::living::{Living, Object};
use crate::azure::AzureArguments;
use crate::cluster::Cluster;
use crate::safe;

/// How long Azure may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Whoever asks Azure, and Kubernetes beside it.
fn collect(cluster: &Cluster, azure: &AzureArguments) -> anyhow::Result<Collect> {
    let clock = Arc::new(WallClock);
    let arm = azure.arm(Limits::default(), clock.clone())?;
    Ok(Collect::new(arm, cluster.client(), clock, Health::default(), Witness::default()))
}

/// What the controller makes of an object; nothing if its VM is not on Azure.
pub(crate) async fn subject(cluster: &Cluster, living: &Living) -> Option<Subject> {
    match &living.object {
        Object::Claim(claim) => {
            // Which classes are the controller's is not known here; who asks wants to know.
            let class = &claim.spec.node_class_ref;
            let (group, kind) = (class.group.clone(), class.kind.clone());
            claims::subject(claim, &[NodeClassKind { group, kind }])
        }
        Object::Machine(machine) => machine_subject(cluster, machine).await,
    }
}

/// What may not be seen of the provider is missing, and said to be by whoever judges.
async fn machine_subject(cluster: &Cluster, machine: &Machine) -> Option<Subject> {
    let namespace = machine.metadata.namespace.as_deref()?;
    let land = Land::new(DEADLINE);
    for found in cluster.azure_clusters(namespace).await.unwrap_or_default() {
        land.around_seen(found);
    }
    let named = &machine.spec.cluster_name;
    for found in cluster.clusters_called(namespace, named).await.unwrap_or_default() {
        land.around_seen(found);
    }
    land.told(CLUSTER);
    let reference = &machine.spec.infrastructure_ref;
    if let Some(kind) = PROVIDED.into_iter().find(|kind| *kind == reference.kind) {
        if kind == PROVIDED[1] {
            for found in cluster.pools(namespace).await.unwrap_or_default() {
                land.around_seen(found);
            }
        }
        let provided = cluster.provided_called(kind, Some(namespace), &reference.name).await;
        for object in provided.unwrap_or_default() {
            land.provided_seen(kind, object);
        }
    }
    land.machine_seen(machine.clone())
}

/// Looks, if there is anything to look at. Why it cannot be is noted.
pub(super) async fn look(
    cluster: &Cluster,
    case: &mut Case,
    reports: &[BootstrapReport],
    azure: &AzureArguments,
) {
    let Some(living) = &case.living else { return };
    let Some(subject) = subject(cluster, living).await.filter(Subject::is_pending) else { return };
    if let Some(held) = &subject.held {
        case.notes
            .push(safe::line(&format!("the controller writes no conditions for now: {held}")));
    }
    let collect = match collect(cluster, azure) {
        Ok(collect) => collect,
        Err(error) => {
            let why = safe::line(&format!("{error:#}"));
            case.notes.push(format!("Azure was not asked: {why}"));
            return;
        }
    };
    let inquiry = inquire(&collect, &subject, case.node.as_ref(), reports, Timestamp::now());
    let Ok(inquiry) = tokio::time::timeout(LIMIT, inquiry).await else {
        case.notes.push("Azure was asked, and did not answer in time".to_owned());
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
        // The others name the report, which nobody keeps.
        if let Some(status) = &mut report.status {
            status.conditions.retain(|held| held.type_ == REPLACEMENT_USEFUL);
        }
        case.verdict = Verdict::Failed;
        case.report = Some(report);
        let note = "the controller has not said so yet: this was found just now, and is not kept";
        case.notes.push(note.to_owned());
    }
}
