//! A provider without Azure, to test the transport.

use std::sync::Arc;

use bringup_provision::grpc::listen::{AllowedClients, Restricted};
use bringup_provision::grpc::refusal;
use bringup_provision::grpc::v1;
use bringup_provision::grpc::v1::provider_server::{Provider, ProviderServer};
use tokio::sync::Notify;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::certificates::KARPENTER;

/// A list of clients.
pub(crate) fn allowed(names: &[&str]) -> AllowedClients {
    names.iter().map(|name| name.parse().expect("a name of a client")).collect()
}

/// Answers `Get` with the requested ID, and `Create` when the test allows it.
#[derive(Default, Clone)]
pub(crate) struct StandIn {
    pub(crate) called: Arc<Notify>,
    pub(crate) may_answer: Arc<Notify>,
    pub(crate) dropped: Arc<Notify>,
}

impl StandIn {
    pub(crate) fn routes(&self) -> Routes {
        Routes::new(Restricted::new(ProviderServer::new(self.clone()), allowed(&[KARPENTER])))
    }
}

/// Notifies when a call has ended, also when it was cancelled.
struct Ended(Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tonic::async_trait]
impl Provider for StandIn {
    async fn create(
        &self,
        request: Request<v1::CreateRequest>,
    ) -> Result<Response<v1::CreateResponse>, Status> {
        let _ended = Ended(self.dropped.clone());
        self.called.notify_one();
        self.may_answer.notified().await;
        let claim = request.into_inner().claim.unwrap_or_default().name;
        let instance = v1::Instance { claim, ..v1::Instance::default() };
        Ok(Response::new(v1::CreateResponse { instance: Some(instance) }))
    }

    async fn delete(
        &self,
        _: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteResponse>, Status> {
        Err(refusal::not_found("nothing of it is left"))
    }

    async fn get(
        &self,
        request: Request<v1::GetRequest>,
    ) -> Result<Response<v1::GetResponse>, Status> {
        let provider_id = request.into_inner().provider_id;
        let instance = v1::Instance { provider_id, ..v1::Instance::default() };
        Ok(Response::new(v1::GetResponse { instance: Some(instance) }))
    }

    async fn list(
        &self,
        _: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        Ok(Response::new(v1::ListResponse::default()))
    }

    async fn get_instance_types(
        &self,
        _: Request<v1::GetInstanceTypesRequest>,
    ) -> Result<Response<v1::GetInstanceTypesResponse>, Status> {
        Err(refusal::class_not_ready("ValidationSucceeded=False"))
    }

    async fn is_drifted(
        &self,
        _: Request<v1::IsDriftedRequest>,
    ) -> Result<Response<v1::IsDriftedResponse>, Status> {
        Ok(Response::new(v1::IsDriftedResponse::default()))
    }
}
