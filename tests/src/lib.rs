//! A whole world to try bringup in: a real Kubernetes control plane, a simulated Azure, Nodes
//! for the VMs that join, and a stand-in for Karpenter's Azure provider.

pub mod arm;
pub mod cluster_api;
pub mod counted;
pub mod crowd;
pub mod fast;
pub mod flex_world;
pub mod guest;
pub mod makers;
mod nodes;
pub mod order;
pub mod paper;
pub mod process;
pub mod program;
pub mod provider;
pub mod stage;
mod world;

pub use world::World;
