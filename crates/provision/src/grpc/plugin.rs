//! The plugin of aks-flex: pools of one Azure VM each, stored by an implementation of [`Pools`].
//!
//! Items of aks-flex can be of any type. Pools of single VMs are handled here; items of other types are
//! left alone and not shown.

mod agent_pools;
mod instances;
mod item;
mod pools;

pub use self::agent_pools::AgentPoolsService;
pub use self::instances::InstancesService;
pub use self::item::same_authority;
pub use self::pools::{Pool, PoolError, Pools, Record, Stored};
pub use crate::grpc::generated::{agentpools, api, capacity, kubeadm};
