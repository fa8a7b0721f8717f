use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::agent_pools::{all, find, remove};
use super::agentpools::instances_server::{Instances, InstancesServer};
use super::agentpools::{InstanceRestartRequest, InstanceRestartResponse};
use super::api;
use super::item::instance_item;
use super::pools::Pools;
use crate::grpc::listen::LARGEST;
use crate::grpc::refusal;

/// Serves the instances of pools: each pool has exactly one, `<pool>/0`.
#[derive(Debug)]
pub struct InstancesService<P> {
    pools: Arc<P>,
}

impl<P: Pools> InstancesService<P> {
    /// The service of the instances of these pools.
    pub fn server(pools: Arc<P>) -> InstancesServer<Self> {
        InstancesServer::new(Self { pools }).max_decoding_message_size(LARGEST)
    }
}

fn pool_of(instance: &str) -> Option<&str> {
    instance.strip_suffix("/0").filter(|pool| !pool.is_empty())
}

fn absent(instance: &str) -> Status {
    refusal::not_found(format!("instance {instance} does not exist"))
}

#[tonic::async_trait]
impl<P: Pools> Instances for InstancesService<P> {
    /// An instance is created with its pool, and has no fields that could change.
    async fn create_or_update(
        &self,
        _: Request<api::CreateOrUpdateRequest>,
    ) -> Result<Response<api::CreateOrUpdateResponse>, Status> {
        let what = "an instance comes with its pool: create the pool";
        Err(Status::unimplemented(what))
    }

    async fn list(
        &self,
        request: Request<api::ListRequest>,
    ) -> Result<Response<api::ListResponse>, Status> {
        let items = match request.into_inner().id.filter(|id| !id.is_empty()) {
            None => {
                let pools = all(&*self.pools).await?;
                pools.iter().map(|stored| instance_item(&stored.pool.id)).collect()
            }
            Some(id) => match find(&*self.pools, &id).await? {
                Some(stored) => vec![instance_item(&stored.pool.id)],
                None => return Err(refusal::not_found(format!("pool {id} does not exist"))),
            },
        };
        Ok(Response::new(api::ListResponse { items }))
    }

    async fn get(
        &self,
        request: Request<api::GetRequest>,
    ) -> Result<Response<api::GetResponse>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        let pool = pool_of(&id).ok_or_else(|| absent(&id))?;
        let stored = find(&*self.pools, pool).await?.ok_or_else(|| absent(&id))?;
        let item = Some(instance_item(&stored.pool.id));
        Ok(Response::new(api::GetResponse { item }))
    }

    /// The only instance of a pool is deleted with the pool.
    async fn delete(
        &self,
        request: Request<api::DeleteRequest>,
    ) -> Result<Response<api::DeleteResponse>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        if let Some(pool) = pool_of(&id) {
            remove(&*self.pools, pool).await?;
        }
        Ok(Response::new(api::DeleteResponse {}))
    }

    async fn restart(
        &self,
        request: Request<InstanceRestartRequest>,
    ) -> Result<Response<InstanceRestartResponse>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        let pool = pool_of(&id).ok_or_else(|| absent(&id))?;
        find(&*self.pools, pool).await?.ok_or_else(|| absent(&id))?;
        self.pools.restart(pool).await.map_err(|error| error.refused())?;
        Ok(Response::new(InstanceRestartResponse {}))
    }
}
