//! Secure Boot refuses something that is not signed by a trusted key.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::SecureBootRefused,
    title: "Secure Boot refuses something that is not signed by a trusted key",
    looks_like: "`Loading of unsigned module is rejected`, `Key was rejected by service`, `bad shim signature`, `Verification failed: (0x1A) Security Violation`.",
    misleads: "A driver that cannot be loaded reports a driver code (84, 85), and a boot loader that is refused nothing at all.",
    remedy: "Use drivers and boot loaders that are signed for the image, or a pool without Secure Boot: `az aks nodepool add --disable-secure-boot`, for a VM `az vm update --enable-secure-boot false` while it is deallocated. On the node: `mokutil --sb-state`.",
    signs: &[
        Sign::new(14, &["key was rejected by service"]),
        Sign::new(14, &["loading of unsigned module is rejected"]),
        Sign::new(14, &["loading of module with unavailable key is rejected"]),
        Sign::new(14, &["module verification failed", "rejected"]),
        Sign::new(14, &["bad shim signature"]),
        Sign::new(14, &["security violation", "(0x1a)"]),
        Sign::new(14, &["verification failed", "security violation"]),
        Sign::new(14, &["required key not available"]),
        Sign::new(14, &["lockdown:", "unsigned module loading is restricted"]),
        Sign::new(14, &["secure boot", "denied"]),
        Sign::new(14, &["secure boot", "violation"]),
        Sign::new(14, &["secure boot", "not signed"]),
        Sign::new(14, &["secureboot", "validation"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
    leaves: "secureboot: Secure boot enabled",
}
