//! The NIC is still held for another VM.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::NicReserved,
    title: "the NIC is still held for another VM",
    looks_like: "`NicReservedForAnotherVm`.",
    misleads: "It is the echo of an earlier failure.",
    remedy: "Wait 180 seconds; look for the error before it, which is the cause.",
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
