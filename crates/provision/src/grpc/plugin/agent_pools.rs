use std::sync::Arc;

use tonic::{Request, Response, Status};
use tracing::warn;

use super::agentpools::agent_pools_server::{AgentPools, AgentPoolsServer};
use super::api;
use super::item::{pool_item, wanted};
use super::pools::{Pools, Record, Stored};
use crate::grpc::listen::LARGEST;
use crate::grpc::refusal;

/// The service of pools.
#[derive(Debug)]
pub struct AgentPoolsService<P> {
    pools: Arc<P>,
}

impl<P: Pools> AgentPoolsService<P> {
    /// The service of these pools.
    pub fn server(pools: Arc<P>) -> AgentPoolsServer<Self> {
        AgentPoolsServer::new(Self { pools }).max_decoding_message_size(LARGEST)
    }
}

/// The pool with this ID; none for an item of another type.
pub(super) async fn find<P: Pools>(pools: &P, id: &str) -> Result<Option<Stored>, Status> {
    match pools.get(id).await.map_err(|error| error.refused())? {
        Some(Record::Pool(stored)) => Ok(Some(*stored)),
        Some(Record::Other) | None => Ok(None),
        Some(Record::Broken(why)) => {
            Err(Status::data_loss(format!("the stored pool {id} cannot be read: {why}")))
        }
    }
}

/// All pools. A pool that cannot be parsed is logged and skipped.
pub(super) async fn all<P: Pools>(pools: &P) -> Result<Vec<Stored>, Status> {
    let records = pools.list().await.map_err(|error| error.refused())?;
    let readable = records.into_iter().filter_map(|(id, record)| match record {
        Record::Pool(stored) => Some(*stored),
        Record::Other => None,
        Record::Broken(why) => {
            warn!(pool = id, why, "stored pool cannot be read");
            None
        }
    });
    Ok(readable.collect())
}

/// Deletes a pool. An item of another type stays unchanged, as if it did not exist.
pub(super) async fn remove<P: Pools>(pools: &P, id: &str) -> Result<(), Status> {
    match pools.get(id).await.map_err(|error| error.refused())? {
        // A pool that cannot be parsed can still be deleted.
        Some(Record::Pool(_) | Record::Broken(_)) => {
            pools.delete(id).await.map_err(|error| error.refused())
        }
        Some(Record::Other) | None => Ok(()),
    }
}

#[tonic::async_trait]
impl<P: Pools> AgentPools for AgentPoolsService<P> {
    async fn create_or_update(
        &self,
        request: Request<api::CreateOrUpdateRequest>,
    ) -> Result<Response<api::CreateOrUpdateResponse>, Status> {
        let pool = wanted(request.into_inner().item.as_ref())?;
        let stored = self.pools.put(pool).await.map_err(|error| error.refused())?;
        Ok(Response::new(api::CreateOrUpdateResponse { item: Some(pool_item(&stored)) }))
    }

    async fn list(
        &self,
        _: Request<api::ListRequest>,
    ) -> Result<Response<api::ListResponse>, Status> {
        let items = all(&*self.pools).await?.iter().map(pool_item).collect();
        Ok(Response::new(api::ListResponse { items }))
    }

    async fn get(
        &self,
        request: Request<api::GetRequest>,
    ) -> Result<Response<api::GetResponse>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        let stored = find(&*self.pools, &id).await?;
        let stored =
            stored.ok_or_else(|| refusal::not_found(format!("pool {id} does not exist")))?;
        Ok(Response::new(api::GetResponse { item: Some(pool_item(&stored)) }))
    }

    async fn delete(
        &self,
        request: Request<api::DeleteRequest>,
    ) -> Result<Response<api::DeleteResponse>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        remove(&*self.pools, &id).await?;
        Ok(Response::new(api::DeleteResponse {}))
    }
}
