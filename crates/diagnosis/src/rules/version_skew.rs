//! Kubelet and control plane versions do not go together.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::VersionSkew,
    title: "kubelet and control plane versions do not go together",
    looks_like: "`the kubelet version is higher than the control plane version`.",
    misleads: "It is one preflight error among others.",
    remedy: "Compare `kubectl version` (server) with `kubelet --version` on the node; on AKS `az aks nodepool list -g GROUP --cluster-name CLUSTER --query \"[].[name, currentOrchestratorVersion]\" -o table`. Use a node image whose kubelet is not newer than the control plane and at most three minors older. Upgrade the control plane first, `az aks upgrade -g GROUP -n CLUSTER --control-plane-only -k VERSION` (Cluster API: `version` of the KubeadmControlPlane), then the pools; kubeadm must be of the kubelet's minor.",
    signs: &[
        Sign::new(72, &["kubelet version is higher than the control plane version"]),
        Sign::new(72, &["[error kubeletversion]"]),
        Sign::new(72, &["kubelet version", "is not supported"]).fair(),
        Sign::new(72, &["this version of kubeadm only supports"]),
        Sign::new(72, &["the latest supported kubelet version"]).fair(),
        Sign::new(73, &["node version", "newer than control plane"]).fair(),
        Sign::new(72, &["version skew"]).fair(),
        Sign::new(72, &["unsupported kubelet version"]),
        Sign::new(72, &["version-skew-policy"]),
        Sign::new(72, &["version", "are incompatible"]).fair(),
        Sign::new(72, &["kubelet version", "newer"]).fair(),
        Sign::new(72, &["version of the kubelet", "higher"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "[ERROR KubeletVersion]: the kubelet version is higher than the control plane version. Kubelet version: \"1.35.1\" Control plane version: \"1.34.4\"",
    leaves: "Kubernetes v1.34.4",
}
