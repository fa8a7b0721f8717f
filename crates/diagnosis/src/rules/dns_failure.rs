//! A name does not resolve.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};
use crate::subject;

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::DnsFailure,
    title: "a name does not resolve",
    looks_like: "`Could not resolve host`, `no such host`, `Temporary failure in name resolution`.",
    misleads: "The download that needed the name ends with its own \"timeout\" code (31, 41, 205, 211).",
    remedy: "Check the DNS servers of the virtual network: do they answer, and do they forward public names?",
    signs: &[
        Sign::new(54, &["could not resolve host"]),
        Sign::new(54, &["curl: (6)"]),
        Sign::new(54, &["no such host"]).unless(&["proxy"]),
        Sign::new(54, &["temporary failure in name resolution"]),
        Sign::new(54, &["temporary failure in name resolut"]),
        Sign::new(54, &["name or service not known"]),
        Sign::new(54, &["unable to resolve host"]),
        Sign::new(54, &["temporary failure resolving"]),
        Sign::new(54, &["remote name could not be resolved"]),
        Sign::new(54, &["no servers could be reached"]),
        Sign::new(54, &["server misbehaving"]),
        Sign::new(54, &["lookup ", ":53: i/o timeout"]),
        Sign::new(54, &["lookup ", "i/o timeout"]).fair(),
        Sign::new(55, &["nxdomain"]).fair(),
        Sign::new(55, &["localdns", "failed"]).fair(),
        Sign::new(55, &["last exit status: 6)"]),
        Sign::new(55, &["getaddrinfo", "eai_again"]),
        Sign::new(55, &["getaddrinfo enotfound"]),
        Sign::new(55, &["name resolution", "failed"]).fair(),
        Sign::new(55, &["localdns", "could not be"]),
        Sign::new(55, &["servfail"]).fair(),
        Sign::new(55, &["name resolution failure"]),
        Sign::new(55, &["getaddrinfo failed"]),
        Sign::new(55, &["unknown host"]).fair(),
        Sign::new(55, &["could not be resolved"]).fair(),
        Sign::new(55, &["could not resolve '"]),
        Sign::new(55, &["dns lookup failed"]),
        Sign::new(55, &["resolving timed out"]),
    ],
    subject: Some(subject::host),
};

examples! {
    finds: "curl: (6) Could not resolve host: packages.example.com",
    leaves: "Server: 10.0.0.10",
}
