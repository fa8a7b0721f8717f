//! Evidence in, diagnosis out: why a node did not come up, with the line that proves it.
//!
//! [`evidence::Evidence`] is what is known; [`diagnose`] is a pure function of it: no I/O, no
//! clock. Everything that leaves has gone through [`redaction`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

mod account;
mod agreement;
mod api_server;
mod boot_log;
mod course;
mod decision;
pub mod diagnosis;
pub mod evidence;
mod excerpt;
mod facts;
mod fault;
mod genre;
mod last_words;
pub mod lines;
pub mod matcher;
mod mention;
mod reader;
mod record;
pub mod redaction;
mod role;
pub mod rule;
pub mod rules;
pub mod signatures;
mod subject;
mod terminal;
mod verdict;
#[allow(clippy::doc_markdown, reason = "names of libraries, which are no code")]
mod vocabulary;
mod words;

pub use account::remedy;
pub use boot_log::boots_of;
pub use diagnosis::{Confidence, Diagnosis, Verdict};
pub use evidence::{Evidence, Piece, Source};
pub use signatures::Signatures;
pub use verdict::diagnose;
