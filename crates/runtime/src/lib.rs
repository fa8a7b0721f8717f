//! Components that all controllers of bringup share.
//!
//! A controller watches objects, schedules their keys on an [`agenda`], and does one effect for each due key.
//! Each step runs under [`set_aside`], so that a panic affects only one object. [`health`], [`metrics`] and
//! [`rights`] show problems to operators, over [`http`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

pub mod agenda;
pub mod effect_hook;
pub mod health;
pub mod http;
pub mod metrics;
mod metrics_access;
pub mod recorder;
pub mod rights;
pub mod set_aside;
pub mod unreadable;
