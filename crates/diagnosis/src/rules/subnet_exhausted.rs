//! No address is free in the subnet.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::SubnetExhausted,
    title: "no address is free in the subnet",
    looks_like: "`SubnetIsFull`, `Pre-allocated IPs .. exceeds IPs available`.",
    misleads: "It looks like a network fault.",
    remedy: "See size and use: `az network vnet subnet show --ids SUBNET --query \"[addressPrefix, length(ipConfigurations)]\"`; Azure keeps 5 addresses, and with node-subnet CNI each node takes one and one more for each possible pod. Use a larger subnet: `az aks nodepool add -g GROUP --cluster-name CLUSTER -n POOL --vnet-subnet-id NEW_ID`, in Karpenter `vnetSubnetID` of a new AKSNodeClass; or fewer `--max-pods` in new pools. NICs that nothing uses any more keep addresses too; make sure of each before you delete it.",
    signs: &[
        Sign::new(20, &["subnetisfull"]),
        Sign::new(20, &["does not have enough capacity for", "ip address"]),
        Sign::new(20, &["exceeds ips available"]),
        Sign::new(20, &["insufficientsubnetsize"]),
        Sign::new(20, &["not enough ip addresses"]),
        Sign::new(20, &["privateipaddressinuse"]),
        Sign::new(20, &["no available ip"]).fair(),
        Sign::new(20, &["ip address pool is exhausted"]),
        Sign::new(20, &["failed to allocate address"]).fair(),
        Sign::new(20, &["subnet is full"]),
        Sign::new(20, &["no ip addresses available"]),
        Sign::new(20, &["privateipaddressisallocated"]),
        Sign::new(20, &["already allocated to resource"]).fair(),
        Sign::new(20, &["insufficient ip addresses"]),
        Sign::new(20, &["not enough addresses"]),
        Sign::new(20, &["subnet", "full"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Subnet nodes with address prefix 10.1.0.0/24 does not have enough capacity for 1 IP addresses.",
    leaves: "Subnet nodes created",
}
