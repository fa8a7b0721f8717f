//! The registry of metrics that all controllers of one process share, and the common metrics.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use bringup_azure::Arm;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

mod bounded;

pub use self::bounded::{Bounded, word_of};
use crate::health::Health;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabel {
    what: &'static str,
}

/// The metrics of a process. Clones share one registry.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    writes: Family<WriteLabel, Counter>,
    panics: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bringup");
        let (writes, panics) = (Family::default(), Counter::default());
        registry.register(
            "api_writes",
            "Writes to the API server, by what was written",
            Family::clone(&writes),
        );
        registry.register(
            "panics",
            "Objects that were set aside because handling them panicked",
            panics.clone(),
        );
        Self { registry: Arc::new(Mutex::new(registry)), writes, panics }
    }
}

impl Metrics {
    /// Adds metrics to the registry.
    pub fn register<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Exports the state of `arm` and `health`.
    pub fn watch(&self, arm: Arm, health: Health) {
        self.register(|registry| registry.register_collector(Box::new(Shared { arm, health })));
    }

    /// All metrics in the `OpenMetrics` text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            let _ = write!(text, "# metrics cannot be written");
        }
        text
    }

    /// Counts a write to the API server.
    pub fn wrote(&self, what: &'static str) {
        self.writes.get_or_create(&WriteLabel { what }).inc();
    }

    /// Counts objects that were set aside because handling them panicked.
    pub fn panics(&self) -> &Counter {
        &self.panics
    }
}

/// Metrics whose values are computed at each export.
#[derive(Debug)]
struct Shared {
    arm: Arm,
    health: Health,
}

impl Collector for Shared {
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
        let help = "1 for each dependency or permission that is missing";
        let mut degraded = encoder.encode_descriptor("degraded", help, None, MetricType::Gauge)?;
        for what in self.health.degraded() {
            ConstGauge::new(1_i64).encode(degraded.encode_family(&[("what", what)])?)?;
        }
        Ok(())
    }
}
