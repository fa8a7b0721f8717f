//! Reconciles `AzureFlexMachine`s with Azure, and the classes, claims and Nodes that belong to them.

mod claims;
mod class;
mod class_failure;
pub(crate) mod classes;
mod flex;
mod index;
mod kubernetes;
mod machine;
mod memory;
mod metrics;
pub(crate) mod nodes;
mod recording;
mod store;
mod sweeping;
mod watches;

pub use self::classes::is_ready;
pub use self::flex::{Flex, Replica};
pub use self::metrics::FlexMetrics;
