//! The extension's own handler failed.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ExtensionHandlerFault,
    title: "the extension's own handler failed",
    looks_like: "`VMExtensionHandlerNonTransientError`, `Malformed status file`, `handlers failed to resolve`.",
    misleads: "It looks like a script failure, and there is no exit code.",
    remedy: "Read the handler's status: `az vm get-instance-view -g NODE_GROUP -n VM --query instanceView.extensions`, on the node /var/log/waagent.log and the handler's log under /var/log/azure. The script did not run, or its status was lost: usually the handler could not be downloaded, the disk is full, the agent is too old, or a second extension of the same type exists. Fix that, then replace the node, or run `az vm extension delete -g NODE_GROUP --vm-name VM -n NAME` and create the extension again.",
    signs: &[
        Sign::new(28, &["[extensionoperationerror]", "/var/lib/waagent"]),
        Sign::new(28, &["enable failed for plugin"]),
        Sign::new(28, &["install failed for plugin"]),
        Sign::new(110, &["vmextensionhandlernontransienterror"]),
        Sign::new(110, &["vmextensionhandlertransienterror"]),
        Sign::new(110, &["has reported terminal failure for vm extension"]),
        Sign::new(110, &["malformed status file"]),
        Sign::new(110, &["extension handlers failed to resolve"]),
        Sign::new(110, &["install handler failed"]),
        Sign::new(110, &["handler", "failed to resolve"]),
        Sign::new(111, &["[extensionoperationerror]"]),
        Sign::new(111, &["[extensiondownloaderror]"]).fair(),
        Sign::new(111, &["processing file downloads failed"]).fair(),
        Sign::new(111, &["failed to get configuration"]).fair(),
        Sign::new(111, &["extensionnotfoundforcpuarchitecture"]),
        Sign::new(111, &["plugin", "enable failed"]).fair(),
        Sign::new(111, &["vmextensionmanagementinternalerror"]),
        Sign::new(111, &["extensionerror"]).fair(),
        Sign::new(29, &["exec format error"]).near(&["custom-script", "waagent"]),
        Sign::new(29, &["cannot execute binary file"]).near(&["custom-script", "waagent"]),
        Sign::new(100, &["customscript.py"]).fair(),
        Sign::new(100, &["failed to download blob with uri"]),
        Sign::new(111, &["error decrypting protected settings"]),
        Sign::new(111, &["handler status", "not"]).fair(),
        Sign::new(111, &["handler failed"]).fair(),
        Sign::new(111, &["no handler"]).unless(&["acpi"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "The handler for VM extension type 'Microsoft.Azure.Extensions.CustomScript' has reported terminal failure for VM extension 'cse'",
    leaves: "Plugin enabled",
}
