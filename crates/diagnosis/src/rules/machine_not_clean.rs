//! The machine carries leftovers of an earlier bootstrap.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::MachineNotClean,
    title: "the machine carries leftovers of an earlier bootstrap",
    looks_like: "`[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: already exists`, `[ERROR Port-10250]: Port 10250 is in use`, `[ERROR DirAvailable--var-lib-etcd]`.",
    misleads: "kubeadm's checks fail, although this attempt did nothing wrong.",
    remedy: "Do not join a machine twice, and do not capture an image from one that has joined. On the node: `kubeadm reset -f && rm -rf /etc/cni/net.d /var/lib/etcd`, or for RKE2 and k3s their uninstall script; better, replace the machine. For an image: generalise it before capturing (`sudo waagent -deprovision+user`).",
    signs: &[
        Sign::new(27, &["[error fileavailable--etc-kubernetes"]),
        Sign::new(27, &["[error diravailable-"]),
        Sign::new(27, &["[error port-", "is in use"]),
        Sign::new(28, &["already joined"]).near(&["kubeadm", "cluster"]).fair(),
        Sign::new(28, &["a kubelet conf file already exists"]),
        Sign::new(28, &["bind: address already in use"])
            .near(&["kubelet", "10250", "etcd", "kubeadm"])
            .fair(),
        Sign::new(28, &["member has already been bootstrapped"]),
        Sign::new(28, &["member", "has already been bootstrapped"]),
        Sign::new(28, &["data-dir used by this member must be removed"]),
    ],
    subject: None,
};

examples! {
    finds: "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists",
    leaves: "[preflight] Running pre-flight checks",
}
