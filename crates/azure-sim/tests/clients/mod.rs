//! Clients that the tests of the endpoints share. The clients use no code of the simulator.
#![allow(dead_code, unused_imports, reason = "each test uses its part of this")]

mod program;

pub(crate) use program::Program;

use std::path::Path;
use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::policies::auth::BearerTokenAuthorizationPolicy;
use azure_core::http::{
    AsyncRawResponse, Body, ClientOptions, Context, HttpClient, Method, Pipeline, RawResponse,
    Request, RetryOptions, Transport,
};
use bringup_azure_sim::fault::FaultRule;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The path of a list that exists, and is empty, in every simulation.
pub(crate) const MACHINES: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Compute/virtualMachines?api-version=2024-11-01";

/// Parses a fault from JSON.
pub(crate) fn fault(text: &str) -> FaultRule {
    serde_json::from_str(&format!(
        r#"{{"on": {{"pathContains": "virtualMachines"}}, "fault": {text}}}"#
    ))
    .unwrap()
}

/// The options with which a program uses `azure_core` with `transport`, without retries.
pub(crate) fn options(transport: Arc<dyn HttpClient>) -> ClientOptions {
    ClientOptions {
        transport: Some(Transport::new(transport)),
        retry: RetryOptions::none(),
        ..ClientOptions::default()
    }
}

/// Sends a GET through `azure_core`'s own pipeline, with a token of `credential`.
pub(crate) async fn get(
    transport: Arc<dyn HttpClient>,
    credential: Arc<dyn TokenCredential>,
    address: &str,
) -> azure_core::Result<RawResponse> {
    let authorize =
        BearerTokenAuthorizationPolicy::new(credential, ["https://management.azure.com/.default"]);
    let pipeline = Pipeline::new(
        Some("doors"),
        Some("0"),
        options(transport),
        Vec::new(),
        vec![Arc::new(authorize)],
        None,
    );
    let mut request = Request::new(address.parse().unwrap(), Method::Get);
    pipeline.send(&Context::new(), &mut request, None).await
}

/// A credential for tests: it returns a fixed token.
#[derive(Debug)]
pub(crate) struct AnyToken;

#[async_trait::async_trait]
impl TokenCredential for AnyToken {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<azure_core::credentials::TokenRequestOptions<'_>>,
    ) -> azure_core::Result<azure_core::credentials::AccessToken> {
        let hour = azure_core::time::OffsetDateTime::now_utc() + std::time::Duration::from_hours(1);
        Ok(azure_core::credentials::AccessToken::new("anything", hour))
    }
}

/// Sends one request over a connection of its own.
pub(crate) async fn exchange<Stream>(
    stream: Stream,
    request: http::Request<Bytes>,
) -> hyper::Result<http::Response<Bytes>>
where
    Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
    Ok(http::Response::from_parts(head, body.collect().await?.to_bytes()))
}

/// Sends one request to a control endpoint.
pub(crate) async fn control(endpoint: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let host = endpoint.strip_prefix("http://").unwrap();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("host", host)
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    let response = exchange(TcpStream::connect(host).await.unwrap(), request).await.unwrap();
    let text = response.body();
    let json = serde_json::from_slice(text)
        .unwrap_or_else(|_| String::from_utf8(text.to_vec()).unwrap().into());
    (response.status().as_u16(), json)
}

/// An HTTPS client that trusts one certificate, as a transport for `azure_core`.
#[derive(Clone)]
pub(crate) struct HttpsClient(TlsConnector);

impl std::fmt::Debug for HttpsClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HttpsClient")
    }
}

impl HttpsClient {
    pub(crate) fn trusting(certificate: &Path) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
        Self::with(roots)
    }

    pub(crate) fn without_ca() -> Self {
        Self::with(rustls::RootCertStore::empty())
    }

    fn with(roots: rustls::RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(TlsConnector::from(Arc::new(config)))
    }

    pub(crate) async fn connect(&self, endpoint: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let host = endpoint.strip_prefix("https://").unwrap();
        let name = host.split(':').next().unwrap().to_owned();
        let stream = TcpStream::connect(host).await?;
        self.0.connect(ServerName::try_from(name).unwrap(), stream).await
    }

    /// Sends one request with a bearer token.
    pub(crate) async fn request(
        &self,
        endpoint: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> http::Response<Bytes> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", endpoint.strip_prefix("https://").unwrap())
            .header("authorization", "Bearer anything")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        exchange(self.connect(endpoint).await.unwrap(), request).await.unwrap()
    }
}

#[async_trait::async_trait]
impl HttpClient for HttpsClient {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let Body::Bytes(body) = request.body().clone() else { panic!("tests send bytes") };
        let address = request.url();
        let host = format!("{}:{}", address.host_str().unwrap(), address.port().unwrap());
        let mut translated = http::Request::builder()
            .method(request.method().as_str())
            .uri(request.path_and_query())
            .header("host", &host);
        for (name, value) in request.headers().iter() {
            translated = translated.header(name.as_str(), value.as_str());
        }
        let failed = |error: std::io::Error| {
            azure_core::Error::with_error(ErrorKind::Io, error, "cannot connect")
        };
        let stream = self.connect(&format!("https://{host}")).await.map_err(failed)?;
        let response = exchange(stream, translated.body(body).unwrap())
            .await
            .map_err(|error| azure_core::Error::with_error(ErrorKind::Io, error, "no answer"))?;
        let (head, body) = response.into_parts();
        let mut headers = Headers::new();
        for (name, value) in &head.headers {
            headers.insert(
                HeaderName::from(name.as_str().to_owned()),
                HeaderValue::from(value.to_str().unwrap().to_owned()),
            );
        }
        Ok(AsyncRawResponse::from_bytes(head.status.as_u16().into(), headers, body))
    }
}
