//! The node's configuration was not usable.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ConfigRejected,
    title: "the node's configuration was not usable",
    looks_like: "`failed to read provision.json .. AKSNodeConfig is not properly set`, `unsupported version:`, `base64: invalid input` at the containerd step.",
    misleads: "aks-node-controller ends with 240 or with 1; the containerd step with 6, which reads \"file watch timeout\".",
    remedy: "Check the configuration: is the file there, is its version v1, is it in the right place? On the node, run `ls -l /opt/azure/containers/aks-node-controller-config.json` and `tail /var/log/azure/aks-node-controller.log`. For scale sets, compare the customData that was sent with what `bringup nodeconfig validate FILE` accepts; it names line and field. Correct the provisioner or template that writes it, then replace the node: the customData of a VM cannot be changed.",
    signs: &[
        Sign::new(37, &["failed to read provision.json", "no such file"]),
        Sign::new(37, &["aksnodeconfig is not properly set"]),
        Sign::new(37, &["unsupported version: "]).unless(&["kubelet", "kubernetes", "tls"]),
        Sign::new(37, &["unsupported config version"]),
        Sign::new(37, &["base64: invalid input"]),
        Sign::new(37, &["failed to parse aksnodeconfig"]),
        Sign::new(37, &["unmarshal", "aksnodeconfig"]),
        Sign::new(37, &["failed to unmarshal", "nodeconfig"]),
        Sign::new(38, &["invalid handler configuration"]),
        Sign::new(38, &["proto: ", "unknown field"]).fair(),
        Sign::new(38, &["proto:", "syntax error"]),
        Sign::new(39, &["missing required field"]).fair(),
        Sign::new(39, &["keyvault", "secretnotfound"]).fair(),
        Sign::new(39, &["template: ", "unexpected eof"]).fair(),
        Sign::new(39, &["parse config: "]).fair(),
        Sign::new(39, &["failed to parse", "config.json"]).fair(),
        Sign::new(38, &["keyvaultparameterreference"]),
        Sign::new(39, &["secret of keyvault parameter"]).fair(),
        Sign::new(38, &["recognize types with groupversionkind"]),
        Sign::new(39, &["no kind '", "is registered for version"]).fair(),
        Sign::new(37, &["failed to unmarshal", "provision"]).fair(),
        Sign::new(39, &["invalid configuration for groupversionkind"]).fair(),
        Sign::new(39, &["cannot unmarshal", "config"]).fair(),
        Sign::new(38, &["nodeconfig", "invalid"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "failed to read provision.json: open /var/log/azure/aks/provision.json: no such file or directory. One reason could be that AKSNodeConfig is not properly set.",
    leaves: "[kubelet-start] Writing kubelet configuration to file \"/var/lib/kubelet/config.yaml\"",
}
