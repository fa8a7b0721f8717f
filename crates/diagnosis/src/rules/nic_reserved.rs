//! The NIC is still held for another VM.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::NicReserved,
    title: "the NIC is still held for another VM",
    looks_like: "`NicReservedForAnotherVm`.",
    misleads: "It is the echo of an earlier failure.",
    remedy: "Wait 180 seconds after the last attempt; each new one starts them again. Look for the error before it, which is the cause: `az monitor activity-log list -g NODE_GROUP --status Failed --offset 1h --query \"[].properties.statusMessage\" -o tsv`. If the NIC stays for an hour, read it with `az network nic show -g NODE_GROUP -n NIC --query \"{vm: virtualMachine, endpoint: privateEndpoint, tags: tags}\"`; only if it has neither VM nor endpoint and its node is gone, run `az network nic delete -g NODE_GROUP -n NIC`.",
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
