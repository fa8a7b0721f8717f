//! Machines on a real API server and a simulated Azure.

#![allow(clippy::print_stdout, reason = "what a test saw helps when it fails")]

#[path = "flex/admission.rs"]
mod admission;
#[path = "flex/classes.rs"]
mod classes;
#[path = "flex/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;
#[path = "generators/mod.rs"]
#[allow(dead_code, reason = "each test program uses its own part")]
mod generators;
#[path = "flex/joining.rs"]
mod joining;
#[path = "flex/lives.rs"]
mod lives;
#[path = "flex/nodes.rs"]
mod nodes;
#[path = "flex/objects.rs"]
mod objects;
#[path = "flex/role.rs"]
mod role;
#[path = "flex/service.rs"]
mod service;
