//! One diagnosis, many outputs: conditions, Events, the report, the log line.

pub mod conditions;
pub mod events;
pub mod report;
