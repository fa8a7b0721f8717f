//! `bringup why`, `reports` and `report`, on a real API server.

#[path = "common/mod.rs"]
mod common;
#[path = "cluster/example_cluster.rs"]
mod example_cluster;
#[path = "cluster/reports.rs"]
mod reports;
#[path = "cluster/story.rs"]
mod story;
#[path = "common/terminal.rs"]
mod terminal;
#[path = "cluster/trouble.rs"]
mod trouble;
#[path = "cluster/why.rs"]
mod why;
