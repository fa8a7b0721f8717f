//! Pools in the format of a client.

#![expect(clippy::unnecessary_wraps, reason = "what may be missing is written as it travels")]

use bringup_provision::grpc::plugin::agentpools::azure::flexvm::{AgentPool, AgentPoolSpec};
use bringup_provision::grpc::plugin::api::Metadata;
use bringup_provision::grpc::plugin::kubeadm::{Config, Taint};
use prost::{Message as _, Name as _};
use prost_types::Any;

/// The token of every pool in these tests.
pub(crate) const TOKEN: &str = "abcdef.0123456789abcdef";
/// The type of a pool.
pub(crate) const POOL: &str = "type.googleapis.com/agentpools.azure.flexvm.AgentPool";
/// The type of an instance.
pub(crate) const INSTANCE: &str = "type.googleapis.com/agentpools.azure.flexvm.Instance";
const SUBNET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes";

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A valid pool.
pub(crate) fn pool(id: &str) -> AgentPool {
    let taint = Taint { key: text("gpu"), value: text("h200"), effect: text("NoSchedule") };
    let kubeadm = Config {
        server: text("https://cluster.example:6443"),
        certificate_authority_data: Some(b"the authority".to_vec()),
        token: text(TOKEN),
        node_labels: [("team".to_owned(), "red".to_owned())].into(),
        register_with_taints: vec![taint],
        max_pods_per_node: Some(50),
        ..Config::default()
    };
    AgentPool {
        metadata: Some(Metadata { id: text(id), ..Metadata::default() }),
        spec: Some(AgentPoolSpec {
            subscription_id: text("00000000-0000-0000-0000-000000000000"),
            resource_group: text("rg-flex"),
            location: text("eastus2"),
            subnet_id: text(SUBNET),
            vm_size: text("Standard_D8s_v5"),
            security_type: text("Standard"),
            os_disk_size_gb: Some(256),
            tags: [("cost".to_owned(), "7".to_owned())].into(),
            kubeadm: Some(kubeadm),
            ..AgentPoolSpec::default()
        }),
        status: None,
    }
}

/// A valid pool with a changed spec.
pub(crate) fn changed(change: impl FnOnce(&mut AgentPoolSpec, &mut Config)) -> AgentPool {
    let mut pool = pool("changed");
    let spec = pool.spec.get_or_insert_default();
    let mut kubeadm = spec.kubeadm.take().unwrap_or_default();
    change(spec, &mut kubeadm);
    spec.kubeadm = Some(kubeadm);
    pool
}

pub(crate) fn packed(pool: &AgentPool) -> Option<Any> {
    Some(Any { type_url: POOL.to_owned(), value: pool.encode_to_vec() })
}

/// The pool in an answer.
pub(crate) fn unpacked(item: Option<&Any>) -> AgentPool {
    let item = item.expect("an item");
    assert_eq!(item.type_url, POOL);
    assert_eq!(AgentPool::type_url(), POOL);
    AgentPool::decode(item.value.as_slice()).expect("a pool")
}
