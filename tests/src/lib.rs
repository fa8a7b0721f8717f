//! A whole world to try bringup in: a real Kubernetes control plane, a simulated Azure, Nodes
//! for the VMs that join, and a stand-in for Karpenter's Azure provider.

pub mod arm;
pub mod cluster_api;
pub mod counted;
pub mod fake_api_server;
pub mod fast;
pub mod flex_controller;
pub mod flex_world;
pub mod guest;
mod nodes;
pub mod order;
pub mod process;
pub mod program;
pub mod provider;
pub mod stage;
pub mod vm_fleet;
mod world;

pub use world::World;

/// The subscription in which the simulated Azure has everything.
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// All of it, for a controller in a cluster that has no Node yet which would show where its VMs are.
pub fn scopes() -> bringup_azure::Scopes {
    SUBSCRIPTION.parse().into_iter().collect()
}
