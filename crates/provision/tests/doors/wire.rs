//! The field numbers of messages, which other projects have defined.

#![expect(clippy::unnecessary_wraps, reason = "what may be missing is written as it travels")]

use bringup_provision::grpc::plugin::agentpools::azure::flexvm::{
    AgentPool, AgentPoolSpec, AgentPoolStatus, ImageReference, Instance, InstanceSpec,
    InstanceStatus,
};
use bringup_provision::grpc::plugin::agentpools::{
    InstanceRestartRequest, agent_pools_server, instances_server,
};
use bringup_provision::grpc::plugin::api::{ListResponse, Metadata};
use bringup_provision::grpc::plugin::{capacity, kubeadm};
use prost::{Message, Name as _};
use prost_types::{Any, Timestamp};

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The numbers and wire types of the fields of a message, in the order of their encoding.
fn numbers(message: &impl Message) -> Vec<(u8, u8)> {
    let bytes = message.encode_to_vec();
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let (number, kind) = (bytes[at] >> 3, bytes[at] & 7);
        found.push((number, kind));
        // Every value here is shorter than 128 bytes.
        at += match kind {
            0 => 2,
            2 => 2 + usize::from(bytes[at + 1]),
            other => panic!("kind {other} of field {number}"),
        };
    }
    found
}

/// The wire types of a number, and of a value with a length.
const NUMBER: u8 = 0;
const LONG: u8 = 2;

#[test]
fn pools_have_the_fields_of_aks_flex() {
    let image = ImageReference {
        publisher: text("p"),
        offer: text("o"),
        sku: text("s"),
        version: text("v"),
    };
    assert_eq!(numbers(&image), [(1, LONG), (2, LONG), (3, LONG), (4, LONG)]);
    let spec = AgentPoolSpec {
        subscription_id: text("a"),
        resource_group: text("b"),
        location: text("c"),
        subnet_id: text("d"),
        vm_size: text("e"),
        image_reference: Some(ImageReference::default()),
        image_id: text("f"),
        security_type: text("g"),
        os_disk_size_gb: Some(1),
        ssh_public_keys: vec!["h".to_owned()],
        allocate_public_ip: Some(true),
        tags: [("i".to_owned(), "j".to_owned())].into(),
        kubeadm: Some(kubeadm::Config::default()),
    };
    let kinds = [LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, NUMBER, LONG, NUMBER, LONG, LONG];
    assert_eq!(numbers(&spec), (1..).zip(kinds).collect::<Vec<_>>());
    // The values in the expected positions.
    let bytes = spec.encode_to_vec();
    assert!(bytes.starts_with(b"\x0a\x01a\x12\x01b\x1a\x01c\x22\x01d\x2a\x01e\x32\x00\x3a\x01f"));
    let status = AgentPoolStatus {
        vm_resource_id: text("vm"),
        created_at: Some(Timestamp { seconds: 5, nanos: 0 }),
    };
    assert_eq!(status.encode_to_vec(), b"\x0a\x02vm\x12\x02\x08\x05");
    let metadata = Metadata { r#type: text("t"), id: text("i") };
    assert_eq!(metadata.encode_to_vec(), b"\x0a\x01t\x12\x01i");
    let pool = AgentPool {
        metadata: Some(metadata.clone()),
        spec: Some(AgentPoolSpec::default()),
        status: Some(AgentPoolStatus::default()),
    };
    assert_eq!(pool.encode_to_vec(), b"\x0a\x06\x0a\x01t\x12\x01i\x12\x00\x1a\x00");
    let instance = Instance {
        metadata: Some(metadata),
        spec: Some(InstanceSpec {}),
        status: Some(InstanceStatus {}),
    };
    assert_eq!(instance.encode_to_vec(), pool.encode_to_vec());
    assert_eq!(AgentPool::full_name(), "agentpools.azure.flexvm.AgentPool");
    assert_eq!(Instance::full_name(), "agentpools.azure.flexvm.Instance");
}

#[test]
fn what_pools_are_made_of_has_the_fields_of_aks_flex() {
    let config = kubeadm::Config {
        server: text("s"),
        certificate_authority_data: Some(b"c".to_vec()),
        token: text("t"),
        node_labels: [("k".to_owned(), "v".to_owned())].into(),
        node_ip: text("i"),
        register_with_taints: vec![kubeadm::Taint {
            key: text("k"),
            value: text("v"),
            effect: text("e"),
        }],
        max_pods_per_node: Some(9),
    };
    assert_eq!(
        config.encode_to_vec(),
        b"\x0a\x01s\x12\x01c\x1a\x01t\x22\x06\x0a\x01k\x12\x01v\x2a\x01i\x32\x09\x0a\x01k\x12\x01v\x1a\x01e\x38\x09"
    );
    let config = capacity::Config {
        capacity: Some(3),
        capacity_type: Some(capacity::CapacityType::Reserved.into()),
    };
    assert_eq!(config.encode_to_vec(), b"\x08\x03\x10\x03");
    // A field with the value zero is still encoded.
    let unset = capacity::Config { capacity: Some(0), capacity_type: None };
    assert_eq!(unset.encode_to_vec(), b"\x08\x00");
    let item = Any { type_url: "u".to_owned(), value: b"v".to_vec() };
    let list = ListResponse { items: vec![item] };
    assert_eq!(list.encode_to_vec(), b"\x0a\x06\x0a\x01u\x12\x01v");
    assert_eq!(InstanceRestartRequest { id: text("i") }.encode_to_vec(), b"\x0a\x01i");
    assert_eq!(agent_pools_server::SERVICE_NAME, "agentpools.AgentPools");
    assert_eq!(instances_server::SERVICE_NAME, "agentpools.Instances");
}
