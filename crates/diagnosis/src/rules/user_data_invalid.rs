//! Cloud-init, Ignition or cloudbase-init could not use the user data.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::UserDataInvalid,
    title: "cloud-init, Ignition or cloudbase-init could not use the user data",
    looks_like: "`Failed loading yaml blob`, `Unhandled unknown content-type`, `Failed to run module scripts_user`.",
    misleads: "Only the last command's failure is reported.",
    remedy: "On the node, run `cloud-init status --long` and `cloud-init schema --system`; /var/log/cloud-init-output.log shows the command that failed. For Ignition and machines without a login, read `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM`. Correct the user data in the node class or KubeadmConfigTemplate and try it before use: `cloud-init schema -c FILE`, `ignition-validate FILE`. Usual are a missing first line `#cloud-config`, wrong indentation and a placeholder that was not filled; then replace the node.",
    signs: &[
        Sign::new(17, &["failed loading yaml blob"]),
        Sign::new(17, &["unhandled unknown content-type"]),
        Sign::new(17, &["unhandled non-multipart"]),
        Sign::new(17, &["invalid cloud-config"]),
        Sign::new(18, &["ci_missing_jinja_var"]),
        Sign::new(18, &["must be a lowercase rfc 1123"]).fair(),
        Sign::new(17, &["ignition failed"]),
        Sign::new(17, &["failed to decode config"]),
        Sign::new(18, &["failed to fetch config"]).near(&["ignition"]).fair(),
        Sign::new(230, &["failed to run module scripts"]).fair(),
        Sign::new(230, &["running module scripts", "failed"]).fair(),
        Sign::new(231, &["scripts-user", "failed"]).fair(),
        Sign::new(17, &["cloud config schema errors"]).fair(),
        Sign::new(231, &["cloudbase-init", "error"]).fair(),
        Sign::new(18, &["customdata", "invalid"]).fair(),
        Sign::new(18, &["error parsing", "user data"]).fair(),
        Sign::new(17, &["could not process part type"]),
        Sign::new(18, &["scannererror"]),
        Sign::new(18, &["failed schema validation"]).unless(&["you may run"]).fair(),
        Sign::new(17, &["failed to unmarshal", "cloud-init"]),
        Sign::new(18, &["yaml: line"]).unless(&["helm", "kubectl"]).fair(),
        Sign::new(17, &["cloud-init data", "yaml"]),
        Sign::new(17, &["failed to shellify"]),
        Sign::new(231, &["running module", "failed"]).fair(),
        Sign::new(231, &["failed to run module"]).fair(),
        Sign::new(18, &["custom data", "invalid"]).fair(),
        Sign::new(17, &["error in user-data"]).fair(),
        Sign::new(17, &["config is not valid"]).near(&["ignition"]).fair(),
        Sign::new(17, &["failed at merging in cloud config part"]),
        Sign::new(230, &["runparts: ", " failures (", "attempted commands"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "__init__.py[WARNING]: Unhandled unknown content-type (text/x-pool) userdata: '# Generated No...'",
    leaves: "Cloud-init v. 25.1 running 'modules:final'",
}
