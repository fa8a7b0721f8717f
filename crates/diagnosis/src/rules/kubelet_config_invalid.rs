//! Kubelet refuses a flag, a label or its configuration.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::KubeletConfigInvalid,
    title: "kubelet refuses a flag, a label or its configuration",
    looks_like: "`unknown flag`, `failed to load kubelet config file`, `unknown 'kubernetes.io' or 'k8s.io' labels specified`.",
    misleads: "kubelet restarts for ever while the extension says 0.",
    remedy: "On the node, `journalctl -u kubelet -n 50 --no-pager` names the flag, field or label. Correct it where it is set: `az aks nodepool show -g GROUP --cluster-name CLUSTER -n POOL --query kubeletConfig`, `spec.kubelet` of the AKSNodeClass, or `kubeletExtraArgs` in the KubeadmConfigTemplate; of the kubernetes.io and k8s.io labels only a few are allowed, so prefer your own prefix. Custom kubelet configuration is not validated before kubelet reads it: try a change on one node first.",
    signs: &[
        Sign::new(101, &["unknown flag: --"]),
        Sign::new(101, &["failed to parse kubelet flag"]),
        Sign::new(101, &["failed to load kubelet config file"]),
        Sign::new(101, &["unknown 'kubernetes.io' or 'k8s.io' labels"]),
        Sign::new(101, &["invalid configuration:"]).near(&["kubelet"]).fair(),
        Sign::new(101, &["running with swap on is not supported"]),
        Sign::new(101, &["misconfiguration: kubelet cgroup driver"]),
        Sign::new(102, &["failed to validate kubelet configuration"]),
        Sign::new(102, &["strict decoding error"]).near(&["kubelet"]).fair(),
        Sign::new(101, &["cgroup driver", "is different from"]),
        Sign::new(102, &["invalid argument '"]).near(&["kubelet"]).fair(),
        Sign::new(102, &["failed to validate kubelet flags"]),
        Sign::new(102, &["enable-controller-attach-detach"]).weak(),
    ],
    subject: None,
};

examples! {
    finds: "\"command failed\" err=\"failed to load kubelet config file, path: /etc/default/kubeletconfig.json, error: strict decoding error: unknown field\"",
    leaves: "\"Starting kubelet main sync loop\"",
}
