//! Machines of Cluster API, with the real definitions on a real API server and a simulated Azure.

#[path = "machines/common.rs"]
mod common;
#[path = "machines/launch.rs"]
mod launch;
#[path = "machines/matrix.rs"]
mod matrix;
#[path = "machines/verdicts.rs"]
mod verdicts;
