//! Metrics of machines. Label values are fixed words of bringup only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bringup_contract::flex::FailureCause;
use bringup_contract::{Cause, Word as _};
use bringup_flex::claim::{BOOT_TIMEOUT, LAUNCH_TIMEOUT};
use bringup_objects::flex::machine::{FlexMachineStatus, Phase};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_runtime::metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;

use super::classes::readiness;
use super::index::{Index, Machine};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

impl CauseLabel {
    /// A cause by its name. Any other word counts as `Unknown`, so that label values stay few.
    fn of(name: &str) -> Self {
        let ours = [LAUNCH_TIMEOUT, BOOT_TIMEOUT].into_iter().find(|ours| *ours == name);
        let cause = ours.or_else(|| FailureCause::from_word(name).map(FailureCause::word));
        Self { cause: cause.unwrap_or(Cause::Unknown.reason()) }
    }
}

type Group = (String, String);

/// The values of metrics that are not counters.
#[derive(Default)]
struct Shown {
    index: Option<Arc<Mutex<Index>>>,
    /// The number of orphans in each group at the last sweep.
    orphans: BTreeMap<Group, usize>,
    /// Whether a sweep has run.
    is_swept: bool,
}

/// Metrics of machines. Clones share one set of metrics.
#[derive(Clone, Default)]
pub struct FlexMetrics {
    failures: Family<CauseLabel, Counter>,
    claims_deleted: Family<CauseLabel, Counter>,
    swept: Counter,
    panics: Counter,
    shown: Arc<Mutex<Shown>>,
}

impl fmt::Debug for FlexMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FlexMetrics").finish_non_exhaustive()
    }
}

/// Marks that this process reconciles machines, until it is dropped.
pub(super) struct Running(FlexMetrics);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.shown() = Shown::default();
    }
}

impl FlexMetrics {
    /// Registers the metrics of machines with those of the process.
    pub fn registered(process: &Metrics) -> Self {
        let metrics = Self { panics: process.panics().clone(), ..Self::default() };
        process.register(|registry| {
            registry.register(
                "flex_failures",
                "Attempts at a VM that failed, by cause",
                metrics.failures.clone(),
            );
            registry.register(
                "flex_claims_ended",
                "Claims deleted because their machine failed, by cause",
                metrics.claims_deleted.clone(),
            );
            registry.register(
                "flex_swept",
                "Orphaned resources in Azure that were removed",
                metrics.swept.clone(),
            );
            registry.register_collector(Box::new(metrics.clone()));
        });
        metrics
    }

