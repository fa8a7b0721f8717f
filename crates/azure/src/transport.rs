//! The HTTPS transport: `reqwest` with rustls and aws-lc-rs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request};
use azure_core::{Error, Result};
use futures::stream;

/// The timeout of a response. An instance view arrives within a second or two, so after this time a retry is
/// better.
const WHOLE_ANSWER: Duration = Duration::from_mins(1);
const CONNECTED: Duration = Duration::from_secs(10);

/// Why the transport could not be created.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The CA file does not exist, or cannot be read.
    #[error("cannot read the CA file {}", path.display())]
    ReadCa {
        /// The path of the CA file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The CA file contains no certificate.
    #[error(
        "the CA file {} holds no PEM certificate: expected -----BEGIN CERTIFICATE-----",
        path.display()
    )]
    NoCertificate {
        /// The path of the CA file.
        path: PathBuf,
    },
    /// A certificate in the CA file cannot be parsed.
    #[error("the CA file {} holds a certificate that cannot be used", path.display())]
    BadCertificate {
        /// The path of the CA file.
        path: PathBuf,
        /// The problem with the certificate.
        source: reqwest::Error,
    },
    /// TLS could not be configured, mostly because no trusted certificates were found.
    #[error("cannot set up TLS")]
    Tls {
        /// The error of the library.
        source: reqwest::Error,
    },
}

/// Creates the transport. It trusts the certificates in the CA file in addition to those of the system.
pub fn https(ca_file: Option<&Path>) -> std::result::Result<Arc<dyn HttpClient>, TransportError> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECTED)
        .timeout(WHOLE_ANSWER)
        // Following a redirect would send the token to another host.
        .redirect(reqwest::redirect::Policy::none());
    if let Some(path) = ca_file {
        builder = builder.tls_certs_merge(certificates(path)?);
    }
    let client = builder.build().map_err(|source| TransportError::Tls { source })?;
    Ok(Arc::new(Line(client)))
}

fn certificates(path: &Path) -> std::result::Result<Vec<reqwest::Certificate>, TransportError> {
    let path = || path.to_owned();
    let pem =
        std::fs::read(path()).map_err(|source| TransportError::ReadCa { path: path(), source })?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem)
        .map_err(|source| TransportError::BadCertificate { path: path(), source })?;
    if certificates.is_empty() {
        return Err(TransportError::NoCertificate { path: path() });
    }
    Ok(certificates)
}

/// Replaces `azure_core`'s own client on `reqwest`, whose errors contain the whole URL, and so the signature
/// of a blob.
#[derive(Debug)]
struct Line(reqwest::Client);

#[async_trait]
impl HttpClient for Line {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        let method =
            reqwest::Method::from_bytes(request.method().as_str().as_bytes()).map_err(|error| {
                Error::with_error(ErrorKind::Other, error, "there is no such method")
            })?;
        let mut asked = self.0.request(method, request.url().clone());
        for (name, value) in request.headers().iter() {
            asked = asked.header(name.as_str(), value.as_str());
        }
        asked = match request.body().clone() {
            Body::Bytes(bytes) => asked.body(bytes),
            Body::SeekableStream(_) => {
                return Err(Error::with_message(ErrorKind::Other, "a request's body is bytes"));
            }
        };
        let response = asked.send().await.map_err(|error| {
            let kind = if error.is_connect() { ErrorKind::Connection } else { ErrorKind::Io };
            Error::with_error(kind, error.without_url(), "the request was not answered")
        })?;
        let status = response.status().as_u16();
        let mut headers = Headers::new();
        for (name, value) in response.headers() {
            // The client parses no header whose value is not text.
            if let Ok(value) = value.to_str() {
                headers.insert(
                    HeaderName::from(name.as_str().to_owned()),
                    HeaderValue::from(value.to_owned()),
                );
            }
        }
        let body = stream::try_unfold(response, |mut response| async move {
            let chunk = response.chunk().await.map_err(|error| {
                Error::with_error(ErrorKind::Io, error.without_url(), "the answer broke off")
            })?;
            Ok(chunk.map(|chunk| (chunk, response)))
        });
        Ok(AsyncRawResponse::new(status.into(), headers, Box::pin(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ca_file_that_is_no_use_is_refused_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        assert!(matches!(https(Some(&path)), Err(TransportError::ReadCa { .. })));

        std::fs::write(&path, "no certificate").unwrap();
        let refused = https(Some(&path)).unwrap_err().to_string();
        assert!(refused.contains("holds no PEM certificate"), "{refused}");

        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        let refused = https(Some(&path)).unwrap_err();
        assert!(
            matches!(refused, TransportError::BadCertificate { .. } | TransportError::Tls { .. }),
            "{refused}"
        );
    }
}
