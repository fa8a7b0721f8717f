//! Formats of external systems: the output of Azure, AKS and its bootstrap scripts, and its meaning.
//!
//! No I/O, no clock. The input is untrusted text of any kind; no function panics on it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod arm;
pub mod boot_times;
pub mod bounds;
pub mod cause;
pub mod cse;
pub mod exit_code;
pub mod flex;
pub mod image_version;
pub mod join_config;
pub mod node_config;
pub mod open;
pub mod report;

pub use cause::{Cause, Family, Retryable};
pub use exit_code::Os;
pub use image_version::ImageVersion;
pub use open::{Open, Word};
