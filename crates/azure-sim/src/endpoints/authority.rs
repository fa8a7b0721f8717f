//! The certificate authority of one run. It signs one certificate; its key is then dropped.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::ServeError;

/// The subject alternative names of the certificate.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// The TLS configuration for a loopback address, and the CA certificate that clients have to trust,
/// as PEM.
///
/// The certificates are valid for longer than any simulated clock, because a program under test may
/// check them against a clock that has jumped.
pub(super) fn tls_config() -> Result<(Arc<ServerConfig>, String), ServeError> {
    let (authority, certificate, key) =
        sign().map_err(|source| ServeError::Certificates { source })?;
    // The provider is passed explicitly, because the process may have installed another one.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)
        })
        .map_err(|source| ServeError::Tls { source })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(config), authority))
}

fn sign() -> Result<(String, rcgen::Certificate, KeyPair), rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "bringup simulated Azure CA");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut leaf = CertificateParams::new(NAMES.map(str::to_owned))?;
    leaf.distinguished_name.push(DnType::CommonName, "bringup simulated Azure");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Python's strict verification requires it.
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &authority)?;
    Ok((authority.pem(), certificate, key))
}
