//! 168.63.129.16 is not reachable from the guest.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::WireServerUnreachable,
    title: "168.63.129.16 is not reachable from the guest",
    looks_like: "`wireserver unreachable`, time-outs to 168.63.129.16.",
    misleads: "The scripts end with 1 and name no code.",
    remedy: "On the node, as root, run `curl -sv --noproxy '*' \"http://168.63.129.16/?comp=versions\"`, `nc -vz 168.63.129.16 32526`, `ip route get 168.63.129.16` and `iptables-save | grep 168.63.129.16`. Allow ports 80 and 32526 of 168.63.129.16 in host firewalls and network security groups (`az network nic list-effective-nsg -g NODE_GROUP -n NIC`), keep it out of proxies and VPN routes, and let it leave by the primary NIC. A rule that drops it for pods only is normal. Then replace the node.",
    signs: &[
        Sign::new(45, &["retry detect protocols: retry="]).fair(),
        Sign::new(44, &["wireserver unreachable"]),
        Sign::new(44, &["wireserver request failed"]),
        Sign::new(44, &["168.63.129.16", "timed out"]).unless(&[":53", "#53", "lookup"]),
        Sign::new(44, &["168.63.129.16", "connection refused"]).unless(&[":53", "#53", "lookup"]),
        Sign::new(44, &["168.63.129.16", "unreachable"]).unless(&[":53", "#53", "lookup"]),
        Sign::new(44, &["failed to connect to 168.63.129.16"]),
        Sign::new(45, &["wireserver", "timeout"]).fair(),
        Sign::new(45, &["[protocolerror]", "wireserver"]).fair(),
        Sign::new(45, &["unable to reach wireserver"]),
        Sign::new(44, &["wireserver is not responding"]),
        Sign::new(44, &["wireserver endpoint is not found"]),
        Sign::new(45, &["[wireserver exception]"]),
        Sign::new(44, &["calling wire server failed"]),
        Sign::new(45, &["wire server", "fail"]).fair(),
        Sign::new(45, &["wire server", "unreachable"]),
        Sign::new(45, &["goal state", "timed out"]).fair(),
        Sign::new(23, &["result=error|reason=", "wireserver"]),
        Sign::new(23, &["result=error|reason=", "wire server"]),
    ],
    subject: None,
};

examples! {
    finds: "wireserver unreachable for cert opt-in check (HTTP 000)",
    leaves: "Server: 168.63.129.16",
}
