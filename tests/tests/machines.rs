//! Machines of Cluster API, with the real definitions on a real API server and a simulated Azure.

#![allow(clippy::print_stdout, reason = "what a test saw helps when it fails")]

#[path = "machines/agents.rs"]
mod agents;
#[path = "machines/commands.rs"]
mod commands;
#[path = "machines/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;
#[path = "machines/conditions.rs"]
mod conditions;
#[path = "machines/consoles.rs"]
mod consoles;
#[path = "machines/definitions.rs"]
mod definitions;
#[path = "machines/early.rs"]
mod early;
#[path = "generators/mod.rs"]
#[allow(dead_code, reason = "each test program uses its own part")]
mod generators;
#[path = "machines/hosts.rs"]
mod hosts;
#[path = "machines/latency.rs"]
mod latency;
#[path = "machines/launch.rs"]
mod launch;
#[path = "machines/matrix.rs"]
mod matrix;
#[path = "machines/objects.rs"]
mod objects;
#[path = "machines/paused.rs"]
mod paused;
#[path = "machines/pools.rs"]
mod pools;
#[path = "machines/provider_failures.rs"]
mod provider_failures;
#[path = "machines/shapes.rs"]
mod shapes;
#[path = "machines/verdicts.rs"]
mod verdicts;
#[path = "machines/waits.rs"]
mod waits;
