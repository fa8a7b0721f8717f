//! The objects of a kubelet, made from a machine and the time. No I/O.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, OwnerReference, Time},
    },
};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use super::machine::{Machine, Readiness};
use crate::{Result, certificates};

/// Labels objects that the stand-in has created and may therefore delete.
pub(crate) const MARK: &str = "testbed.bringup.dev/stand-in-kubelet";

pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";
pub(crate) const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

const KUBELET_VERSION: &str = "v1.36.3";
const LEASE_SECONDS: i32 = 40;
const CAPACITY: [(&str, &str); 4] =
    [("cpu", "4"), ("memory", "16Gi"), ("ephemeral-storage", "128Gi"), ("pods", "110")];

/// The Node as a kubelet registers it: complete in one request.
pub(crate) fn node(machine: &Machine, now: Timestamp) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some(machine.name.clone()),
            labels: Some(labels(machine)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(machine.provider_id.clone()),
            taints: Some(machine.taints.clone()),
            ..NodeSpec::default()
        }),
        status: Some(node_status(machine, &[], now)),
    }
}

/// The status that the kubelet reports; a condition preserves the time of its last transition from `previous`
/// as long as its status is the same.
pub(crate) fn node_status(
    machine: &Machine,
    previous: &[NodeCondition],
    now: Timestamp,
) -> NodeStatus {
    let capacity = if machine.capacity.is_empty() {
        CAPACITY
            .iter()
            .map(|(resource, quantity)| ((*resource).to_owned(), Quantity((*quantity).to_owned())))
            .collect()
    } else {
        quantities(&machine.capacity)
    };
    let allocatable = if machine.allocatable.is_empty() {
        capacity.clone()
    } else {
        quantities(&machine.allocatable)
    };
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", machine.internal_ip.to_string()),
            address("Hostname", machine.name.clone()),
        ]),
        allocatable: Some(allocatable),
        capacity: Some(capacity),
        conditions: Some(conditions(machine, previous, now)),
        node_info: Some(NodeSystemInfo {
            architecture: "amd64".to_owned(),
            operating_system: "linux".to_owned(),
            kubelet_version: KUBELET_VERSION.to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn quantities(resources: &BTreeMap<String, String>) -> BTreeMap<String, Quantity> {
    resources.iter().map(|(name, quantity)| (name.clone(), Quantity(quantity.clone()))).collect()
}

/// The machine's labels, and those every kubelet sets.
pub(crate) fn labels(machine: &Machine) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), machine.name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
        (MARK.to_owned(), "true".to_owned()),
    ]);
    labels.extend(machine.labels.clone());
    labels
}

/// The Lease with which the kubelet of `node` shows that it is alive.
pub(crate) fn lease(node: &Node, now: Timestamp) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(node.name_any()),
            namespace: Some(LEASE_NAMESPACE.to_owned()),
            labels: Some(mark()),
            owner_references: node.uid().map(|uid| {
                vec![OwnerReference {
                    api_version: Node::api_version(&()).into_owned(),
                    kind: Node::kind(&()).into_owned(),
                    name: node.name_any(),
                    uid,
                    ..OwnerReference::default()
                }]
            }),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(node.name_any()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

/// The request for a client certificate, with a key made for it.
pub(crate) fn signing_request(node: &str) -> Result<CertificateSigningRequest> {
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta {
            name: Some(signing_request_name(node)),
            labels: Some(mark()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(certificates::node_request(node)?.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

const SIGNING_REQUEST_PREFIX: &str = "node-csr-";

/// A real kubelet lets the API server generate a name. This fixed name can be found again.
pub(crate) fn signing_request_name(node: &str) -> String {
    format!("{SIGNING_REQUEST_PREFIX}{node}")
}

/// The node that a request was made for.
pub(crate) fn requesting_node(request: &CertificateSigningRequest) -> Option<&str> {
    let name = request.metadata.name.as_deref()?;
    name.strip_prefix(SIGNING_REQUEST_PREFIX)
}

fn mark() -> BTreeMap<String, String> {
    BTreeMap::from([(MARK.to_owned(), "true".to_owned())])
}

fn address(type_: &str, address: String) -> NodeAddress {
    NodeAddress { address, type_: type_.to_owned() }
}

fn conditions(machine: &Machine, previous: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let (status, reason, message) = match &machine.ready {
        Readiness::Ready => ("True", "KubeletReady", "kubelet is posting ready status"),
        Readiness::NotReady(message) => ("False", "KubeletNotReady", message.as_str()),
    };
    [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", ""),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", ""),
        ("PIDPressure", "False", "KubeletHasSufficientPID", ""),
        ("Ready", status, reason, message),
    ]
    .into_iter()
    .map(|(type_, status, reason, message)| {
        let unchanged_since = previous
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == status)
            .and_then(|condition| condition.last_transition_time.clone());
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(unchanged_since.unwrap_or(Time(now))),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(ready: Readiness) -> Machine {
        Machine {
            name: "aks-1".to_owned(),
            provider_id: "azure:///vm/aks-1".to_owned(),
            internal_ip: [10, 1, 0, 4].into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            capacity: BTreeMap::new(),
            allocatable: BTreeMap::new(),
            ready,
            csr: super::super::SigningRequest::default(),
        }
    }

    fn transition_of_ready(conditions: &[NodeCondition]) -> Option<Timestamp> {
        let ready = conditions.iter().find(|it| it.type_ == "Ready")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    }

    #[test]
    fn a_condition_that_stays_the_same_keeps_its_transition_time() {
        let (first, second) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let before = conditions(&machine(Readiness::Ready), &[], first);
        let after = conditions(&machine(Readiness::Ready), &before, second);
        assert_eq!(transition_of_ready(&after), Some(first));
    }

    #[test]
    fn a_condition_that_changes_gets_a_new_transition_time() {
        let (first, second) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let before = conditions(&machine(Readiness::Ready), &[], first);
        let not_ready = machine(Readiness::NotReady("no network".to_owned()));
        let after = conditions(&not_ready, &before, second);
        assert_eq!(transition_of_ready(&after), Some(second));
    }

    #[test]
    fn a_machine_reports_what_it_has_and_what_is_left_of_it() {
        let mut large = machine(Readiness::Ready);
        large.capacity.insert("nvidia.com/gpu".to_owned(), "8".to_owned());
        let resources = |machine: &Machine| {
            let status = node_status(machine, &[], Timestamp::UNIX_EPOCH);
            (status.capacity.unwrap(), status.allocatable.unwrap())
        };
        let (capacity, allocatable) = resources(&large);
        assert_eq!(capacity["nvidia.com/gpu"].0, "8");
        assert_eq!(capacity, allocatable);
        large.allocatable.insert("nvidia.com/gpu".to_owned(), "7".to_owned());
        assert_eq!(resources(&large).1["nvidia.com/gpu"].0, "7");
        assert_eq!(resources(&machine(Readiness::Ready)).0["cpu"].0, "4");
    }

    #[test]
    fn a_label_of_the_machine_overrules_the_kubelets_own() {
        let mut windows = machine(Readiness::Ready);
        windows.labels.insert("kubernetes.io/os".to_owned(), "windows".to_owned());
        assert_eq!(labels(&windows)["kubernetes.io/os"], "windows");
    }

    #[test]
    fn the_node_of_a_request_is_found_by_its_name() {
        let request = signing_request("aks-1").unwrap();
        assert_eq!(requesting_node(&request), Some("aks-1"));
    }
}
