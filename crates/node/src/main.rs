//! `bringup-node`: brings the node up on which it runs, and says why that failed.
//!
//! On Windows it only waits for others that do so: most modules are for Linux alone.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs
#![cfg_attr(windows, allow(dead_code, reason = "what is shared holds things for Linux"))]

#[cfg(unix)]
mod agent;
mod args;
#[cfg(unix)]
mod ask;
mod clock;
#[cfg(unix)]
mod code;
#[cfg(unix)]
mod commands;
#[cfg(windows)]
#[path = "commands_windows.rs"]
mod commands;
#[cfg(unix)]
mod config;
#[cfg(unix)]
mod customdata;
#[cfg(unix)]
mod drain;
#[cfg(unix)]
mod endpoints;
#[cfg(unix)]
mod environment;
#[cfg(unix)]
mod events;
mod extension;
#[cfg(unix)]
mod faces;
#[cfg(unix)]
mod hotfix;
#[cfg(unix)]
mod join;
#[cfg(unix)]
mod keeper;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod leftovers;
#[cfg(unix)]
mod lock;
#[cfg(unix)]
mod log;
mod output;
mod paths;
mod plain_toml;
#[cfg(unix)]
mod postmortem;
#[cfg(unix)]
mod preflight;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod provision;
#[cfg(unix)]
mod result;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod secrets;
mod sentinel;
#[cfg(unix)]
mod settings;
#[cfg(unix)]
mod steps;
#[cfg(unix)]
mod store;
mod summary;
#[cfg(unix)]
mod usage;
#[cfg(unix)]
mod wait;
#[cfg(unix)]
mod waiter;
#[cfg(unix)]
mod watch;
#[cfg(windows)]
mod windows_api;

fn main() -> std::process::ExitCode {
    // What is wrong with the program goes into the result, not onto the console.
    std::panic::set_hook(Box::new(|_| {}));
    commands::main()
}
