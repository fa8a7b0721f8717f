//! Nodes on single Azure VMs in any region: the next step for each machine, without ever leaving orphaned
//! resources in Azure.
//!
//! The core is pure: [`next_step`](machine::Snapshot::next_step) decides the next step for one machine and
//! its claim from one [`Snapshot`](machine::Snapshot). [`Engine`](engine::Engine) executes the decision, one
//! effect a pass, and stores each intent before it sends the call to Azure.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod audit;
pub mod backoff;
pub mod bodies;
pub mod claim;
pub mod class;
pub mod engine;
pub mod hash;
pub mod ids;
pub mod machine;
pub mod names;
pub mod offers;
pub mod ownership;
pub mod quantity;
pub mod requirements;
pub mod sizes;
pub mod sweep;
pub mod tally;
pub mod time;
pub mod trouble;
