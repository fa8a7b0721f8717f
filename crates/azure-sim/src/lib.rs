//! A simulated Azure: ARM, compute, network and the guest, good enough that Azure's own SDKs
//! cannot tell, with time and faults under control.
//!
//! [`azure::Azure`] is one deterministic state machine. [`simulator::Simulator`] gives it a
//! clock; [`doors`] let requests in.

mod activity;
pub mod azure;
mod boot_diagnostics;
mod catalog;
pub mod clock;
pub mod doors;
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
