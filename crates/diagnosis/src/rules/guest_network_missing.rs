//! The guest has no working network interface.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::GuestNetworkMissing,
    title: "the guest has no working network interface",
    looks_like: "`No network interfaces found`, `No DHCPOFFERS received`, `Route info failed`, `hv_netvsc` errors.",
    misleads: "Everything that needs the network fails afterwards, with its own code.",
    remedy: "Check that the VM has a NIC and that it is attached (`az vm nic list -g NODE_GROUP --vm-name VM`), and that accelerated networking is supported by image and size; turn it off to try (`az network nic update --accelerated-networking false`). Redeploy the VM to another host: `az vm redeploy`. On the console: `ip link`, `networkctl`.",
    signs: &[
        Sign::new(16, &["unable to find dhcp interface"]),
        Sign::new(16, &["could not find dhcp interface"]),
        Sign::new(16, &["no default route"]).fair(),
        Sign::new(16, &["no candidate interface"]).fair(),
        Sign::new(16, &["failure to find dhcp interface"]),
        Sign::new(16, &["no network interfaces found"]),
        Sign::new(16, &["no network interface found"]),
        Sign::new(16, &["no working leases in persistent database"]),
        Sign::new(16, &["no dhcpoffers received"]),
        Sign::new(16, &["unable to find fallback nic"]),
        Sign::new(16, &["did not find any fallback interface"]),
        Sign::new(16, &["no suitable network interface"]),
        Sign::new(16, &["failed to obtain dhcp lease"]),
        Sign::new(16, &["dhcp", "no lease"]).fair(),
        Sign::new(16, &["no ephemeral dhcp lease"]).fair(),
        Sign::new(16, &["!!!!!!!", "route info failed"]).fair(),
        Sign::new(16, &["cannot find device 'eth0'"]),
        Sign::new(16, &["could not find any network adapters"]),
    ],
    subject: None,
};

examples! {
    finds: "No DHCPOFFERS received.",
    leaves: "DHCPOFFER of 10.0.0.4 from 168.63.129.16",
}
