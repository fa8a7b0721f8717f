//! Certificate authorities for tests.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use bringup_provision::grpc::listen::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

/// The name of the listener in its certificate.
pub(crate) const NAME: &str = "bringup";
/// The client of the provider service.
pub(crate) const KARPENTER: &str = "karpenter.karpenter.svc";
/// The client of the plugin.
pub(crate) const AKS_FLEX: &str = "spiffe://test/ns/aks-flex/sa/aks-flex";

/// A certificate authority, with a folder for the files of a listener.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// The certificate that a client presents.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    Nothing,
    /// A valid certificate with Karpenter's name.
    Valid,
    /// A certificate for clients with these names.
    Named(&'static [&'static str]),
    /// A certificate with Karpenter's name and these extended key usages.
    ForUsages(&'static [ExtendedKeyUsagePurpose]),
    Expired,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer, folder: TempDir::new()? })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.file("server.crt"),
            key: self.file("server.key"),
            authority: self.file("ca.crt"),
        }
    }

    /// Writes a new certificate for a listener into the folder of `of`, together with this authority.
    pub(crate) fn write_into(&self, of: &Authority) -> Result<TlsFiles> {
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        std::fs::write(of.file("server.crt"), certificate.pem())?;
        std::fs::write(of.file("server.key"), key.serialize_pem())?;
        std::fs::write(of.file("ca.crt"), self.issuer.pem())?;
        Ok(of.files())
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A client that trusts `trusted`.
    pub(crate) fn client(&self, shown: &Shown, trusted: &Authority) -> Result<Arc<ClientConfig>> {
        self.client_of(shown, trusted, &[&TLS13])
    }

    /// A client that supports only TLS 1.2.
    pub(crate) fn old_client(&self) -> Result<Arc<ClientConfig>> {
        self.client_of(&Shown::Valid, self, &[&TLS12])
    }

    fn client_of(
        &self,
        shown: &Shown,
        trusted: &Authority,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.issuer.der().clone())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_root_certificates(roots);
        let names: &[&str] = match shown {
            Shown::Named(names) => names,
            _ => &[KARPENTER],
        };
        let mut params = CertificateParams::default();
        params.subject_alt_names = names.iter().map(|name| san(name)).collect::<Result<_>>()?;
        params.extended_key_usages = match shown {
            Shown::ForUsages(usages) => usages.to_vec(),
            _ => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        if matches!(shown, Shown::Expired) {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = match shown {
            Shown::Nothing => builder.with_no_client_auth(),
            _ => builder.with_client_auth_cert(vec![certificate.der().clone()], key)?,
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

/// A name in the format of a certificate.
fn san(name: &str) -> Result<SanType> {
    Ok(match name.split_once(':') {
        Some(("mail", address)) => SanType::Rfc822Name(address.try_into()?),
        Some(_) => SanType::URI(name.try_into()?),
        None => SanType::DnsName(name.try_into()?),
    })
}
