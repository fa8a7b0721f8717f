//! One call and its reply, as handlers use them.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// A parsed request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a Method,
    /// Path and query as sent.
    pub(crate) path_and_query: &'a str,
    /// Decoded path.
    pub(crate) path: String,
    query: Vec<(String, String)>,
    /// `https://` and the host of the request: the base of absolute URLs in answers.
    pub(crate) base: String,
    pub(crate) body: &'a Bytes,
    /// The `Range` header.
    pub(crate) range: Option<&'a str>,
    /// The `If-None-Match` header.
    pub(crate) unless: Option<&'a str>,
    /// The `If-Match` header.
    pub(crate) only_if: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(request: &'a Request<Bytes>) -> Self {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST)
            .or_else(|| request.uri().authority().map(http::uri::Authority::as_str))
            .unwrap_or("management.azure.com");
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        let query = request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(key), decode(value))
            })
            .collect();
        Self {
            method: request.method(),
            path_and_query: request
                .uri()
                .path_and_query()
                .map_or("/", http::uri::PathAndQuery::as_str),
            path: percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned(),
            query,
            base: format!("https://{host}"),
            body: request.body(),
            range: text(header::RANGE),
            unless: text(header::IF_NONE_MATCH),
            only_if: text(header::IF_MATCH),
        }
    }

    /// A query parameter. ARM ignores the case of its name.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether `$expand` contains `what`.
    pub(crate) fn expands(&self, what: &str) -> bool {
        self.query("$expand")
            .is_some_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case(what)))
    }

    /// Returns 412 when `If-Match` or `If-None-Match` does not hold for the resource.
    pub(crate) fn check_conditions(&self, etag: Option<&str>) -> Result<(), ArmError> {
        let is_new = self.unless != Some("*") || etag.is_none();
        let is_same = self.only_if.is_none_or(|wanted| wanted == "*" || etag == Some(wanted));
        if is_new && is_same {
            return Ok(());
        }
        let message = "The condition specified using HTTP conditional header(s) is not met.";
        Err(ArmError::new(412, "PreconditionFailed", message))
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, ArmError> {
        serde_json::from_slice(self.body).map_err(|error| {
            ArmError::new(
                400,
                "InvalidRequestContent",
                format!(
                    "The request content was invalid and could not be deserialized: '{error}'."
                ),
            )
        })
    }
}

/// The answer of a handler.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Empty,
    Json(Value),
    Bytes(&'static str, Vec<u8>),
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Body::Json(body) }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Empty }
    }

    /// A page of a list.
    pub(crate) fn list(items: Vec<Value>, next: Option<String>) -> Self {
        let mut body = json!({});
        body["value"] = items.into();
        if let Some(next) = next {
            body["nextLink"] = next.into();
        }
        Self::json(200, body)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let (kind, bytes) = match self.body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(value) => (
                Some("application/json; charset=utf-8"),
                Bytes::from(serde_json::to_vec(&value).unwrap_or_default()),
            ),
            Body::Bytes(kind, bytes) => (Some(kind), Bytes::from(bytes)),
        };
        let mut response = Response::builder().status(self.status);
        if let Some(kind) = kind {
            response = response.header(header::CONTENT_TYPE, kind);
        }
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(bytes).expect("a reply's headers are made here and are valid")
    }
}

/// An error in the format of ARM.
#[derive(Debug, Clone)]
pub(crate) struct ArmError {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) target: Option<String>,
    /// The error comes from the ARM front door, not from the resource provider.
    pub(crate) gateway: bool,
}

impl ArmError {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            target: None,
            gateway: false,
        }
    }

    pub(crate) fn target(mut self, target: &str) -> Self {
        self.target = Some(target.to_owned());
        self
    }

    pub(crate) fn at_gateway(mut self) -> Self {
        self.gateway = true;
        self
    }

    /// `{code, message, target?}`, the value of `error` in a body or in an operation.
    pub(crate) fn body(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(target) = &self.target {
            error["target"] = target.as_str().into();
        }
        error
    }

    pub(crate) fn into_reply(self) -> Reply {
        let reply = Reply::json(self.status, json!({ "error": self.body() }));
        if self.gateway { reply.with("x-ms-failure-cause", "gateway") } else { reply }
    }
}

/// A timestamp in the format of ARM, with seven fractional digits.
pub(crate) fn arm_time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%7f+00:00").to_string()
}
