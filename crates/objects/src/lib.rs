//! What bringup writes into Kubernetes, and thin views of what it reads there.
//!
//! Views name only the fields that are looked at: ten thousand claims and Nodes fit into little
//! memory, and a field that another version lacks is no error.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod cluster_api;
pub mod condition;
pub mod flex;
pub mod karpenter;
pub mod names;
pub mod node;
pub mod readable;
pub mod report;

pub use karpenter::{NodeClaim, NodePool};
pub use node::Node;
pub use readable::Readable;
pub use report::BootstrapReport;

/// The field manager and reporting controller of everything that is written.
pub const MANAGER: &str = "bringup";
