//! The extension did not finish in time, and nothing says why.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ExtensionTimeout,
    title: "the extension did not finish in time, and nothing says why",
    looks_like: "`VMExtensionProvisioningTimeout`.",
    misleads: "90 minutes have passed; the reason is older.",
    remedy: "Read the end of the script's log; its last command is the one that hung: `az vm run-command invoke -g NODE_GROUP -n VM --command-id RunShellScript --scripts \"tail -n 40 /var/log/azure/cluster-provision.log /var/log/cloud-init-output.log\"`. If the VM does not answer, read the serial log: `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM`. Fix what that command waited for (often DNS, egress or a package lock), then replace the node. Keep boot diagnostics on for the next failure.",
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
