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

/// The option that names the server's certificate.
pub const CERTIFICATE_OPTION: &str = "flex-cert-file";
/// The option that names the key of that certificate.
pub const KEY_OPTION: &str = "flex-key-file";
/// The option that names the authority of the clients that may connect.
pub const AUTHORITY_OPTION: &str = "flex-client-ca-file";

/// The files of TLS, as PEM. They are read for each connection: a renewed certificate is used without a
/// restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, with the intermediate ones.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority of the clients that may connect.
    pub authority: PathBuf,
}

/// Why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the file of --{option}, {path}")]
    Read {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file does not hold what it must hold.
    #[error("the file of --{option}, {path}, does not hold {wanted} as PEM")]
    Content {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What it must hold.
        wanted: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// A certificate of the authority cannot be used.
    #[error("the authority of --{AUTHORITY_OPTION}, {path}, cannot be used")]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// Certificates of clients cannot be verified.
    #[error("certificates of clients cannot be verified by --{AUTHORITY_OPTION}, {path}")]
    Verifier {
        /// The file.
        path: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
    /// Certificate and key cannot be used together.
    #[error(
        "the certificate of --{CERTIFICATE_OPTION}, {certificate}, cannot be used with the key of --{KEY_OPTION}, {key}"
    )]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

impl TlsFiles {
    /// TLS 1.3 with what the files hold now, for clients that are allowed.
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
        // The provider is explicit: the process may have installed another as the default.
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
        // A session that is resumed would outlive the authority that accepted it.
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
