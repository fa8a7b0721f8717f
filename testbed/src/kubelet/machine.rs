//! What the stand-in has to know about a machine.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

/// A machine whose kubelet runs, as far as the API server can tell.
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
    /// Taints that the Node registers with. Later changes are others' business:
    /// like a kubelet, the stand-in neither adds nor restores taints.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// What the machine has, by resource, such as `cpu`: a small machine's if nothing is said.
    #[serde(default)]
    pub capacity: BTreeMap<String, String>,
    /// What of that is left for pods: all of it if nothing is said.
    #[serde(default)]
    pub allocatable: BTreeMap<String, String>,
    /// What the kubelet says of itself.
    #[serde(default)]
    pub ready: Readiness,
    /// How far the kubelet got in asking for its certificate.
    #[serde(default)]
    pub csr: SigningRequest,
}

/// The Node's `Ready` condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Readiness {
    /// True.
    #[default]
    Ready,
    /// False, because of this, such as `container runtime network not ready`.
    NotReady(String),
}

/// The certificate signing request with which a kubelet trades its bootstrap
/// token for a certificate of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SigningRequest {
    /// It was made and approved, and the Node has registered.
    #[default]
    Approve,
    /// The CSR exists and is not approved: there is neither Node nor Lease yet.
    Pending,
    /// There is none, or none any more, and the Node has registered.
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
