//! A transport for `azure_core`, for programs that link the simulator.

use std::io;

use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request, Url};
use azure_core::{Error, Result};
use bytes::Bytes;
use futures::AsyncReadExt as _;
use futures::stream;

use super::deliver;
use crate::azure::Delivery;
use crate::simulator::Simulator;

/// Sends every request to the simulator, whatever its host: ARM, Entra, the managed identity endpoint or blob
/// storage.
///
/// # Guarantees
/// Network failures look as they do over a network: a dropped connection is an error of kind
/// [`ErrorKind::Io`], a cut response is an error while the body is read, and a slow answer arrives when the
/// simulated clock has reached its time.
#[derive(Debug, Clone)]
pub struct InProcess {
    simulator: Simulator,
}

impl InProcess {
    /// A transport whose requests `simulator` answers.
    pub fn new(simulator: Simulator) -> Self {
        Self { simulator }
    }
}

#[async_trait::async_trait]
impl HttpClient for InProcess {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        let request = translate(request).await?;
        match deliver(&self.simulator, &request).await {
            Delivery::Response(response) => {
                let (head, body) = response.into_parts();
                Ok(AsyncRawResponse::from_bytes(
                    head.status.as_u16().into(),
                    headers(&head.headers),
                    body,
                ))
            }
            Delivery::Cut(response, count) => {
                let (head, body) = response.into_parts();
                let part = body.slice(..count.min(body.len()));
                let frames = [Ok(part), Err(reset("the connection broke inside the body"))];
                Ok(AsyncRawResponse::new(
                    head.status.as_u16().into(),
                    headers(&head.headers),
                    Box::pin(stream::iter(frames)),
                ))
            }
            Delivery::Dropped => Err(reset("the connection broke before an answer came")),
        }
    }
}

/// The request as the state machine expects it, with the `Host` header that a network client would
/// send.
async fn translate(request: &Request) -> Result<http::Request<Bytes>> {
    let body = match request.body().clone() {
        Body::Bytes(bytes) => bytes,
        Body::SeekableStream(mut stream) => {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.map_err(|error| {
                Error::with_error(ErrorKind::Io, error, "cannot read the request's body")
            })?;
            bytes.into()
        }
    };
    let mut translated = http::Request::builder()
        .method(request.method().as_str())
        .uri(request.path_and_query())
        .header(http::header::HOST, host(request.url()));
    for (name, value) in request.headers().iter() {
        translated = translated.header(name.as_str(), value.as_str());
    }
    translated.body(body).map_err(|error| {
        Error::with_error(ErrorKind::DataConversion, error, "the request cannot be sent over HTTP")
    })
}

fn host(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn headers(map: &http::HeaderMap) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in map {
        if let Ok(value) = value.to_str() {
            headers.insert(
                HeaderName::from(name.as_str().to_owned()),
                HeaderValue::from(value.to_owned()),
            );
        }
    }
    headers
}

fn reset(what: &'static str) -> Error {
    Error::with_error(ErrorKind::Io, io::Error::from(io::ErrorKind::ConnectionReset), what)
}
