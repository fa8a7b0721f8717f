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
    remedy: "On the node, run `resolvectl status`, `nslookup HOST` and `nslookup HOST 168.63.129.16`. If only the second answers, the DNS servers of the virtual network are at fault: `az network vnet show -g GROUP -n VNET --query dhcpOptions.dnsServers` lists them; they must answer on port 53 (UDP and TCP) and forward public names, for example to 168.63.129.16. If neither answers, check the name itself and a firewall on port 53. Portal: virtual network > DNS servers; running nodes take a change only after a reboot.",
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
