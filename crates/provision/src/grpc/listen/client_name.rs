//! Names of clients: the subject alternative names of their certificates.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use rustls::pki_types::{CertificateDer, DnsName};
use webpki::EndEntityCert;

/// A subject alternative name: a DNS name, or a URI such as a SPIFFE ID. Names are compared as a whole, so a
/// wildcard matches nothing, neither in the list nor in a certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientName {
    /// A DNS name, in lower case.
    Dns(String),
    /// A URI, verbatim.
    Uri(String),
}

/// A text that is not a client name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the name of a client: {what}")]
pub struct ClientNameError {
    text: String,
    what: &'static str,
}

impl FromStr for ClientName {
    type Err = ClientNameError;

    fn from_str(text: &str) -> Result<Self, ClientNameError> {
        let wrong = |what| ClientNameError { text: text.chars().take(300).collect(), what };
        if text.contains('*') {
            return Err(wrong("wildcards are not supported; write each name whole"));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            let scheme_is_valid = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            let rest_is_valid =
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic());
            return if scheme_is_valid && rest_is_valid {
                Ok(Self::Uri(text.to_owned()))
            } else {
                Err(wrong("a URI has a scheme and no spaces, such as spiffe://DOMAIN/PATH"))
            };
        }
        match DnsName::try_from(text) {
            Ok(_) => Ok(Self::Dns(text.to_ascii_lowercase())),
            Err(_) => Err(wrong("expected a DNS name such as karpenter.example, or a URI")),
        }
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) | Self::Uri(name) => out.write_str(name),
        }
    }
}

/// The clients that may use a service over TLS. An empty list allows no client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedClients(BTreeSet<ClientName>);

impl AllowedClients {
    /// Whether no client is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a client with these names is allowed: the list must contain one of its names.
    pub(super) fn allow(&self, names: &BTreeSet<ClientName>) -> bool {
        !self.0.is_disjoint(names)
    }

    /// The clients of both lists.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }
}

impl FromIterator<ClientName> for AllowedClients {
    fn from_iter<T: IntoIterator<Item = ClientName>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

/// The DNS and URI names of a certificate, without names that have a wildcard.
pub(super) fn names_in(certificate: &CertificateDer<'_>) -> BTreeSet<ClientName> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return BTreeSet::new() };
    let dns = certificate.valid_dns_names().filter(|name| !name.contains('*'));
    let dns = dns.map(|name| ClientName::Dns(name.to_ascii_lowercase()));
    let uris = certificate.valid_uri_names().map(|uri| ClientName::Uri(uri.to_owned()));
    dns.chain(uris).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_by_a_dns_name_or_a_uri() {
        for (text, name) in [
            ("Karpenter.Example", ClientName::Dns("karpenter.example".to_owned())),
            ("karpenter", ClientName::Dns("karpenter".to_owned())),
            ("spiffe://prod/ns/a/sa/B", ClientName::Uri("spiffe://prod/ns/a/sa/B".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(name));
        }
        for text in [
            "",
            "*",
            "*.example",
            "spiffe://",
            "://x",
            "spiffe://prod/*",
            "two words",
            "a b://c",
            "-x",
        ] {
            assert!(text.parse::<ClientName>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_list_allows_no_client() {
        let names = BTreeSet::from(["karpenter".parse().unwrap()]);
        assert!(!AllowedClients::default().allow(&names));
        let list: AllowedClients = ["karpenter".parse().unwrap()].into_iter().collect();
        assert!(list.allow(&names));
        assert!(!list.allow(&BTreeSet::new()));
        assert!(!list.allow(&BTreeSet::from([ClientName::Uri("karpenter".to_owned())])));
    }
}
