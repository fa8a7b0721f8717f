use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::Service;

/// A service whose every call ends within a time.
#[derive(Debug, Clone)]
pub(super) struct Limited<S> {
    pub(super) inner: S,
    pub(super) limit: Duration,
}

impl<S> Service<Request<Body>> for Limited<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, call) = (self.limit, self.inner.call(request));
        Box::pin(async move {
            match tokio::time::timeout(limit, call).await {
                Ok(answer) => answer,
                Err(_) => {
                    let told = format!("not answered within {} s", limit.as_secs());
                    Ok(Status::deadline_exceeded(told).into_http())
                }
            }
        })
    }
}
