//! Metrics. Labels are words of ours or bounded by the cluster's set-up, never a node's name.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bringup_azure::Arm;
use bringup_contract::Open;
use bringup_objects::condition::Condition;
use bringup_objects::report::{BootstrapReport, Phase};
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

mod bounded;

use self::bounded::{Bounded, word_of};
use crate::cluster::Cluster;
use crate::flex::FlexMetrics;
use crate::health::Health;
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
struct WriteLabel {
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabel {
    rule: String,
}

/// Everything that is counted.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    failures: Bounded<FailureLabels>,
    results: Bounded<ResultLabels>,
    durations: Family<PhaseLabel, Histogram>,
    detected: Histogram,
    surfaced: Histogram,
    reasserts: Counter,
    lost: Bounded<ModeLabel>,
    redactions: Bounded<RuleLabel>,
    writes: Family<WriteLabel, Counter>,
    panics: Counter,
    cluster: Shown,
    flex: Arc<OnceLock<FlexMetrics>>,
}

/// How many series a metric has whose labels come from reports; the oldest goes for a new one.
const MOST_SERIES: usize = 2_000;
/// The same where the labels are words of ours, as far as the reports are.
const MOST_WORDS: usize = 64;

/// The index of whoever leads.
type Shown = Arc<Mutex<Option<Arc<Cluster>>>>;

/// Whoever leads, for as long as he does.
#[derive(Debug)]
pub(crate) struct Leading(Shown);

impl Drop for Leading {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// From a tenth of a second to a quarter of an hour.
const SECONDS: [f64; 13] =
    [0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 180.0, 420.0, 900.0];

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bringup");
        let metrics = Self {
            failures: Bounded::of(MOST_SERIES),
            results: Bounded::of(MOST_SERIES),
            durations: Family::new_with_constructor(histogram),
            detected: histogram(),
            surfaced: histogram(),
            reasserts: Counter::default(),
            lost: Bounded::of(MOST_WORDS),
            redactions: Bounded::of(MOST_WORDS),
            writes: Family::default(),
            panics: Counter::default(),
            cluster: Shown::default(),
            flex: Arc::default(),
            registry: Arc::default(),
        };
        registry.register(
            "bootstrap_failures",
            "Nodes that did not come up, by cause",
            metrics.failures.family(),
        );
        registry.register("bootstraps", "Nodes that came up or did not", metrics.results.family());
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
        registry.register(
            "api_writes",
            "Writes to the API server, by what was written",
            metrics.writes.clone(),
        );
        registry.register(
            "panics",
            "Objects that were set aside because handling them panicked",
            metrics.panics.clone(),
        );
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }
}

impl Metrics {
    /// Shows what `arm` and `health` know, and while somebody leads, what his index knows.
    pub(crate) fn watch(&self, arm: Arm, health: Health) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = self.cluster.clone();
        registry.register_collector(Box::new(Others { arm, cluster, health }));
    }

    /// Shows what an index knows until the answer is dropped.
    pub(crate) fn lead(&self, cluster: Arc<Cluster>) -> Leading {
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster);
        Leading(self.cluster.clone())
    }

    /// What is counted of machines, shown from now on.
    pub(crate) fn flex(&self) -> &FlexMetrics {
        self.flex.get_or_init(|| {
            let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
            FlexMetrics::registered(&mut registry)
        })
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            let _ = write!(text, "# metrics cannot be written");
        }
        text
    }

    /// A verdict was announced.
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

    /// A condition was written.
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

    /// Something was written to the API server.
    pub(crate) fn wrote(&self, what: &'static str) {
        self.writes.get_or_create(&WriteLabel { what }).inc();
    }

    /// Objects that were set aside because handling them panicked.
    pub(crate) fn panics(&self) -> &Counter {
        &self.panics
    }

    /// A condition was written again that another writer had dropped.
    pub(crate) fn reasserted(&self) {
        self.reasserts.inc();
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    from.duration_until(to).as_secs_f64().max(0.0)
}

/// What others know.
#[derive(Debug)]
struct Others {
    arm: Arm,
    cluster: Shown,
    health: Health,
}

impl Collector for Others {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counters = self.arm.reads().counters();
        let mut requests = encoder.encode_descriptor(
            "arm_requests",
            "Requests to ARM",
            None,
            MetricType::Counter,
        )?;
        for ((operation, status), count) in counters.requests {
            let code = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
            let labels = [("op", operation.name().to_owned()), ("code", code)];
            ConstCounter::new(count).encode(requests.encode_family(&labels)?)?;
        }
        let help = "What ARM says is left";
        let mut tokens =
            encoder.encode_descriptor("arm_tokens_remaining", help, None, MetricType::Gauge)?;
        for (policy, left) in counters.remaining {
            let left = i64::try_from(left).unwrap_or(i64::MAX);
            ConstGauge::new(left).encode(tokens.encode_family(&[("policy", policy)])?)?;
        }
        let help = "Reads that wait for their turn";
        let mut waiting =
            encoder.encode_descriptor("arm_reads_waiting", help, None, MetricType::Gauge)?;
        for (priority, count) in counters.waiting {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            ConstGauge::new(count)
                .encode(waiting.encode_family(&[("priority", priority.name())])?)?;
        }
        let cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reports = cluster.iter().flat_map(|cluster| cluster.reports()).collect::<Vec<_>>();
        let mut by_phase =
            encoder.encode_descriptor("reports", "Reports, by phase", None, MetricType::Gauge)?;
        // Only who leads knows; from others the series is absent, not zero.
        let phases = if cluster.is_some() { Phase::ALL } else { &[] };
        for phase in phases {
            let count = reports.iter().filter(|report| report.phase() == *phase).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(by_phase.encode_family(&[("phase", phase.word())])?)?;
        }
        let help = "1 for each thing that does not work";
        let mut degraded = encoder.encode_descriptor("degraded", help, None, MetricType::Gauge)?;
        for what in self.health.degraded() {
            ConstGauge::new(1_i64).encode(degraded.encode_family(&[("what", what)])?)?;
        }
        Ok(())
    }
}
