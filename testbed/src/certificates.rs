//! The control plane's own certificate authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::{Error, Result};

/// A certificate or a public key with its private key, as PEM.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) public: String,
    pub(crate) private: String,
}

/// Signs the certificates of the API server and of all its clients.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let name = "bringup-testbed";
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);

        let issuer = KeyPair::generate()
            .and_then(|key| CertifiedIssuer::self_signed(params, key))
            .map_err(failed(name))?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate and key, for the controller that signs requests.
    pub(crate) fn pair(&self) -> Pair {
        Pair { public: self.issuer.pem(), private: self.issuer.key().serialize_pem() }
    }

    /// Issues a certificate for a server with these names and addresses.
    pub(crate) fn issue_to_server(&self, name: &str, addresses: &[&str]) -> Result<Pair> {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let params = CertificateParams::new(addresses).map_err(failed(name))?;
        self.issue(params, name, None, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a certificate for a user with this `name` and `group`.
    ///
    /// Only one group, because rcgen writes each attribute of a subject once.
    pub(crate) fn issue_to_user(&self, name: &str, group: Option<&str>) -> Result<Pair> {
        let params = CertificateParams::default();
        self.issue(params, name, group, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        name: &str,
        group: Option<&str>,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Pair> {
        params.distinguished_name = subject(name, group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;

        let key = KeyPair::generate().map_err(failed(name))?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed(name))?;
        Ok(Pair { public: certificate.pem(), private: key.serialize_pem() })
    }
}

/// The key that signs service account tokens: the public half instead of a certificate.
pub(crate) fn service_account_key() -> Result<Pair> {
    let key = KeyPair::generate().map_err(failed("service accounts"))?;
    Ok(Pair { public: key.public_key_pem(), private: key.serialize_pem() })
}

/// A certificate request (PKCS #10, as PEM) like the request of a kubelet for a node.
///
/// The key is discarded: a stand-in never uses the certificate.
pub(crate) fn node_request(node: &str) -> Result<String> {
    let name = format!("system:node:{node}");
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(&name, Some("system:nodes"));
    KeyPair::generate()
        .and_then(|key| params.serialize_request(&key))
        .and_then(|request| request.pem())
        .map_err(failed(&name))
}

fn subject(name: &str, group: Option<&str>) -> rcgen::DistinguishedName {
    let mut subject = rcgen::DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

fn failed(subject: &str) -> impl FnOnce(rcgen::Error) -> Error {
    let subject = subject.to_owned();
    move |source| Error::Certificate { subject, source }
}
