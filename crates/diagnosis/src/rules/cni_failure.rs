//! The network plugin is not there or not initialised.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::CniFailure,
    title: "the network plugin is not there or not initialised",
    looks_like: "`cni plugin not initialized`, `NetworkPluginNotReady`.",
    misleads: "The node is registered and NotReady: the bootstrap itself was fine.",
    remedy: "See whether the network plugin's pod runs on the node: `kubectl get pods -A -o wide --field-selector spec.nodeName=NODE`; read it with `kubectl -n kube-system logs POD --all-containers`. On the node, `ls -l /etc/cni/net.d /opt/cni/bin` must show its configuration and binaries, and `journalctl -u containerd` names what is missing. Fix its DaemonSet (image pull, tolerations, node selector), or install a plugin: a new Cluster API cluster has none. The node then turns Ready by itself.",
    signs: &[
        Sign::new(88, &["key-value store", "network plugin"]),
        Sign::new(88, &["hcn", " failed"]).fair(),
        Sign::new(88, &["hns", " failed"]).fair(),
        Sign::new(87, &["cni plugin not initialized"]),
        Sign::new(87, &["networkpluginnotready"]),
        Sign::new(87, &["cni config uninitialized"]),
        Sign::new(87, &["no networks found in /etc/cni"]),
        Sign::new(71, &["failed to find plugin", "in path []"]),
        Sign::new(72, &["failed to setup network for sandbox"]),
        Sign::new(72, &["plugin type=", "failed (add)"]),
        Sign::new(88, &["plugin type=", "failed"]).fair(),
        Sign::new(88, &["failed to find plugin", "in path [/opt/cni"]),
        Sign::new(88, &["network plugin is not ready"]),
        Sign::new(88, &["failed to set up sandbox container", "network"]).fair(),
        Sign::new(88, &["azure-vnet", "failed"]).fair(),
        Sign::new(89, &["unable to update cni config"]),
        Sign::new(87, &["hns failed"]),
        Sign::new(87, &["invoke-hnsrequest"]),
        Sign::new(87, &["networkplugin cni failed"]),
        Sign::new(88, &["failed create pod sandbox", "network"]).fair(),
        Sign::new(88, &["[cni]", "failed"]).fair(),
        Sign::new(88, &["azure-vnet"]).near(&["failed to lock store", "plugin error"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
    leaves: "Successfully wrote /etc/cni/net.d/10-azure.conflist",
}
