//! The extension did not finish in time, and nothing says why.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ExtensionTimeout,
    title: "the extension did not finish in time, and nothing says why",
    looks_like: "`VMExtensionProvisioningTimeout`.",
    misleads: "90 minutes have passed; the reason is older.",
    remedy: "Look at the script's log on the node, or at the serial log.",
    signs: &[
        Sign::new(250, &["vmextensionprovisioningtimeout"]).fair(),
        Sign::new(250, &["provisioning of vm extension", "has timed out"]).fair(),
        Sign::new(251, &["extension provisioning has taken too long"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Provisioning of VM extension vmssCSE has timed out. Extension provisioning has taken too long to complete.",
    leaves: "Enable in progress",
}
