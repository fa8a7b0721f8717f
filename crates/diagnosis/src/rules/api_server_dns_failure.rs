//! The name of the API server does not resolve.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ApiServerDnsFailure,
    title: "the name of the API server does not resolve",
    looks_like: "`server can't find …azmk8s.io: NXDOMAIN`, code 52 or 53.",
    misleads: "53 says that Azure DNS failed; Azure DNS answered, it has no record.",
    remedy: "On the node, run `nslookup HOST` and `nslookup HOST 168.63.129.16`. If only the second answers, give the custom DNS server a forwarder to 168.63.129.16 (`az network vnet show -g GROUP -n VNET --query dhcpOptions.dnsServers` lists the servers). If neither answers, link the private DNS zone to the virtual network of the node (or of that server): compare `az network private-dns link vnet list -g NODE_GROUP -z ZONE -o table`, then `az network private-dns link vnet create -g NODE_GROUP -z ZONE -n LINK -v VNET -e false`.",
    signs: &[
        Sign::new(50, &["azmk8s.io: nxdomain"]),
        Sign::new(50, &["nxdomain"]).with_codes(&[52, 53]),
        Sign::new(50, &["could not resolve host", "azmk8s.io"]),
        Sign::new(50, &["no such host", "azmk8s.io"]),
        Sign::new(50, &["lookupnosuchhost"]),
        Sign::new(50, &["unable to resolve kubernetes api server"]),
        Sign::new(50, &["unable to resolve kubernetes api server name"]),
        Sign::new(50, &["no such host", ":6443"]),
        Sign::new(50, &["k8sapiserverdnslookupfail"]),
        Sign::new(50, &["no servers could be reached"]).with_codes(&[52, 53]),
        Sign::new(50, &["communications error"]).with_codes(&[52, 53]),
        Sign::new(51, &["total timeout", "nslookup"]),
        Sign::new(51, &["no such host"]).near(&["cluster-info", "kube-public"]).fair(),
        Sign::new(51, &["server misbehaving", "azmk8s.io"]),
        Sign::new(51, &["server misbehaving", ":6443"]),
        Sign::new(51, &["server can't find", "azmk8s.io"]),
        Sign::new(52, &["could not resolve host"]).with_codes(&[51, 52, 53]),
        Sign::new(51, &["no such host", "control plane"]).fair(),
        Sign::new(51, &["no such host", "apiserver"]),
        Sign::new(51, &["no such host", "/api/v1"]),
        Sign::new(51, &["no such host", "kube-apiserver"]),
        Sign::new(51, &["no such host", "kubeadm"]).fair(),
        Sign::new(50, &["azmk8s.io", "no such host"]),
        Sign::new(50, &["no such host", "cluster-info"]),
        Sign::new(50, &["no such host", "/cacerts"]),
        Sign::new(50, &["no such host", "failed to validate connection to cluster at"]),
        Sign::new(50, &["server misbehaving", "cluster-info"]),
        Sign::new(51, &["could not resolve host", ":6443"]),
        Sign::new(51, &["unable to resolve", "api server"]),
    ],
    subject: None,
};

examples! {
    finds: "** server can't find cluster-a1b2.privatelink.northeurope.azmk8s.io: NXDOMAIN",
    leaves: "curl: (6) Could not resolve host: mcr.example.com",
}
