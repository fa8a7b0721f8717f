//! The outputs of one diagnosis: conditions, Events, the report, the log line.

pub mod conditions;
pub mod events;
pub mod report;
