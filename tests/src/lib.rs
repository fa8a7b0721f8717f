//! Test beds for end-to-end tests, the demo and benchmarks: a real Kubernetes control plane, a simulated
//! Azure, Nodes for the VMs that join, and stand-ins for the programs that bringup works with.

pub mod arm;
pub mod cluster_api;
pub mod controller_process;
pub mod fake_api_server;
pub mod flex_controller;
pub mod flex_guests;
pub mod guest;
mod nodes;
pub mod order;
pub mod process;
pub mod real_karpenter;
pub mod request_counter;
#[path = "../../crates/azure/tests/common/simulated_clock.rs"]
pub mod simulated_clock;
pub mod stand_in_karpenter;
pub mod test_bed;
pub mod vm_fleet;

use std::io::Write as _;

use anyhow::{Context as _, Result};

pub use test_bed::TestBed;

/// The subscription of all resources in the simulated Azure.
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// The namespace of the controller in a cluster of its own.
pub const NAMESPACE: &str = "bringup-system";
/// A subnet that exists in every simulated Azure.
pub const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes";

/// All of the simulated Azure, for a controller in a cluster without any Node whose provider ID would name
/// its subscription.
pub fn scopes() -> bringup_azure::Scopes {
    SUBSCRIPTION.parse().into_iter().collect()
}

/// Prints a line of the demo or of a benchmark.
pub fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("write to standard output")
}
