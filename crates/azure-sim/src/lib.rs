//! A simulated Azure: ARM, compute, network and the guest. The simulation is close enough that Azure's own
//! SDKs work with it, and the test controls its clock and its faults.
//!
//! [`azure::Azure`] is one deterministic state machine. [`simulator::Simulator`] gives it a clock.
//! [`endpoints`] accept requests.

mod activity;
pub mod azure;
mod boot_diagnostics;
mod catalog;
pub mod clock;
pub mod endpoints;
mod event;
mod exchange;
pub mod fault;
mod graph;
pub mod journal;
mod life;
mod operation;
mod output;
mod resources;
mod route;
pub mod scenario;
mod seed;
mod serve;
pub mod simulator;
mod throttle;
mod tokens;
mod usage;
mod view;

pub use azure::{Answer, Azure, Delivery, JoinedNode};
pub use simulator::Simulator;
