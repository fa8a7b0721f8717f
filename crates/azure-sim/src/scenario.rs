//! What a simulated Azure is made of and what its VMs do, as a YAML file says it.

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
    /// Everything random follows from this.
    pub seed: u64,
    /// Where a manual or accelerated clock starts.
    pub start: Timestamp,
    /// Resource groups that exist. Empty: any group exists.
    pub resource_groups: Vec<String>,
    /// Subnets that exist.
    pub subnets: Vec<Subnet>,
    /// Images of the marketplace. Without any, every image exists, in version 1.0.0.
    pub images: Vec<MarketplaceImage>,
    /// Core limits. What is not named here is not limited.
    pub quotas: Vec<Quota>,
    /// Where capacity is short. What is not named here is available.
    pub capacity: Vec<Capacity>,
    /// What VMs do; the first rule that fits decides, and without one a VM is healthy.
    pub rules: Vec<Rule>,
    /// What goes wrong with requests.
    pub faults: Vec<FaultRule>,
    /// Behaviours of Azure that nobody documents.
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
