use std::collections::BTreeMap;
use std::error::Error;

use async_trait::async_trait;
use bringup_objects::flex::FlexNodeClassSpec;
use bringup_objects::flex::machine::Failure;
use jiff::Timestamp;
use tonic::Status;

use crate::grpc::refusal;

/// A pool: one VM. The token that a client sends is not part of this type, so that no implementation can
/// store the token: a machine joins with a token of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pool {
    /// The pool's ID, as the client chose it.
    pub id: String,
    /// The class of the VM.
    pub class: FlexNodeClassSpec,
    /// The VM's size; empty for a stored pool that has no machine yet.
    pub size: String,
    /// The Node's labels.
    pub labels: BTreeMap<String, String>,
    /// The Node's taints, as `key=value:effect`.
    pub taints: Vec<String>,
    /// The URL of the cluster's API server.
    pub server: String,
    /// The certificate authority of the cluster, as PEM.
    pub authority: Vec<u8>,
}

/// A stored pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The pool as its client requested it.
    pub pool: Pool,
    /// The ID of the VM, once Azure has accepted it.
    pub vm_resource_id: Option<String>,
    /// When the pool was stored.
    pub created_at: Timestamp,
}

/// The item that is stored under an ID.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A pool.
    Pool(Box<Stored>),
    /// An item of another type, which must stay unchanged.
    Other,
    /// An item that cannot be parsed, and why.
    Broken(String),
}

/// The error of an operation on a pool.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A field is invalid.
    #[error("{field}: {what}")]
    Field {
        /// The field, such as `spec.kubeadm.token`.
        field: String,
        /// The problem with the field.
        what: String,
    },
    /// The pool exists already, with other fields.
    #[error("{0}")]
    Fixed(String),
    /// Another operation must end first.
    #[error("{0}")]
    Busy(String),
    /// Azure refused the VM.
    #[error("{}", .0.message)]
    Azure(Failure),
    /// No machine can be created from the pool's class.
    #[error("{0}")]
    NotReady(String),
    /// The pool does not exist.
    #[error("pool {0} does not exist")]
    Absent(String),
    /// The store of the pools failed.
    #[error("{what}")]
    Failed {
        /// The attempted action.
        what: String,
        /// The cause of the failure.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl PoolError {
    pub(super) fn refused(&self) -> Status {
        match self {
            Self::Field { .. } => refusal::wrong_request(self.to_string()),
            Self::Fixed(what) => Status::failed_precondition(what),
            Self::Busy(what) => Status::aborted(what),
            Self::Azure(failure) => refusal::of_failure(failure),
            Self::NotReady(why) => refusal::class_not_ready(why),
            Self::Absent(_) => refusal::not_found(self.to_string()),
            Self::Failed { what, source } => {
                tracing::warn!(what, error = %source, "pool request failed");
                refusal::not_now(what)
            }
        }
    }
}

/// Stores pools.
#[async_trait]
pub trait Pools: Send + Sync + 'static {
    /// Stores a pool, and returns when Azure has accepted or refused its VM, or after a while. Repeating the
    /// request changes nothing; a pool that Azure refused is deleted.
    async fn put(&self, pool: Pool) -> Result<Stored, PoolError>;
    /// The item that is stored under an ID.
    async fn get(&self, id: &str) -> Result<Option<Record>, PoolError>;
    /// All stored items by ID, including those that cannot be parsed.
    async fn list(&self) -> Result<Vec<(String, Record)>, PoolError>;
    /// Deletes a pool with its VM. The pool exists until Azure holds none of its resources.
    async fn delete(&self, id: &str) -> Result<(), PoolError>;
    /// Restarts the VM of a pool.
    async fn restart(&self, id: &str) -> Result<(), PoolError>;
}