    /// Counts objects that were set aside because handling them panicked.
    pub(super) fn panics(&self) -> &Counter {
        &self.panics
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exports the machines and classes of an index until the returned value is dropped.
    pub(super) fn run(&self, index: Arc<Mutex<Index>>) -> Running {
        self.shown().index = Some(index);
        Running(self.clone())
    }

    /// Counts the failed attempt if a machine's new status contains one.
    pub(super) fn status_stored(&self, before: &AzureFlexMachine, after: &FlexMachineStatus) {
        let was_cleaning = before.status.as_ref().is_some_and(|it| it.phase.is_cleaning());
        // A machine that is being deleted is cleaned up too, but has not failed.
        let is_deleted = before.metadata.deletion_timestamp.is_some();
        let failure = after.failure.as_ref().filter(|_| after.phase.is_cleaning());
        if let Some(failure) = failure.filter(|_| !was_cleaning && !is_deleted) {
            self.failures.get_or_create(&CauseLabel::of(failure.cause.as_str())).inc();
        }
    }

    /// Counts a claim that was deleted because its machine failed.
    pub(super) fn claim_deleted(&self, cause: &str) {
        self.claims_deleted.get_or_create(&CauseLabel::of(cause)).inc();
    }

    /// Records a sweep of a group: the orphans that were found, and how many were deleted.
    pub(super) fn swept(&self, group: Group, found: usize, deleted: u64) {
        self.swept.inc_by(deleted);
        self.shown().orphans.insert(group, found);
    }

    /// Records that every group was swept. The findings of other groups are dropped.
    pub(super) fn swept_all(&self, groups: impl Fn(&Group) -> bool) {
        let mut shown = self.shown();
        shown.is_swept = true;
        shown.orphans.retain(|group, _| groups(group));
    }
}

const PHASES: [Phase; 10] = [
    Phase::Planned,
    Phase::NicPut,
    Phase::NicReady,
    Phase::VmPut,
    Phase::VmAccepted,
    Phase::Running,
    Phase::CleanVm,
    Phase::CleanNic,
    Phase::CleanDisk,
    Phase::Gone,
];

/// The values of the condition's status.
const READINESS: [&str; 3] = ["True", "False", "Unknown"];

impl Collector for FlexMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = MetricType::Gauge;
        let number = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let shown = self.shown();
        // Only the process that reconciles machines has an index: from others the series are absent, not
        // zero.
        let index = shown.index.as_ref();
        let index = index.map(|index| index.lock().unwrap_or_else(PoisonError::into_inner));
        let help = "Machines, by phase";
        let mut machines = encoder.encode_descriptor("flex_machines", help, None, gauge)?;
        for phase in index.iter().flat_map(|_| PHASES) {
            let is = |machine: &&Machine| machine.phase == phase;
            let count = index.iter().flat_map(|index| index.machines.values()).filter(is).count();
            let label = [("phase", format!("{phase:?}"))];
            number(count).encode(machines.encode_family(&label)?)?;
        }
        let help = "Classes, by whether nodes can be made from them";
        let mut classes = encoder.encode_descriptor("flex_classes", help, None, gauge)?;
        for word in index.iter().flat_map(|_| READINESS) {
            let is = |class: &&AzureFlexNodeClass| readiness(class) == word;
            let count = index.iter().flat_map(|index| index.classes.values()).filter(is).count();
            number(count).encode(classes.encode_family(&[("ready", word)])?)?;
        }
        let help = "Orphaned resources in Azure, found by the last sweep";
        let leaks = encoder.encode_descriptor("flex_leaks", help, None, gauge)?;
        if shown.is_swept {
            number(shown.orphans.values().sum()).encode(leaks)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bringup_contract::Open;
    use bringup_objects::flex::machine::Failure;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn group(name: &str) -> Group {
        ("subscription".to_owned(), name.to_owned())
    }

    fn machine(phase: Phase, cause: Option<&str>) -> AzureFlexMachine {
        let failure =
            cause.map(|cause| Failure { cause: Open::parse(cause), ..Failure::default() });
        let status = FlexMachineStatus { phase, failure, ..FlexMachineStatus::default() };
        AzureFlexMachine { status: Some(status), ..AzureFlexMachine::default() }
    }

    fn stored(metrics: &FlexMetrics, before: &AzureFlexMachine, after: &AzureFlexMachine) {
        metrics.status_stored(before, after.status.as_ref().unwrap());
    }

    #[test]
    fn an_attempt_that_failed_is_counted_once_and_a_deletion_is_none() {
        let metrics = Metrics::default();
        let flex = FlexMetrics::registered(&metrics);
        let cause = Some("QuotaExceeded");
        let requested = machine(Phase::VmPut, None);
        let (cleaning, gone) = (machine(Phase::CleanVm, cause), machine(Phase::Gone, cause));
        stored(&flex, &requested, &cleaning);
        stored(&flex, &cleaning, &gone);
        stored(&flex, &gone, &gone);
        // Another attempt, whose machine is deleted before the attempt ends.
        let again = machine(Phase::NicPut, cause);
        stored(&flex, &gone, &again);
        let mut deleted = again;
        deleted.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        stored(&flex, &deleted, &machine(Phase::CleanVm, cause));
        let text = metrics.text();
        assert!(text.contains("flex_failures_total{cause=\"QuotaExceeded\"} 1\n"), "{text}");
    }

    #[test]
    fn only_words_of_ours_become_labels() {
        let metrics = Metrics::default();
        let flex = FlexMetrics::registered(&metrics);
        for cause in ["QuotaExceeded", "QuotaExceeded", "made-up-1", "made-up-2"] {
            stored(&flex, &AzureFlexMachine::default(), &machine(Phase::CleanVm, Some(cause)));
        }
        for cause in [BOOT_TIMEOUT, LAUNCH_TIMEOUT, "BinaryMissing"] {
            flex.claim_deleted(cause);
        }
        let text = metrics.text();
        for line in [
            "bringup_flex_failures_total{cause=\"QuotaExceeded\"} 2",
            "bringup_flex_failures_total{cause=\"Unknown\"} 2",
            "bringup_flex_claims_ended_total{cause=\"BootTimeout\"} 1",
            "bringup_flex_claims_ended_total{cause=\"LaunchTimeout\"} 1",
            "bringup_flex_claims_ended_total{cause=\"BinaryMissing\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("made-up"), "{text}");
    }

    #[test]
    fn machines_and_classes_are_shown_while_this_process_runs_them() {
        let metrics = Metrics::default();
        let mut index = Index::default();
        let machine = Machine::of(&AzureFlexMachine::default());
        index.machines.insert("one".to_owned(), machine);
        index.classes.insert("plain".to_owned(), AzureFlexNodeClass::default());
        let running = FlexMetrics::registered(&metrics).run(Arc::new(Mutex::new(index)));
        let text = metrics.text();
        for line in [
            "bringup_flex_machines{phase=\"Planned\"} 1",
            "bringup_flex_machines{phase=\"Running\"} 0",
            "bringup_flex_classes{ready=\"Unknown\"} 1",
            "bringup_flex_classes{ready=\"False\"} 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        drop(running);
        let text = metrics.text();
        assert!(!text.contains("flex_machines{") && !text.contains("flex_classes{"), "{text}");
    }

    #[test]
    fn leaks_are_those_of_the_last_sweep_of_each_group_and_absent_before_it() {
        let metrics = Metrics::default();
        let flex = FlexMetrics::registered(&metrics);
        assert!(!metrics.text().contains("\nbringup_flex_leaks "));
        flex.swept(group("a"), 2, 1);
        flex.swept(group("b"), 3, 3);
        flex.swept_all(|_| true);
        assert!(metrics.text().contains("\nbringup_flex_leaks 5\n"), "{}", metrics.text());
        assert!(metrics.text().contains("\nbringup_flex_swept_total 4\n"), "{}", metrics.text());
        // The sweep of `a` failed this time, and no class uses `b` any more.
        flex.swept_all(|one| *one == group("a"));
        assert!(metrics.text().contains("\nbringup_flex_leaks 2\n"), "{}", metrics.text());
    }

    #[test]
    fn without_machines_nothing_is_said_of_them() {
        assert!(!Metrics::default().text().contains("flex"));
    }
}
