//! Reports whose subject may no longer exist. Searches the activity log for lost evidence, and deletes
//! reports beyond the limits on age and number.

use std::collections::HashMap;
use std::sync::Arc;

use bringup_azure::model::ActivityLog;
use bringup_azure::{ArmError, InstanceId, ProviderId, ResourceId};
use bringup_contract::Cause;
use bringup_contract::bounds::TimeMath as _;
use bringup_diagnosis::Verdict;
use bringup_objects::report::{BootstrapReport, CollectorState, Phase};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use super::{Next, Observer};
use crate::cluster::{Cluster, ReportKey};
use crate::collector::{self, collected, refusal};
use crate::judge::Failure;
use crate::observation::Observation;
use crate::outputs::report;
use crate::profile::{Kind, Scope};
use crate::watch::Listed;

/// When to query the activity log first: entries do not appear earlier.
const FIRST: SignedDuration = SignedDuration::from_mins(3);
/// The pause between two queries for one resource group, however many of its VMs are lost.
const PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// When to stop searching the activity log.
const LAST: SignedDuration = SignedDuration::from_mins(25);
/// The pause between two sweeps of old reports.
const SWEEP: SignedDuration = SignedDuration::from_mins(10);

/// The time and the result of a query of one resource group's activity log.
type Answered = (Timestamp, Arc<Result<ActivityLog, ArmError>>);

/// The last result for each resource group, shared by all of its lost VMs.
#[derive(Debug, Default)]
pub(crate) struct ActivityMemo(Mutex<HashMap<(String, String), Answered>>);

impl Observer {
    /// Reconciles one report: if its evidence was lost, searches the activity log.
    pub(crate) async fn report(&self, key: &ReportKey) -> kube::Result<Next> {
        let Some(report) = self.cluster.report(key) else { return Ok(Next::Never) };
        let target = &report.spec.target_ref;
        // As long as the subject is observed, only the subject's own reconciliation announces the report.
        let is_orphan = self.cluster.subject(&target.uid).is_none();
        if !report.is_announced() && is_orphan {
            return self.announce(&report).await;
        }
        if report.phase() != Phase::Lost {
            return Ok(Next::Never);
        }
        let now = self.clock.now();
        let since = report.finished_at().unwrap_or(now);
        if now < since.plus(FIRST) {
            return Ok(Next::At(since.plus(FIRST)));
        }
        let seen = self.seen_in_activity_log(&report, since).await;
        let seen = self.collect.excerpted(seen).await;
        let diagnosis = seen.evidence.diagnosis().clone();
        let told = diagnosis.verdict == Verdict::Failed
            && (diagnosis.cause.reason != Cause::Unknown || diagnosis.exit_code.is_some());
        if told {
            let failure = Failure { diagnosis, lost: false };
            return self.revise(report::improved(&report, &seen, &failure, 0, now)).await;
        }
        if now >= since.plus(LAST) {
            return self.revise(report::given_up(&report, &seen)).await;
        }
        Ok(Next::At(now.plus(PAUSE)))
    }

    async fn seen_in_activity_log(
        &self,
        report: &BootstrapReport,
        since: Timestamp,
    ) -> Observation {
        let mut seen = Observation { at: self.clock.now(), ..Observation::default() };
        let evidence = seen.evidence.change();
        evidence.signatures = self.settings.signatures.clone();
        evidence.image_version =
            report.spec.image_version.as_deref().and_then(|version| version.parse().ok());
        let id = report.spec.provider_id.as_deref().and_then(|id| id.parse::<ProviderId>().ok());
        let Some(id) = id else { return seen };
        if let Some(why) = self.collect.read_scope().refuses_lost(&id) {
            seen.collected(collected(collector::ACTIVITY_LOG, CollectorState::Denied, &why));
            return seen;
        }
        let from = report.spec.created_at.as_ref().map_or(since, |at| at.0.min(since));
        let answer = self.activity_of(&id.instance, from).await;
        match answer.as_ref() {
            Ok(log) => {
                let vm = ResourceId::from(&id.instance).to_string().to_ascii_lowercase();
                let ours: Vec<_> = log
                    .entries
                    .iter()
                    .filter(|entry| entry.resource_id.as_ref().is_some_and(|id| is_within(id, &vm)))
                    .collect();
                seen.with_activity(&ours)
            }
            Err(error) => {
                let (state, detail) = refusal(error);
                seen.collected(collected(collector::ACTIVITY_LOG, state, &detail));
                seen
            }
        }
    }

    async fn activity_of(
        &self,
        id: &InstanceId,
        from: Timestamp,
    ) -> Arc<Result<ActivityLog, ArmError>> {
        let resource = ResourceId::from(id);
        let group = (
            resource.subscription().to_string().to_ascii_lowercase(),
            resource.resource_group().to_string().to_ascii_lowercase(),
        );
        // Locked during the query: a second caller gets the same result.
        let mut memo = self.activity.0.lock().await;
        if let Some((at, answer)) = memo.get(&group)
            && self.clock.now() < at.plus(PAUSE)
        {
            return answer.clone();
        }
        let earliest = self
            .cluster
            .reports()
            .iter()
            .filter(|report| report.phase() == Phase::Lost)
            .filter_map(|report| report.spec.created_at.as_ref().map(|at| at.0))
            .min();
        let from = earliest.map_or(from, |earliest| earliest.min(from));
        let answer = Arc::new(self.collect.activity(id, from).await);
        memo.insert(group, (self.clock.now(), answer.clone()));
        answer
    }

