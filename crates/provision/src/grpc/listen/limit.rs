use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout_at;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tower::Service;

/// A service whose calls all end within a limit, or earlier if the client's own timeout is shorter.
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
        let limit = patience(request.headers()).map_or(self.limit, |wait| wait.min(self.limit));
        // Counted from now. Without this deadline, the server would report a client's timeout as a cancelled
        // call.
        let now = tokio::time::Instant::now();
        let until = now.checked_add(limit).unwrap_or(now);
        let call = self.inner.call(request);
        Box::pin(async move {
            timeout_at(until, call).await.unwrap_or_else(|_| {
                let message = format!("not answered within {} ms", limit.as_millis());
                Ok(Status::deadline_exceeded(message).into_http())
            })
        })
    }
}

/// The client's timeout: at most eight digits and a letter.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tonic::Code;
    use tower::ServiceExt as _;

    use super::*;

    /// The result of a call that takes this many milliseconds, for a client with this timeout.
    async fn call(lasts: u64, waits: &str) -> Code {
        let answering = tower::service_fn(move |_| async move {
            tokio::time::sleep(Duration::from_millis(lasts)).await;
            Ok::<_, Infallible>(Status::not_found("answered").into_http())
        });
        let limited = Limited { inner: answering, limit: Duration::from_secs(10) };
        let mut request = Request::new(Body::default());
        request.headers_mut().insert("grpc-timeout", waits.parse().unwrap());
        let answer = limited.oneshot(request).await.unwrap();
        Status::from_header_map(answer.headers()).unwrap().code()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_too_long_is_ended() {
        for waits in ["1H", "1M", "60S", "", "S", "1", "1x", "-1S", "999999999m"] {
            assert_eq!(call(9_999, waits).await, Code::NotFound, "{waits}");
            assert_eq!(call(10_001, waits).await, Code::DeadlineExceeded, "{waits}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_less_is_told_sooner() {
        for waits in ["2S", "2000m", "2000000u"] {
            assert_eq!(call(1_999, waits).await, Code::NotFound, "{waits}");
            assert_eq!(call(2_001, waits).await, Code::DeadlineExceeded, "{waits}");
        }
        assert_eq!(call(1, "0n").await, Code::DeadlineExceeded);
    }
}
