//! Explains to a person why a node failed.
//!
//! A [`Diagnosis`](bringup_diagnosis::Diagnosis) or a stored
//! [`BootstrapReport`](bringup_objects::BootstrapReport) becomes one [`Explanation`]: a list of [`Block`]s
//! that name the kind of each part, not its appearance. [`Explanation::text`], [`Explanation::coloured`] and
//! [`Explanation::html`] render the same blocks.

mod block;
mod emphasis;
mod excerpt;
mod html;
pub mod layout;
mod of_diagnosis;
mod of_report;
mod text;
pub mod words;

pub use block::{Block, Explanation, Moment, Row};
pub use of_report::{cluster, family, place, replacement};
