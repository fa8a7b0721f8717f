//! Formats that others own: what Azure, AKS and its bootstrap scripts write, and what it means.
//!
//! No I/O, no clock. What is read here is untrusted text of any shape; nothing here panics on it.

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
