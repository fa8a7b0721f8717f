//! Outbound connections are dropped or refused.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};
use crate::subject;

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::EgressBlocked,
    title: "outbound connections are dropped or refused",
    looks_like: "`curl: (28)`, `Connection timed out`, code 50; 403 from a package server.",
    misleads: "Code 50 also follows from DNS and proxy faults, which come first.",
    remedy: "On the node, run `curl -v --connect-timeout 5 https://HOST`. Allow HOST and what AKS requires on port 443 in firewall, NSG and routes: mcr.microsoft.com, `*.data.mcr.microsoft.com`, management.azure.com, login.microsoftonline.com, packages.aks.azure.com, acs-mirror.azureedge.net. See what applies: `az network nic list-effective-nsg -g NODE_GROUP -n NIC`, `az network nic show-effective-route-table -g NODE_GROUP -n NIC`. If all is open, look for used-up SNAT ports: portal, NAT gateway or load balancer > Metrics.",
    signs: &[
        Sign::new(79, &["azure firewall", "denied"]),
        Sign::new(79, &["status code 470"]),
        Sign::new(79, &["action: deny"]),
        Sign::new(80, &["curl: (28)"]),
        Sign::new(80, &["connection timed out"]),
        Sign::new(80, &["returned error: 403"]),
        Sign::new(80, &["last exit status: 28)"]),
        Sign::new(81, &["unable to establish outbound connection"]),
        Sign::new(81, &["outboundconnfail"]),
        Sign::new(81, &["outbound connectivity"]).fair(),
        Sign::new(80, &["no route to host"]),
        Sign::new(80, &["failed in downloading"]).near(&["(403) forbi"]),
        Sign::new(80, &["remote server returned an error: (403)"]),
        Sign::new(80, &["network is unreachable"]).fair(),
        Sign::new(81, &["failed to connect to", "timeout"]),
        Sign::new(81, &["timeout was reached"]),
        Sign::new(81, &["unable to connect to the remote server"]),
        Sign::new(82, &["i/o timeout"]).fair(),
        Sign::new(82, &["couldn't connect to server"]).fair(),
        Sign::new(82, &["connection refused"])
            .unless(&[
                "ncat: connection",
                "docker.sock",
                "containerd.sock",
                "127.0.0.1",
                "localhost",
                "10248",
                "unix:",
            ])
            .fair(),
        Sign::new(
            82,
            &["a connection attempt failed because the connected party did not properly respond"],
        ),
        Sign::new(83, &["agents cannot connect to the cni download"]).fair(),
        Sign::new(83, &["last exit status: 7)"]).fair(),
        Sign::new(83, &["curl: (7)"]).fair(),
        Sign::new(83, &["snat port exhaustion"]),
        Sign::new(84, &["could not connect to"]).unless(&["runtime", "containerd"]).fair(),
        Sign::new(81, &["operation timed out"]).fair(),
        Sign::new(82, &["net/http: tls handshake timeout"]).fair(),
        Sign::new(82, &["awaiting headers"]).fair(),
        Sign::new(82, &["failed to establish a new connection"]).fair(),
        Sign::new(82, &["connection attempt failed"]).fair(),
        Sign::new(83, &["connection closed by remote host"]).weak(),
        Sign::new(82, &["the operation has timed out"]).fair(),
        Sign::new(83, &["nc: connect"]).fair(),
        Sign::new(81, &["blocked by", "firewall"]).fair(),
    ],
    subject: Some(subject::host),
};

examples! {
    finds: "curl: (28) Failed to connect to mcr.example.com port 443 after 15001 ms: Timeout was reached",
    leaves: "Connection to mcr.example.com 443 port [tcp/https] succeeded!",
}
