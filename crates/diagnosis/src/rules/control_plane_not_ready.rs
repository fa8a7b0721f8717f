//! A control-plane machine did not come up.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ControlPlaneNotReady,
    title: "a control-plane machine did not come up",
    looks_like: "`error execution phase wait-control-plane`, `could not initialize a Kubernetes cluster`, etcd learner errors.",
    misleads: "A refused connection to its own API server is a consequence.",
    remedy: "On the machine, run `crictl ps -a`, then `crictl logs ID` for kube-apiserver and etcd, and `journalctl -u kubelet -n 100`: the first container that exits is the cause. For etcd, ask a healthy member: `kubectl -n kube-system exec etcd-NODE -- etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt --cert /etc/kubernetes/pki/etcd/server.crt --key /etc/kubernetes/pki/etcd/server.key member list`, and remove a stale member. Then delete the Machine that did not join; KubeadmControlPlane makes a new one.",
    signs: &[
        Sign::new(75, &["wait-control-plane"]),
        Sign::new(75, &["could not initialize a kubernetes cluster"]),
        Sign::new(75, &["couldn't initialize a kubernetes cluster"]),
        Sign::new(75, &["boot up the control plane"]),
        Sign::new(75, &["etcd member", "not started"]).fair(),
        Sign::new(75, &["can only promote a learner member"]),
        Sign::new(75, &["error execution phase check-etcd"]),
        Sign::new(75, &["error execution phase control-plane-join"]),
        Sign::new(75, &["etcdserver: unhealthy cluster"]).fair(),
        Sign::new(75, &["kube-apiserver is not healthy"]),
        Sign::new(76, &["ensurek8scontrolplane"]).weak(),
        Sign::new(76, &["kubectl", "cluster-info"]).with_codes(&[30]).weak(),
        Sign::new(76, &["static pod", "timed out"]).fair(),
        Sign::new(75, &["controlplaneunhealthy"]).fair(),
        Sign::new(75, &["localhost:6443", "refused"]).fair(),
        Sign::new(75, &["127.0.0.1:6443", "refused"]).fair(),
        Sign::new(75, &["failed to bring up control plane"]),
        Sign::new(75, &["etcd cluster is not healthy"]),
        Sign::new(75, &["error creating local etcd static pod"]),
        Sign::new(75, &["unhealthy", "kube-apiserver"]).fair(),
        Sign::new(75, &["kube-controller-manager", "is not healthy"]).fair(),
        Sign::new(75, &["[control-plane-check]", "is not healthy after"]),
    ],
    subject: None,
};

examples! {
    finds: "error execution phase wait-control-plane: could not initialize a Kubernetes cluster",
    leaves: "Your Kubernetes control-plane has initialized successfully!",
}
