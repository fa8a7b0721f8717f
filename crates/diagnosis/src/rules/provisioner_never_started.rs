//! Nothing ran the bootstrap.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ProvisionerNeverStarted,
    title: "nothing ran the bootstrap",
    looks_like: "`provision.sh: No such file or directory` again and again, `CustomData.bin does not exist`, an extension that is `in progress` and silent.",
    misleads: "100 reads like a time-out.",
    remedy: "On the node, run `cloud-init status --long`, `systemctl status aks-node-controller` and `ls -l /opt/azure/containers /var/lib/cloud/instance/user-data.txt`; without a login, `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM`. Check that customData reached the VM (Windows: C:/AzureData/CustomData.bin), that the launcher finds its configuration, and that the unit is enabled or the boothook starts the launcher. Fix the image or template that lacks it, then replace the node.",
    signs: &[
        Sign::new(19, &["aks-node-controller", "was skipped because of an unmet condition"]),
        Sign::new(19, &["without provision config"]),
        Sign::new(19, &["provision.sh: no such file"]),
        Sign::new(19, &["customdata.bin does not exist"]),
        Sign::new(19, &["no_custom_data_bin"]),
        Sign::new(19, &["err_cse_provision_script_not_ready"]),
        Sign::new(19, &["aks-node-controller", "no config"]).fair(),
        Sign::new(19, &["aks-node-controller.service", "disabled"]).fair(),
        Sign::new(19, &["launcher", "no configuration"]).fair(),
        Sign::new(19, &["waiting for provision.complete"]).weak(),
        Sign::new(20, &["aks-node-controller: not found"]).fair(),
        Sign::new(19, &["customdatasetupscript.ps1", "does not exist"]),
        Sign::new(19, &["opt/azure/containers/provision_start.sh: no such file"]),
        Sign::new(20, &["sh: 0: can't open"]).fair(),
        Sign::new(20, &["cloud-init-files.complete"]).weak(),
        Sign::new(20, &["timed out waiting for", "provision"]).fair(),
        Sign::new(20, &["provision_start.sh: not found"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "cat: /opt/azure/containers/provision.sh: No such file or directory",
    leaves: "aks-node-controller started",
}
