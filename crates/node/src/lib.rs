//! `bringup-node`: brings up the node on which it runs, and explains why that failed.
//!
//! | module | purpose |
//! |---|---|
//! | `aks` | provisions AKS nodes in place of aks-node-controller |
//! | `capi` | waits for the bootstrap of a Cluster API machine |
//! | `extension` | the same wait as a VM extension |
//! | `join` | turns a plain image into a node of a cluster |
//! | `host` | the differences between Linux and Windows |
//!
//! Windows has `capi`, `extension` and the modules that they need; all other modules are for Linux only.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs
#![cfg_attr(windows, allow(dead_code, reason = "shared modules have parts only Linux uses"))]

#[cfg(unix)]
mod agent;
#[cfg(unix)]
mod aks;
mod args;
mod capi;
mod clock;
mod commands;
#[cfg(unix)]
mod crash_points;
#[cfg(unix)]
mod cse_output;
#[cfg(unix)]
mod events;
mod extension;
mod host;
#[cfg(unix)]
mod join;
#[cfg(unix)]
mod log;
#[cfg(unix)]
mod outcome;
mod output;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod settings;
mod settings_file;
mod summary;
mod usage;

/// Runs the command that the process was started with.
pub fn main() -> std::process::ExitCode {
    // A panic is reported in the result of the command, not on the console.
    std::panic::set_hook(Box::new(|_| {}));
    commands::main()
}
