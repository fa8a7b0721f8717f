//! A certificate is not trusted, or the TLS handshake is broken off.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::TlsTrustFailure,
    title: "a certificate is not trusted, or the TLS handshake is broken off",
    looks_like: "`x509: certificate signed by unknown authority`, `curl: (60)`, `curl: (35)`.",
    misleads: "Downloads end with \"timeout\" codes.",
    remedy: "On the node, `curl -vk https://HOST 2>&1 | grep -iE \"issuer|expire\"` names who signed; your own company means TLS inspection on the way. Exempt HOST there (the firewall's owner can), or add that CA: `az aks update -g GROUP -n CLUSTER --custom-ca-trust-certificates FILE`, for a proxy `trustedCa` in its configuration, elsewhere the image with `update-ca-certificates`. A public issuer: let the server send its whole chain. curl (35) without a certificate: a firewall cuts the handshake.",
    signs: &[
        Sign::new(61, &["x509: certificate signed by unknown authority"]),
        Sign::new(61, &["curl: (60)"]),
        Sign::new(61, &["ssl certificate problem"]),
        Sign::new(61, &["x509: certificate"]).unless(&["expired", "not yet valid"]),
        Sign::new(61, &["unable to get local issuer certificate"]),
        Sign::new(61, &["self-signed certificate"]),
        Sign::new(61, &["self signed certificate"]),
        Sign::new(61, &["certificate verify failed"]),
        Sign::new(62, &["curl: (35)"]).fair(),
        Sign::new(62, &["last exit status: 35)"]).fair(),
        Sign::new(62, &["'[' 35 -ne 0 ']'"]).fair(),
        Sign::new(62, &["blocking ssl communication"]).fair(),
        Sign::new(62, &["tls: handshake failure"]).fair(),
        Sign::new(62, &["ssl_error_syscall"]).fair(),
        Sign::new(63, &["tls handshake", "eof"]).fair(),
        Sign::new(62, &["could not establish trust relationship"]),
        Sign::new(62, &["could not create ssl/tls secure channel"]).fair(),
        Sign::new(62, &["openssl ssl_connect"]).fair(),
        Sign::new(62, &["remote error: tls"]).fair(),
        Sign::new(62, &["tls: failed to verify certificate"]),
        Sign::new(62, &["sslv3 alert"]).fair(),
        Sign::new(62, &["ssl routines"]).fair(),
        Sign::new(62, &["unknown ca"]).fair(),
        Sign::new(63, &["schannel", "untrusted"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    leaves: "* TLSv1.3 (OUT), TLS handshake, Client hello (1):",
}
