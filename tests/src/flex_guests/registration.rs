//! The registration of a node, from kubeadm's configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bringup_azure_sim::azure::JoinedNode;
use bringup_flex::sizes;
use bringup_testbed::kubelet::{Machine, Readiness, SigningRequest};
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;

/// The OS disk of a class that does not set its size.
const DISK: &str = "128Gi";

/// The part of kubeadm's `JoinConfiguration` that the Node shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The Node's name.
    pub name: String,
    /// Labels that kubelet sets.
    pub labels: BTreeMap<String, String>,
    /// The taints to register with.
    pub taints: Vec<Taint>,
    /// The provider ID.
    pub provider_id: String,
    /// The maximum number of pods.
    pub max_pods: String,
    /// The address of the node, if set.
    pub address: Option<IpAddr>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    node_registration: NodeRegistration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeRegistration {
    name: String,
    #[serde(default)]
    taints: Vec<Taint>,
    #[serde(default)]
    kubelet_extra_args: Vec<Flag>,
}

#[derive(Deserialize)]
struct Flag {
    name: String,
    value: String,
}

impl Registration {
    /// Reads a `JoinConfiguration`.
    pub fn read(text: &[u8]) -> Option<Self> {
        let Document { node_registration: told } = serde_json::from_slice(text).ok()?;
        let flag = |name: &str| {
            let flag = told.kubelet_extra_args.iter().find(|flag| flag.name == name);
            flag.map(|flag| flag.value.clone())
        };
        let labels = flag("node-labels").unwrap_or_default();
        let labels = labels.split(',').filter_map(|label| label.split_once('='));
        Some(Self {
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            provider_id: flag("provider-id").unwrap_or_default(),
            max_pods: flag("max-pods").unwrap_or_default(),
            address: flag("node-ip").and_then(|address| address.parse().ok()),
            name: told.name,
            taints: told.taints,
        })
    }

    /// The machine for a VM with this registration: its capacity follows from its size, and its allocatable
    /// resources from AKS's reservations.
    pub fn machine(self, vm: &JoinedNode) -> Option<Machine> {
        let size = sizes::find(&vm.size)?;
        let resources = |cpu: String, memory: String| {
            let mut resources = BTreeMap::from([
                ("cpu".to_owned(), cpu),
                ("memory".to_owned(), memory),
                ("ephemeral-storage".to_owned(), DISK.to_owned()),
                ("pods".to_owned(), self.max_pods.clone()),
            ]);
            if size.gpus > 0 {
                resources.insert("nvidia.com/gpu".to_owned(), size.gpus.to_string());
            }
            resources
        };
        Some(Machine {
            capacity: resources(size.cpus.to_string(), format!("{}Gi", size.memory)),
            allocatable: resources(
                format!("{}m", size.allocatable_cpu()),
                format!("{}Mi", size.allocatable_memory()),
            ),
            internal_ip: self.address.or_else(|| vm.internal_ip.parse().ok())?,
            name: self.name,
            provider_id: self.provider_id,
            labels: self.labels,
            taints: self.taints,
            ready: Readiness::Ready,
            // The stub of kubeadm has already checked the access to certificates.
            csr: SigningRequest::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_registers_with_what_kubeadm_was_told() {
        let text = br#"{"nodeRegistration": {
            "name": "gpu-1",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            "kubeletExtraArgs": [
                {"name": "node-labels", "value": "a=1,b="},
                {"name": "max-pods", "value": "60"},
                {"name": "provider-id", "value": "azure-flex:///vm"}
            ]
        }}"#;
        let read = Registration::read(text).unwrap();
        assert_eq!((read.name.as_str(), read.max_pods.as_str()), ("gpu-1", "60"));
        assert_eq!(
            read.labels,
            BTreeMap::from([("a", "1"), ("b", "")].map(|(k, v)| (k.to_owned(), v.to_owned())))
        );
        assert_eq!(read.taints[0].key, "karpenter.sh/unregistered");
        let vm: JoinedNode = JoinedNode {
            name: "gpu-1".to_owned(),
            provider_id: "azure:///vm".to_owned(),
            internal_ip: "10.1.0.4".to_owned(),
            size: "Standard_NC24ads_A100_v4".to_owned(),
            region: "eastus2".to_owned(),
            zone: None,
            image_version: None,
            tags: BTreeMap::new(),
            joined: jiff::Timestamp::UNIX_EPOCH,
        };
        let machine = read.machine(&vm).unwrap();
        assert_eq!(machine.provider_id, "azure-flex:///vm");
        assert_eq!(machine.capacity["nvidia.com/gpu"], "1");
        assert_eq!(machine.allocatable["cpu"], "23660m");
        assert_eq!(machine.allocatable["pods"], "60");
        assert_eq!(machine.internal_ip.to_string(), "10.1.0.4");
    }
}
