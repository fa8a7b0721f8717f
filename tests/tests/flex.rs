//! Machines on a real API server and a simulated Azure.

#[path = "flex/admission.rs"]
mod admission;
#[path = "flex/classes.rs"]
mod classes;
#[path = "flex/common.rs"]
#[allow(dead_code, reason = "each test file uses its own part")]
mod common;
#[path = "flex/joining.rs"]
mod joining;
#[path = "flex/lives.rs"]
mod lives;
#[path = "flex/nodes.rs"]
mod nodes;
#[path = "flex/role.rs"]
mod role;
#[path = "flex/service.rs"]
mod service;
