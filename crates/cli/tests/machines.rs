//! `bringup why`, `reports` and `boot-log` of Machines, with the real definitions of Cluster API on a
//! real API server and a simulated Azure.

// The cluster with the observed machines is the same for all tests.
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../../tests/tests/machines/common.rs"]
mod common;
#[path = "../../../tests/tests/machines/definitions.rs"]
mod definitions;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../../tests/tests/machines/launch.rs"]
mod launch;

#[path = "machines/asking.rs"]
mod asking;
#[path = "machines/boot_log.rs"]
mod boot_log;
#[path = "machines/help.rs"]
mod help;
#[path = "common/mod.rs"]
mod program;
#[path = "common/terminal.rs"]
mod terminal;
#[path = "machines/why.rs"]
mod why;
