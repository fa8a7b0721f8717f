//! Verifies the certificates of clients.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, KeyUsage};

use super::client_name::{AllowedClients, names_in};

/// The extended key usage clientAuth, 1.3.6.1.5.5.7.3.2, as DER.
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Accepts a certificate that `inner` accepts, if the certificate is meant for clients and contains an
/// allowed name.
///
/// `inner` checks the chain and the time. It accepts a certificate without any extended key usage for every
/// use, and it checks no names.
#[derive(Debug)]
pub(super) struct AllowedClientVerifier {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
    pub(super) authorities: Arc<RootCertStore>,
    pub(super) allowed: AllowedClients,
}

impl AllowedClientVerifier {
    /// The client's certificate itself must have clientAuth. Intermediate authorities may lack extended key
    /// usages, as most do.
    fn check_usage(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let refused = || Error::InvalidCertificate(CertificateError::InvalidPurpose);
        let certificate = EndEntityCert::try_from(certificate).map_err(|_| refused())?;
        let algorithms = rustls::crypto::aws_lc_rs::default_provider();
        let algorithms = algorithms.signature_verification_algorithms.all;
        let usage = ClientUsage { is_leaf: Cell::new(true) };
        let roots = &self.authorities.roots;
        let path =
            certificate.verify_for_usage(algorithms, roots, intermediates, now, usage, None, None);
        path.map(drop).map_err(|_| refused())
    }
}

/// webpki calls this for the client's certificate first, then for the certificates that signed it.
struct ClientUsage {
    is_leaf: Cell<bool>,
}

impl ExtendedKeyUsageValidator for ClientUsage {
    fn validate(&self, usages: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let wanted = if self.is_leaf.replace(false) {
            KeyUsage::required(CLIENT_AUTH)
        } else {
            KeyUsage::required_if_present(CLIENT_AUTH)
        };
        wanted.validate(usages)
    }
}

impl ClientCertVerifier for AllowedClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, intermediates, now)?;
        self.check_usage(certificate, intermediates, now)?;
        if self.allowed.allow(&names_in(certificate)) {
            Ok(verified)
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
