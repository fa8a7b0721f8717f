//! What every controller of bringup shares.
//!
//! A controller watches objects, plans their keys on an [`agenda`], and does one effect for the key
//! that is due. Each effect runs under [`set_aside`], so that a panic concerns one object only.
//! [`health`], [`metrics`] and [`rights`] tell operators what does not work, over [`http`].

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
