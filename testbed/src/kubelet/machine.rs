//! The properties of a simulated machine.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

/// A machine whose kubelet appears to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The Node's name.
    pub name: String,
    /// The Node's `spec.providerID`, such as `azure:///subscriptions/…`.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The address that the Node reports.
    #[serde(rename = "internalIP")]
    pub internal_ip: IpAddr,
    /// Labels of the Node, besides those a kubelet always sets.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints to register the Node with. Other components own later changes: like a kubelet, the stand-in
    /// neither adds nor restores taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// The capacity of the machine, by resource, such as `cpu`; by default that of a small machine.
    #[serde(default)]
    pub capacity: BTreeMap<String, String>,
    /// The part of the capacity that is left for pods; by default all.
    #[serde(default)]
    pub allocatable: BTreeMap<String, String>,
    /// The status that the kubelet reports.
    #[serde(default)]
    pub ready: Readiness,
    /// The progress of the kubelet's certificate signing request.
    #[serde(default)]
    pub csr: SigningRequest,
}

/// The Node's `Ready` condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Readiness {
    /// The status is True.
    #[default]
    Ready,
    /// The status is False, with this message, such as `container runtime network not ready`.
    NotReady(String),
}

/// The certificate signing request with which a kubelet exchanges its bootstrap token for a certificate of
/// its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SigningRequest {
    /// The request was created and approved, and the Node has registered.
    #[default]
    Approve,
    /// The request exists and is not approved: there is neither a Node nor a Lease yet.
    Pending,
    /// The request does not exist, or no longer exists, and the Node has registered.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_written_with_the_names_that_kubernetes_uses() {
        let machine: Machine = serde_json::from_value(serde_json::json!({
            "name": "aks-1",
            "providerID": "azure:///vm/aks-1",
            "internalIP": "10.1.0.4",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            "ready": {"notReady": "no network"},
            "csr": "pending",
        }))
        .unwrap();
        assert_eq!(machine.ready, Readiness::NotReady("no network".to_owned()));
        assert_eq!(machine.csr, SigningRequest::Pending);
        assert_eq!(machine.taints[0].key, "karpenter.sh/unregistered");
    }
}
