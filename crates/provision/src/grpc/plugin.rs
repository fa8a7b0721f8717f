//! The plugin of aks-flex: pools of one Azure VM each, stored by an implementation of [`Pools`].
//!
//! Items of aks-flex can have any type. The plugin handles pools of single VMs; items of other types stay
//! unchanged and are not shown.

mod agent_pools;
mod instances;
mod item;
mod pools;

pub use self::agent_pools::AgentPoolsService;
pub use self::instances::InstancesService;
pub use self::item::same_authority;
pub use self::pools::{Pool, PoolError, Pools, Record, Stored};
pub use crate::grpc::generated::{agentpools, api, capacity, kubeadm};
