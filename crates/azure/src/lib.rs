//! Access to Azure: typed reads of virtual machines and of the evidence of their bootstrap, within a read
//! budget, and operations that survive a restart.
//!
//! [`Arm`] is the client. One call is one request, and the client repeats none: the caller knows better
//! whether the answer still matters, and requeues. Requests that Azure would throttle wait in [`Reads`]
//! instead, most urgent first.
//!
//! ```text
//! Arm ── turn? ──▶ Reads (priority, oldest first) ── allowed? ──▶ Budget (pure: tokens, stops)
//!  │                                                                ▲
//!  └──────── one request ──▶ HttpClient ── headers, 429 ────────────┘
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod arm;
pub mod budget;
pub mod clock;
pub mod cloud;
pub mod credential;
pub mod error;
pub mod id;
pub mod model;
pub mod operation;
pub mod reads;
pub mod scope;
mod scrub;
pub mod transport;

/// The source of tokens.
pub use azure_core::credentials::TokenCredential;
/// The HTTP transport.
pub use azure_core::http::HttpClient;

pub use arm::Arm;
pub use budget::{Budget, Limits};
pub use clock::{Clock, WallClock};
pub use cloud::{Cloud, Endpoint};
pub use credential::CredentialKind;
pub use error::{ArmError, ErrorKind};
pub use id::{InstanceId, MachineId, ProviderId, ResourceId, ScaleSetInstanceId, VirtualMachineId};
pub use operation::{OperationAddress, OperationState};
pub use reads::{Priority, Reads, Turn};
pub use scope::{Scope, Scopes};
