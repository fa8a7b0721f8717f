//! One request and its response.

use std::time::Duration;

use azure_core::http::headers::{HeaderName, Headers};
use azure_core::http::response::AsyncResponseBody;
use azure_core::http::{Context, Method, PipelineStreamOptions, Request, Url};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::Arm;
use crate::budget::{Call, Signals};
use crate::error::{ArmError, ArmFailure, Refusal};
use crate::reads::Turn;

/// The most bytes of a response.
const LARGEST: usize = 16 * 1024 * 1024;

/// The most bytes of a text other than JSON that an error quotes.
const QUOTED: usize = 300;

const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request. No `Debug`: its URL may contain a signature, and its body a secret.
pub(super) struct Ask {
    /// The action for error messages, such as "read virtual machine a".
    pub(super) attempted: String,
    pub(super) call: Call,
    pub(super) turn: Turn,
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Bytes>,
}

pub(super) struct Answer {
    pub(super) attempted: String,
    pub(super) status: u16,
    pub(super) headers: Headers,
    body: Bytes,
    pub(super) retry_after: Option<Duration>,
}

impl Arm {
    /// The URL of a resource, with a query.
    pub(super) fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.endpoint.management().clone();
        url.set_path(path);
        let query: Vec<String> = query
            .iter()
            .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, QUERY)))
            .collect();
        url.set_query(Some(&query.join("&")));
        url
    }

    /// Waits for its turn, sends the request once, and applies the limits in the response to the budget.
    pub(super) async fn exchange(&self, ask: Ask) -> Result<Answer, ArmError> {
        self.exchange_if(ask, None).await
    }

    /// Sends a request with a header that makes it conditional.
    pub(super) async fn exchange_if(
        &self,
        ask: Ask,
        condition: Option<(&'static str, String)>,
    ) -> Result<Answer, ArmError> {
        let Ask { attempted, call, turn, method, url, body } = ask;
        let door = call.door;
        let pass = self.reads.pass(call, turn).await;
        let mut request = Request::new(url, method);
        if let Some(body) = body {
            request.insert_header("content-type", "application/json");
            request.set_body(body);
        }
        if let Some((name, value)) = condition {
            request.insert_header(name, value);
        }
        let options = PipelineStreamOptions { skip_checks: true, ..Default::default() };
        let response =
            match self.pipeline.stream(&Context::new(), &mut request, Some(options)).await {
                Ok(response) => response,
                Err(error) => {
                    pass.unanswered();
                    return Err(ArmError::unanswered(attempted, error));
                }
            };
        let (status, headers, body) = response.deconstruct();
        let status = u16::from(status);
        let body = collect(body).await;
        let success = (200..300).contains(&status);
        let failure = body
            .as_ref()
            .ok()
            .filter(|_| !success)
            .map(|body| body.as_deref().map_or_else(ArmFailure::default, failure));
        let signals = Signals::read(status, &headers, failure.as_ref(), door, self.clock.now());
        pass.answered(status, &signals);
        let body = match body {
            Ok(Some(body)) => body,
            Ok(None) => {
                return Err(ArmError::malformed(attempted, status, "too large", None));
            }
            Err(error) => return Err(ArmError::unanswered(attempted, error)),
        };
        if success {
            return Ok(Answer {
                attempted,
                status,
                headers,
                body,
                retry_after: signals.retry_after,
            });
        }
        let policy = match signals.throttled {
            Some(crate::budget::Throttling::Policy(policy)) => Some(policy),
            _ => None,
        };
        let refusal = Refusal {
            status,
            failure: failure.unwrap_or_default(),
            policy,
            retry_after: signals.retry_after,
            request_id: headers.get_optional_string(&HeaderName::from_static("x-ms-request-id")),
        };
        Err(ArmError::refused(attempted, refusal))
    }
}

impl Answer {
    /// The body, which must be a JSON object.
    pub(super) fn object(self) -> Result<Value, ArmError> {
        let (attempted, status) = (self.attempted.clone(), self.status);
        match self.json()? {
            object @ Value::Object(_) => Ok(object),
            _ => Err(ArmError::malformed(attempted, status, "not a JSON object", None)),
        }
    }

    /// The body, which must be JSON.
    pub(super) fn json(self) -> Result<Value, ArmError> {
        let Self { attempted, status, body, .. } = self;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(ArmError::malformed(attempted, status, "empty", None));
        }
        match serde_json::from_slice(&body) {
            Ok(value) => Ok(value),
            Err(error) => {
                let what = if is_page(&body) {
                    "a web page: is there a proxy in between?"
                } else if error.is_eof() {
                    "JSON that ends too early"
                } else {
                    "not JSON"
                };
                Err(ArmError::malformed(attempted, status, what, Some(Box::new(error))))
            }
        }
    }

    /// The body, if it is JSON; null if it is empty.
    pub(super) fn object_or_null(self) -> Result<Value, ArmError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        self.object()
    }

    pub(super) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get_optional_str(&HeaderName::from_static(name))
    }
}

/// The whole body; none if it is too large.
async fn collect(mut body: AsyncResponseBody) -> azure_core::Result<Option<Bytes>> {
    let mut collected = BytesMut::new();
    while let Some(chunk) = body.next().await {
        collected.extend_from_slice(&chunk?);
        if collected.len() > LARGEST {
            return Ok(None);
        }
    }
    Ok(Some(collected.freeze()))
}

fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// The failure in the body of a refusal: JSON, or a short text from a proxy.
fn failure(body: &[u8]) -> ArmFailure {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => ArmFailure::of_body(&body),
        Err(_) if is_page(body) || body.is_empty() => ArmFailure::default(),
        Err(_) => {
            let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED)]);
            ArmFailure { message: Some(text.trim().to_owned()), ..ArmFailure::default() }
        }
    }
}
