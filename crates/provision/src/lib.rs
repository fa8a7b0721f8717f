//! The effectful part of flex: creates `AzureFlexMachine`s for Karpenter, and reconciles them with Azure.
//!
//! ```text
//! Karpenter ──▶ grpc ──▶ service ──▶ AzureFlexMachine ──▶ reconciler ──▶ flex::next_step ──▶ one effect
//! ```
//!
//! [`Service`] answers on every replica; [`Flex`] runs on the leader only. [`Provisioning`] combines both.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod grpc;
mod inquiries;
mod joining;
mod key;
mod ledger;
pub mod policy;
pub mod pools;
mod provisioning;
mod reconciler;
mod service;
mod tokens;

pub use self::joining::{Agent, JoinSettings, Joining, Programs};
pub use self::ledger::LedgerContent;
pub use self::provisioning::{Dependencies, Plugin, Provisioning};
pub use self::reconciler::{Flex, FlexMetrics, Replica, is_ready};
pub use self::service::Service;
