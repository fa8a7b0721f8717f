//! Which clients may use which service.

use std::collections::BTreeSet;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::Either;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tower::Service;
use tracing::warn;

use super::client_name::{AllowedClients, ClientName};

/// The client of a connection.
#[derive(Debug, Clone)]
pub(super) enum Peer {
    /// A process of the same user, on a unix socket.
    SameUser,
    /// A client with a certificate that contains these names.
    Named(Arc<BTreeSet<ClientName>>),
}

/// A service that only some clients may use. On a unix socket, the mode of its file decides.
#[derive(Debug, Clone)]
pub struct Restricted<S> {
    inner: S,
    allowed: Arc<AllowedClients>,
}

impl<S> Restricted<S> {
    /// Restricts a service to these clients.
    pub fn new(inner: S, allowed: AllowedClients) -> Self {
        Self { inner, allowed: Arc::new(allowed) }
    }
}

impl<S: NamedService> NamedService for Restricted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Restricted<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + NamedService,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let names = match request.extensions().get::<Peer>() {
            Some(Peer::SameUser) => return Either::Left(self.inner.call(request)),
            Some(Peer::Named(names)) => names.clone(),
            None => Arc::default(),
        };
        if self.allowed.allow(&names) {
            return Either::Left(self.inner.call(request));
        }
        warn!(service = S::NAME, client = ?names, "call refused: the client is not on the list");
        let status = Status::permission_denied(format!(
            "the names of the client's certificate are not on the list of {}",
            S::NAME
        ));
        Either::Right(ready(Ok(status.into_http())))
    }
}
