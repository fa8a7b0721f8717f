//! The NIC is still held for another VM.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::NicReserved,
    title: "the NIC is still held for another VM",
    looks_like: "`NicReservedForAnotherVm`.",
    misleads: "It is the echo of an earlier failure.",
    remedy: "Wait 180 seconds after the last attempt; each new one starts them again. Look for the error before it, which is the cause: `az monitor activity-log list -g NODE_GROUP --status Failed --offset 1h --query \"[].properties.statusMessage\" -o tsv`. If the NIC stays, find it among those without a VM, `az network nic list -g NODE_GROUP --query \"[?virtualMachine==null].name\" -o tsv`, and run `az network nic delete -g NODE_GROUP -n NIC`.",
    signs: &[
        Sign::new(260, &["nicreservedforanothervm"]),
        Sign::new(260, &["is reserved for another virtual machine"]),
    ],
    subject: None,
};

examples! {
    finds: "NicReservedForAnotherVm: Nic(s) in request is reserved for another Virtual Machine for 180 seconds.",
    leaves: "networkInterface deleted",
}
