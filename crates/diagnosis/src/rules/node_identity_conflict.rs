//! A node of that name exists, or the node's identity does not fit.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::NodeIdentityConflict,
    title: "a node of that name exists, or the node's identity does not fit",
    looks_like: "`a Node with name .. already exists in the cluster`.",
    misleads: "kubelet looks healthy on the machine.",
    remedy: "Compare machines, not names: `kubectl get node NODE -o jsonpath='{.status.nodeInfo.systemUUID}'` and `az vm show -g NODE_GROUP -n VM --query vmId` (byte order may differ). If the Node belongs to a machine that is gone, run `kubectl delete node NODE`, but not for a Node of Karpenter: that deletes its VM too. RKE2 and k3s: also the secret NODE.node-password.rke2 or .k3s in kube-system. If both machines live, give the new one another name. If kubelet's certificate carries another name, replace the node.",
    signs: &[
        Sign::new(64, &["unable to register node with api server", "forbidden"]),
        Sign::new(70, &["unknown node for user"]),
        Sign::new(70, &["cannot modify node"]),
        Sign::new(69, &["a node with name", "already exists"]),
        Sign::new(69, &["node with same name", "exists"]),
        Sign::new(69, &["is not allowed to modify node"]),
        Sign::new(69, &["can only access node with name"]),
        Sign::new(69, &["providerid", "mismatch"]),
        Sign::new(69, &["provider id", "does not match"]).fair(),
        Sign::new(69, &["node name", "does not match"]).fair(),
        Sign::new(70, &["duplicate node name"]).fair(),
        Sign::new(70, &["hostname", "could not be reached"]).weak(),
        Sign::new(69, &["node password rejected", "may not match server"]),
        Sign::new(69, &["node password rejected, duplicate hostname"]),
        Sign::new(69, &["can only access node lease"]),
        Sign::new(69, &["is forbidden", "is not allowed to modify node"]),
        Sign::new(70, &["hostname override", "conflict"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "error execution phase kubelet-start: a Node with name \"edge-12\" and status \"Ready\" already exists in the cluster.",
    leaves: "node/edge-12 labeled",
}
