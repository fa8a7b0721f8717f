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
            tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
                let told = format!("not answered within {} s", limit.as_secs());
                Ok(Status::deadline_exceeded(told).into_http())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tonic::Code;
    use tower::ServiceExt as _;

    use super::*;

    async fn call(within: Duration) -> Code {
        let answering = tower::service_fn(move |_| async move {
            tokio::time::sleep(within).await;
            Ok::<_, Infallible>(Status::not_found("answered").into_http())
        });
        let limited = Limited { inner: answering, limit: Duration::from_secs(10) };
        let answer = limited.oneshot(Request::new(Body::default())).await.unwrap();
        Status::from_header_map(answer.headers()).unwrap().code()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_too_long_is_ended() {
        assert_eq!(call(Duration::from_millis(9_999)).await, Code::NotFound);
        assert_eq!(call(Duration::from_millis(10_001)).await, Code::DeadlineExceeded);
    }
}
