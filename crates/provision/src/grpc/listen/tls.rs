use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};

use super::client_name::AllowedClients;
use super::verifier::AllowedClientVerifier;

/// The option for the server's certificate.
pub const CERTIFICATE_OPTION: &str = "flex-cert-file";
/// The option for the key of that certificate.
pub const KEY_OPTION: &str = "flex-key-file";
/// The option for the certificate authority of the clients.
pub const AUTHORITY_OPTION: &str = "flex-client-ca-file";

/// The TLS files, as PEM. They are read for each connection, so a renewed certificate is used without a
/// restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by intermediate ones.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The certificate authority of the clients.
    pub authority: PathBuf,
}

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the file of --{option}, {path}")]
    Read {
        /// The option with the file's path.
        option: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file does not contain the expected content.
    #[error("the file of --{option}, {path}, does not hold {wanted} as PEM")]
    Content {
        /// The option with the file's path.
        option: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The expected content.
        wanted: &'static str,
        /// The error of the parser.
        source: pem::Error,
    },
    /// A certificate of the authority cannot be used.
    #[error("the authority of --{AUTHORITY_OPTION}, {path}, cannot be used")]
    Authority {
        /// The file's path.
        path: PathBuf,
        /// The error of the TLS library.
        source: rustls::Error,
    },
    /// Certificates of clients cannot be verified.
    #[error("certificates of clients cannot be verified by --{AUTHORITY_OPTION}, {path}")]
    Verifier {
        /// The file's path.
        path: PathBuf,
        /// The error of the TLS library.
        source: VerifierBuilderError,
    },
    /// Certificate and key cannot be used together.
    #[error(
        "the certificate of --{CERTIFICATE_OPTION}, {certificate}, cannot be used with the key of --{KEY_OPTION}, {key}"
    )]
    Pair {
        /// The path of the certificate's file.
        certificate: PathBuf,
        /// The path of the key's file.
        key: PathBuf,
        /// The error of the TLS library.
        source: rustls::Error,
    },
}

impl TlsFiles {
    /// The TLS 1.3 configuration from the present content of the files, for these clients.
    pub(super) fn load(&self, allowed: &AllowedClients) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(CERTIFICATE_OPTION, &self.certificate)?;
        let key = read(KEY_OPTION, &self.key)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| TlsError::Content {
            option: KEY_OPTION,
            path: self.key.clone(),
            wanted: "a private key",
            source,
        })?;
        let mut authorities = RootCertStore::empty();
        for certificate in certificates(AUTHORITY_OPTION, &self.authority)? {
            authorities
                .add(certificate)
                .map_err(|source| TlsError::Authority { path: self.authority.clone(), source })?;
        }
        // Explicit, because the process may have installed another default provider.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let authorities = Arc::new(authorities);
        let inner =
            WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider.clone())
                .build()
                .map_err(|source| TlsError::Verifier { path: self.authority.clone(), source })?;
        let allowed = allowed.clone();
        let verifier = Arc::new(AllowedClientVerifier { inner, authorities, allowed });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| {
                builder.with_client_cert_verifier(verifier).with_single_cert(chain, key)
            })
            .map_err(|source| TlsError::Pair {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                source,
            })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // No session tickets: a resumed session would outlive the certificate authority that accepted it.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { option, path: path.to_owned(), source })
}

fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = read(option, path)?;
    let wrong = |source| TlsError::Content {
        option,
        path: path.to_owned(),
        wanted: "a certificate",
        source,
    };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match all {
        Ok(all) if all.is_empty() => Err(wrong(pem::Error::NoItemsFound)),
        Ok(all) => Ok(all),
        Err(source) => Err(wrong(source)),
    }
}
