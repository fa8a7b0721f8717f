//! Observes nodes that are bootstrapping, and reports in Kubernetes why one does not join.
//!
//! ```text
//! watches ──▶ Cluster (an index) ──▶ Agenda (what is due) ──▶ Snapshot ──▶ next_step ──▶ one effect
//! ```
//!
//! `next_step` is pure: a function of the [`snapshot::Snapshot`], which contains the time and everything
//! observed. All state that must survive a restart is in Kubernetes or in Azure. State in memory only saves
//! reads, and may be lost.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod claims;
pub mod cluster;
pub mod collect;
pub mod collector;
pub mod console_watch;
pub mod diagnosed;
pub mod inquiry;
pub mod interpret;
pub mod judge;
pub mod kinds;
pub mod log;
pub mod machines;
mod memory;
pub mod metrics;
pub mod observation;
pub mod observer;
pub mod outputs;
pub mod plan;
pub mod profile;
pub mod read_scope;
pub mod schedule;
pub mod settings;
pub mod shape;
pub mod snapshot;
pub mod subject;
pub mod watch;
pub mod workers;
pub mod writer;

pub use metrics::ObserverMetrics;
pub use observer::Observer;
pub use settings::Settings;
