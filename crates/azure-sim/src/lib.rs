//! A simulated Azure: ARM, compute, network and the guest. It behaves closely enough that Azure's
//! own SDKs work against it, and its clock and its faults are under the control of the test.
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
