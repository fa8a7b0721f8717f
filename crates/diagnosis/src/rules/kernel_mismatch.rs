//! A kernel module, sysctl or cgroup version is missing or wrong.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::KernelMismatch,
    title: "a kernel module, sysctl or cgroup version is missing or wrong",
    looks_like: "`modprobe: FATAL: Module X not found`, `cgroupv2 unified hierarchy not detected`, `[ERROR FileContent--proc-sys-…]`.",
    misleads: "34 blames kubelet.",
    remedy: "On the node, check what the line names: `uname -r`, `modprobe -v MODULE`, `sysctl NAME`, and `stat -fc %T /sys/fs/cgroup` (`cgroup2fs` is cgroup v2). What the kernel has, switch on in the image, in /etc/modules-load.d and /etc/sysctl.d; for kubeadm that is `modprobe br_netfilter` and `sysctl -w net.ipv4.ip_forward=1`. What it lacks needs another image: `az aks nodepool upgrade -g GROUP --cluster-name CLUSTER -n POOL --node-image-only`, or a pool with a newer `--os-sku`.",
    signs: &[
        Sign::new(94, &["modprobe: fatal: module"]).unless(&["nvidia"]),
        Sign::new(94, &["cgroupv2 unified hierarchy not detected"]),
        Sign::new(94, &["[error filecontent--proc"]),
        Sign::new(94, &["[error systemverification]"]),
        Sign::new(94, &["contents are not set to 1"]),
        Sign::new(94, &["sysctl: cannot stat"]),
        Sign::new(95, &["cgroup v1", "not supported"]).fair(),
        Sign::new(95, &["unsupported kernel"]),
        Sign::new(95, &["kernel module", "not loaded"]).fair(),
        Sign::new(95, &["bridge-nf-call-iptables does not exist"]),
        Sign::new(95, &["missing cgroups"]),
        Sign::new(96, &["iptables", "table does not exist"]).fair(),
        Sign::new(95, &["invalid kernel flag"]),
        Sign::new(95, &["failed to start containermanager"])
            .near(&["kernel", "cgroup", "/proc/sys"])
            .fair(),
        Sign::new(95, &["could not insert '"]).unless(&["nvidia"]).fair(),
        Sign::new(95, &["unknown filesystem type"]).fair(),
        Sign::new(95, &["kernel does not support"]).fair(),
        Sign::new(95, &["cgroups", "not enabled"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/5.15.0-1074-custom",
    leaves: "modprobe br_netfilter",
}
