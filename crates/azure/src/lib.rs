//! The Azure that bringup needs: typed reads of virtual machines and what is known of their
//! bootstrap, within a read budget, and operations that survive a restart.
//!
//! [`Arm`] is the client. One call is one request: nothing is retried in here, because the caller that
//! asks knows better whether the answer still matters, and requeues. What Azure would throttle
//! waits in [`Reads`] instead, most urgent first.
//!
//! ```text
//! Arm ── asks ──▶ Reads (priority, oldest first) ── asks ──▶ Budget (pure: tokens, stops)
//!  │                                                            ▲
//!  └──────── one request ──▶ HttpClient ── headers, 429 ────────┘
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

/// Whatever gives tokens.
pub use azure_core::credentials::TokenCredential;
/// Whatever carries requests.
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
