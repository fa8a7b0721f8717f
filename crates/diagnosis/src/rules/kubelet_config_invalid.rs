//! Kubelet refuses a flag, a label or its configuration.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::KubeletConfigInvalid,
    title: "kubelet refuses a flag, a label or its configuration",
    looks_like: "`unknown flag`, `failed to load kubelet config file`, `unknown 'kubernetes.io' or 'k8s.io' labels specified`.",
    misleads: "kubelet restarts for ever while the extension says 0.",
    remedy: "Correct the flag or field that kubelet names; custom kubelet configuration is not validated before kubelet reads it.",
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
