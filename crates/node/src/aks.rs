//! AKS nodes: `launch`, `provision` and `provision-wait` do the work of aks-node-controller; `preflight` and
//! `postmortem` report problems of a node before and after an attempt; `customdata` makes the CustomData of a
//! VM.

pub(crate) mod commands;
pub(crate) mod config;
pub(crate) mod customdata;
pub(crate) mod endpoints;
pub(crate) mod environment;
pub(crate) mod exit_code;
pub(crate) mod hotfix;
pub(crate) mod keeper;
pub(crate) mod launch;
pub(crate) mod postmortem;
pub(crate) mod preflight;
pub(crate) mod provision;
pub(crate) mod provision_wait;
pub(crate) mod result_files;
