//! The plugin of aks-flex: pools of one Azure VM each, kept by an implementation of [`Pools`].
//!
//! aks-flex speaks of items of any type. Of those, pools of single VMs are ours; what else is kept
//! beside them is left alone and not shown.

mod agent_pools;
mod instances;
mod item;
mod pools;

pub use self::agent_pools::AgentPoolsService;
pub use self::instances::InstancesService;
pub use self::item::same_authority;
pub use self::pools::{Pool, PoolError, Pools, Record, Stored};
pub use crate::grpc::generated::{agentpools, api, capacity, kubeadm};
