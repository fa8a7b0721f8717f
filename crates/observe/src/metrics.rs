//! Metrics. The values of labels are fixed words, or bounded by the cluster's configuration; never a node's
//! name.

use std::sync::{Arc, Mutex, PoisonError};

use bringup_contract::Open;
use bringup_objects::condition::Condition;
use bringup_objects::report::{BootstrapReport, Phase};
use bringup_runtime::metrics::{Bounded, Metrics, word_of};
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::cluster::Cluster;
use crate::subject::Subject;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    cause: String,
    exit_code: String,
    constant: String,
    os: String,
    nodepool: String,
    image_version: String,
    sku: String,
    zone: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: String,
    nodepool: String,
    image_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabel {
    mode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabel {
    rule: String,
}

/// The metrics of the observer.
#[derive(Debug, Clone)]
pub struct ObserverMetrics {
    process: Metrics,
    failures: Bounded<FailureLabels>,
    results: Bounded<ResultLabels>,
    durations: Family<PhaseLabel, Histogram>,
    detected: Histogram,
    surfaced: Histogram,
    reasserts: Counter,
    lost: Bounded<ModeLabel>,
    redactions: Bounded<RuleLabel>,
    cluster: LeaderIndex,
}

/// The most series of a metric with labels from reports. A new series replaces the oldest one.
const MOST_SERIES: usize = 2_000;
/// The most series of a metric whose labels are fixed words in every report that bringup itself wrote.
const MOST_WORDS: usize = 64;

/// The index, while this replica is the leader.
type LeaderIndex = Arc<Mutex<Option<Arc<Cluster>>>>;

/// Exports the index until this value is dropped.
#[derive(Debug)]
pub(crate) struct Leading(LeaderIndex);

impl Drop for Leading {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Buckets in seconds, from a tenth of a second to a quarter of an hour.
const SECONDS: [f64; 13] =
    [0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 180.0, 420.0, 900.0];

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for ObserverMetrics {
    fn default() -> Self {
        Self::registered(&Metrics::default())
    }
}

impl ObserverMetrics {
    /// Registers the observer's metrics with those of the process.
    pub fn registered(process: &Metrics) -> Self {
        let metrics = Self {
            process: process.clone(),
            failures: Bounded::of(MOST_SERIES),
            results: Bounded::of(MOST_SERIES),
            durations: Family::new_with_constructor(histogram),
            detected: histogram(),
            surfaced: histogram(),
            reasserts: Counter::default(),
            lost: Bounded::of(MOST_WORDS),
            redactions: Bounded::of(MOST_WORDS),
            cluster: LeaderIndex::default(),
        };
        process.register(|registry| {
            registry.register(
                "bootstrap_failures",
                "Nodes that did not come up, by cause",
                metrics.failures.family(),
            );
            registry.register(
                "bootstraps",
                "Nodes that came up or did not",
                metrics.results.family(),
            );
            registry.register(
                "bootstrap_duration_seconds",
                "From the acceptance of the VM to the Node, or to the verdict",
                metrics.durations.clone(),
            );
            registry.register(
                "time_to_detect_seconds",
                "From the end of the bootstrap script to the verdict",
                metrics.detected.clone(),
            );
            registry.register(
                "time_to_surface_seconds",
                "From the verdict to the condition",
                metrics.surfaced.clone(),
            );
            registry.register(
                "condition_reasserts",
                "Conditions that another writer had dropped",
                metrics.reasserts.clone(),
            );
            registry.register(
                "evidence_lost",
                "VMs that were gone before they could be read",
                metrics.lost.family(),
            );
            registry.register(
                "redactions",
                "Secrets removed from evidence, by rule",
                metrics.redactions.family(),
            );
            registry.register_collector(Box::new(Reports(metrics.cluster.clone())));
        });
        metrics
    }

    /// Exports the reports in an index until the returned value is dropped.
    pub(crate) fn lead(&self, cluster: Arc<Cluster>) -> Leading {
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster);
        Leading(self.cluster.clone())
    }

    pub(crate) fn announced(&self, report: &BootstrapReport, now: Timestamp) {
        if report.phase() == Phase::Superseded {
            return;
        }
        self.count(report);
        let status = report.status.clone().unwrap_or_default();
        let ended = status.cse.and_then(|cse| cse.ended_at).map(|at| at.0);
        if let (Some(ended), Some(finished)) = (ended, report.finished_at()) {
            self.detected.observe(seconds(ended, finished));
        }
        if let Some(finished) = report.finished_at() {
            self.surfaced.observe(seconds(finished, now));
        }
        if let Some(created) = &report.spec.created_at {
            let phase = PhaseLabel { phase: "failed".to_owned() };
            let finished = report.finished_at().unwrap_or(now);
            self.durations.get_or_create(&phase).observe(seconds(created.0, finished));
        }
        for rule in &status.redactions.rules {
            self.redactions.inc(&RuleLabel { rule: word_of(Some(rule)) });
        }
        if status.phase == Phase::Lost {
            let mode = word_of(report.spec.provision_mode.as_ref().map(Open::as_str));
            self.lost.inc(&ModeLabel { mode });
        }
    }

    fn count(&self, report: &BootstrapReport) {
        let spec = &report.spec;
        let cse = report.status.clone().and_then(|status| status.cse).unwrap_or_default();
        let nodepool = word_of(spec.parent_ref.as_ref().map(|parent| parent.name.as_str()));
        let image_version = word_of(spec.image_version.as_deref());
        let labels = FailureLabels {
            cause: word_of(Some(report.cause().unwrap_or("Unknown"))),
            exit_code: cse.exit_code.map(|code| code.to_string()).unwrap_or_default(),
            constant: word_of(cse.constant.as_deref()),
            os: word_of(spec.os.as_deref()),
            nodepool: nodepool.clone(),
            image_version: image_version.clone(),
            sku: word_of(spec.vm_size.as_deref()),
            zone: word_of(spec.zone.as_deref()),
        };
        self.failures.inc(&labels);
        let result = ResultLabels { result: "failed".to_owned(), nodepool, image_version };
        self.results.inc(&result);
    }

    /// Counts a node that joined, when its condition was written.
    pub(crate) fn told(&self, subject: &Subject, verdict: &Condition, now: Timestamp) {
        if verdict.status != "True" {
            return;
        }
        let image = subject.image.as_deref().and_then(bringup_contract::ImageVersion::find);
        let result = ResultLabels {
            result: "joined".to_owned(),
            nodepool: word_of(subject.parent.as_ref().map(|parent| parent.name.as_str())),
            image_version: image.map(|image| image.to_string()).unwrap_or_default(),
        };
        self.results.inc(&result);
        if let Some(launched) = subject.launched() {
            let phase = PhaseLabel { phase: "joined".to_owned() };
            let registered = subject.registered.unwrap_or(now);
            self.durations.get_or_create(&phase).observe(seconds(launched, registered));
        }
    }

    pub(crate) fn wrote(&self, what: &'static str) {
        self.process.wrote(what);
    }

    /// Counts objects that were set aside because handling them panicked.
    pub(crate) fn panics(&self) -> &Counter {
        self.process.panics()
    }

    /// Counts a condition that was written again because another writer had dropped it.
    pub(crate) fn reasserted(&self) {
        self.reasserts.inc();
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    from.duration_until(to).as_secs_f64().max(0.0)
}

/// Collects the number of reports in the leader's index.
#[derive(Debug)]
struct Reports(LeaderIndex);

impl Collector for Reports {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let cluster = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reports = cluster.iter().flat_map(|cluster| cluster.reports()).collect::<Vec<_>>();
        let mut by_phase =
            encoder.encode_descriptor("reports", "Reports, by phase", None, MetricType::Gauge)?;
        // Only the leader has an index: from other replicas the series is absent, not zero.
        let phases = if cluster.is_some() { Phase::ALL } else { &[] };
        for phase in phases {
            let count = reports.iter().filter(|report| report.phase() == *phase).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(by_phase.encode_family(&[("phase", phase.word())])?)?;
        }
        Ok(())
    }
}
