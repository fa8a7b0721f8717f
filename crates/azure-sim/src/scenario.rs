//! A scenario in YAML: the contents of a simulated Azure, and the behaviour of its VMs.

mod boot;
mod load;
mod place;
mod quirks;
mod rule;
mod span;

pub use boot::{
    AgentOutcome, Boot, Bootstrap, JsonShape, NodeOutcome, OsOutcome, Script, ScriptRun,
};
pub use load::{ScenarioError, load, parse};
pub use place::{Capacity, MarketplaceImage, Quota, Subnet};
pub use quirks::{DeletedExtensions, Preemption, Quirks, RunCommandHandler};
pub use rule::{Refusal, Rule, Subject, When};
pub use span::Span;

use jiff::Timestamp;
use serde::Deserialize;

use crate::fault::FaultRule;

/// A whole scenario. Every field has a default, so an empty file is a healthy Azure.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The seed of everything random.
    pub seed: u64,
    /// Where a manual or accelerated clock starts.
    pub start: Timestamp,
    /// Resource groups that exist. Empty: any group exists.
    pub resource_groups: Vec<String>,
    /// Subnets that exist.
    pub subnets: Vec<Subnet>,
    /// Marketplace images. Without any, every image exists, in version 1.0.0.
    pub images: Vec<MarketplaceImage>,
    /// Core quotas. A family that is not listed has no limit.
    pub quotas: Vec<Quota>,
    /// Capacity limits. A size that is not listed is available.
    pub capacity: Vec<Capacity>,
    /// The behaviour of VMs. The first matching rule decides; a VM without a rule is healthy.
    pub rules: Vec<Rule>,
    /// Faults to inject into requests.
    pub faults: Vec<FaultRule>,
    /// Undocumented behaviours of Azure.
    pub quirks: Quirks,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 1,
            start: Timestamp::constant(1_769_524_200, 0), // 2026-01-27T14:30:00Z
            resource_groups: Vec::new(),
            subnets: vec![Subnet::default()],
            images: Vec::new(),
            quotas: Vec::new(),
            capacity: Vec::new(),
            rules: Vec::new(),
            faults: Vec::new(),
            quirks: Quirks::default(),
        }
    }
}
