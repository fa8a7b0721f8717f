use std::collections::BTreeMap;
use std::error::Error;

use async_trait::async_trait;
use bringup_objects::flex::FlexNodeClassSpec;
use bringup_objects::flex::machine::Failure;
use jiff::Timestamp;
use tonic::Status;

use crate::grpc::refusal;

/// A pool: one VM. The token that a client sends is not part of it, so that no implementation can store
/// it: a machine joins with one of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pool {
    /// Its id, as the client chose it.
    pub id: String,
    /// What the VM is like, and where.
    pub class: FlexNodeClassSpec,
    /// Its size. Of a stored pool, empty: it is not stored yet.
    pub size: String,
    /// Labels of its Node.
    pub labels: BTreeMap<String, String>,
    /// Taints of its Node, as `key=value:effect`.
    pub taints: Vec<String>,
    /// The API server of the cluster.
    pub server: String,
    /// The authority of the cluster, as PEM.
    pub authority: Vec<u8>,
}

/// A pool that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The pool as its client requested it.
    pub pool: Pool,
    /// The VM, once Azure has accepted it.
    pub vm_resource_id: Option<String>,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// What is stored under an id.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A pool.
    Pool(Box<Stored>),
    /// Something of another type: to be left alone.
    Other,
    /// Something that cannot be read, and why.
    Broken(String),
}

/// Why a pool was not stored, shown or deleted.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A field is invalid.
    #[error("{field}: {what}")]
    Field {
        /// The field, as `spec.kubeadm.token`.
        field: String,
        /// What is wrong with it.
        what: String,
    },
    /// The pool exists already, with other fields.
    #[error("{0}")]
    Fixed(String),
    /// Something else has to end first.
    #[error("{0}")]
    Busy(String),
    /// Azure refused it.
    #[error("{}", .0.message)]
    Azure(Failure),
    /// No machine can be created from its class.
    #[error("{0}")]
    NotReady(String),
    /// There is no such pool.
    #[error("pool {0} does not exist")]
    Absent(String),
    /// The store of the pools did not answer as expected.
    #[error("{what}")]
    Failed {
        /// What was attempted.
        what: String,
        /// Why it failed.
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
    /// Stores a pool, and answers when Azure has accepted or refused its VM, or a while later. The same
    /// request again changes nothing; a pool that Azure refused is not kept.
    async fn put(&self, pool: Pool) -> Result<Stored, PoolError>;
    /// What is stored under an id.
    async fn get(&self, id: &str) -> Result<Option<Record>, PoolError>;
    /// Everything that is stored, by its id, including what cannot be read.
    async fn list(&self) -> Result<Vec<(String, Record)>, PoolError>;
    /// Deletes a pool with its VM. It exists until Azure holds nothing of it.
    async fn delete(&self, id: &str) -> Result<(), PoolError>;
    /// Restarts the VM of a pool.
    async fn restart(&self, id: &str) -> Result<(), PoolError>;
}
