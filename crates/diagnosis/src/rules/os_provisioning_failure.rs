//! The operating system did not report ready to Azure.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::OsProvisioningFailure,
    title: "the operating system did not report ready to Azure",
    looks_like: "`OSProvisioningTimedOut`, `Kernel panic`, cloud-init that cannot report to Azure.",
    misleads: "The VM may still come up later.",
    remedy: "Read the serial log: `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM`, portal: VM > Help > Boot diagnostics (if off, `az vm boot-diagnostics enable -g NODE_GROUP -n VM`). A crash or an emergency shell: go back to the last good image. A login prompt without a report: generalise the image before capture (`sudo waagent -deprovision+user`, Windows: sysprep), and see that cloud-init or the agent is enabled and reaches 168.63.129.16. The VM may still come up later; if not, replace it.",
    signs: &[
        Sign::new(9, &["kernel panic - not syncing"]),
        Sign::new(23, &["osprovisioning"]).unless(&["inprogress"]),
        Sign::new(23, &["os provisioning for vm"]),
        Sign::new(23, &["os provisioning failed"]),
        Sign::new(24, &["did not finish in the allotted time"]),
        Sign::new(24, &["vmstarttimedout"]),
        Sign::new(24, &["unable to mount root fs"]),
        Sign::new(24, &["failed to report ready"]).near(&["azure"]).fair(),
        Sign::new(25, &["used fallback datasource"]).fair(),
        Sign::new(24, &["no bootable device"]),
        Sign::new(24, &["datasourceazure", "failed"]).fair(),
        Sign::new(24, &["azure.py[error]"]),
        Sign::new(24, &["failure to obtain dhcp lease"]),
        Sign::new(24, &["sysprep"]).fair(),
        Sign::new(24, &["provisioning timed out"]).unless(&["extension"]).fair(),
        Sign::new(24, &["end kernel panic"]),
        Sign::new(24, &["result=error|reason="]),
        Sign::new(26, &["in emergency mode"]).fair(),
        Sign::new(26, &["welcome to emergency mode"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "OS Provisioning for VM 'node-1' did not finish in the allotted time. The VM may still finish provisioning successfully.",
    leaves: "Provisioning succeeded",
}