    /// Deletes reports that are too old or, for one parent, too many. Reports of existing subjects stay.
    pub(crate) async fn sweep(&self) -> kube::Result<Next> {
        let now = self.clock.now();
        let mut reports = self.cluster.reports();
        let only = self.settings.only_namespace.as_deref();
        let listed = self.watches.ready.borrow().clone();
        reports.retain(|report| !is_kept(report, &self.cluster, &listed, only));
        let due =
            overdue(reports, now.minus(self.settings.report_ttl), self.settings.reports_per_parent);
        for key in due {
            if let Some(report) = self.cluster.report(&key) {
                self.writer.delete_report(&report).await?;
            }
            self.cluster.report_gone(&key);
        }
        Ok(Next::At(now.plus(SWEEP)))
    }
}

/// Whether a report must stay, regardless of its age and of the number of reports: its subject still exists,
/// and would be judged anew without the report; or its subject may exist, because the first list is not
/// complete; or its subject is a Machine that another controller handles.
fn is_kept(
    report: &BootstrapReport,
    cluster: &Cluster,
    listed: &Listed,
    only: Option<&str>,
) -> bool {
    let target = &report.spec.target_ref;
    let is_namespaced =
        Kind::named(&target.kind).is_some_and(|kind| kind.profile().scope == Scope::Namespace);
    let is_others = is_namespaced
        && only.is_some_and(|only| report.metadata.namespace.as_deref() != Some(only));
    let is_there = match cluster.subject(&target.uid) {
        Some(entry) => !entry.departed,
        None => !listed.has_all_of(&target.kind),
    };
    is_others || is_there
}

/// Whether a resource is this VM or part of it.
fn is_within(id: &ResourceId, vm: &str) -> bool {
    let id = id.to_string().to_ascii_lowercase();
    id.strip_prefix(vm).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The reports to delete: those finished before `oldest`, and of each parent all
/// but the newest `most`.
fn overdue(reports: Vec<Arc<BootstrapReport>>, oldest: Timestamp, most: usize) -> Vec<ReportKey> {
    let mut by_parent: HashMap<_, Vec<Arc<BootstrapReport>>> = HashMap::new();
    for report in reports {
        by_parent
            .entry((report.metadata.namespace.clone(), report.spec.parent_ref.clone()))
            .or_default()
            .push(report);
    }
    let mut keys = Vec::new();
    for mut reports in by_parent.into_values() {
        // Reports that still wait for something sort before finished ones.
        reports.sort_by_key(|report| {
            let open = report.phase() == Phase::Lost || !report.is_announced();
            std::cmp::Reverse((open, report.finished_at()))
        });
        for (place, report) in reports.iter().enumerate() {
            let old = report.finished_at().is_some_and(|at| at < oldest);
            if old || place >= most {
                keys.push(ReportKey::of(report));
            }
        }
    }
    keys.sort();
    keys
}

#[cfg(test)]
mod tests {
    use bringup_objects::NodeClaim;
    use bringup_objects::report::{ReportSpec, TargetReference};
    use serde_json::json;

    use super::*;
    use crate::claims::{self, default_classes};

    fn listed(kinds: &[Kind]) -> Listed {
        Listed { nodes: true, reports: true, subjects: kinds.iter().copied().collect() }
    }

    fn all() -> Listed {
        listed(&[Kind::NodeClaim, Kind::Machine])
    }

    fn report(kind: &str, uid: &str) -> Arc<BootstrapReport> {
        let target_ref =
            TargetReference { kind: kind.to_owned(), uid: uid.to_owned(), ..Default::default() };
        let mut report =
            BootstrapReport::new(uid, ReportSpec { target_ref, ..ReportSpec::default() });
        let status = report.status.get_or_insert_default();
        status.phase = Phase::Final.into();
        Arc::new(report)
    }

    /// A cluster with one existing claim whose VM Azure refused to create.
    fn cluster() -> Cluster {
        let claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": "a", "uid": "there" },
            "spec": { "nodeClassRef": { "group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "d" } },
        }))
        .unwrap();
        let cluster = Cluster::default();
        cluster.seen(claims::subject(&claim, &default_classes()).unwrap());
        cluster
    }

    #[test]
    fn the_report_of_a_claim_that_still_exists_stays_however_many_there_are() {
        let cluster = cluster();
        let mut reports = vec![report("NodeClaim", "there"), report("NodeClaim", "gone")];
        reports.retain(|report| !is_kept(report, &cluster, &all(), None));
        let due = overdue(reports, Timestamp::MIN, 0);
        assert_eq!(due.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["gone"]);
        cluster.gone("there");
        assert!(!is_kept(&report("NodeClaim", "there"), &cluster, &all(), None));
    }

    #[test]
    fn as_long_as_not_all_subjects_are_known_no_report_is_in_excess() {
        let cluster = cluster();
        let unlisted = listed(&[Kind::Machine]);
        assert!(is_kept(&report("NodeClaim", "not seen yet"), &cluster, &unlisted, None));
        assert!(!is_kept(&report("Machine", "gone"), &cluster, &unlisted, None));
        let unlisted = listed(&[Kind::NodeClaim]);
        assert!(is_kept(&report("Machine", "not seen yet"), &cluster, &unlisted, None));
        assert!(!is_kept(&report("NodeClaim", "gone"), &cluster, &unlisted, None));
    }

    #[test]
    fn of_machines_that_somebody_else_looks_after_every_report_stays() {
        let only = Some("ours");
        assert!(is_kept(&report("Machine", "gone"), &cluster(), &all(), only));
        assert!(!is_kept(&report("NodeClaim", "gone"), &cluster(), &all(), only));
    }
}
