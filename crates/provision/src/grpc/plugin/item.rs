//! Converts between items of the plugin and pools.

use std::collections::BTreeSet;

use bringup_flex::class::Class;
use bringup_flex::sizes;
use bringup_objects::flex::FlexNodeClassSpec;
use bringup_objects::flex::class::ImageReference;
use prost::{Message as _, Name};
use prost_types::{Any, Timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tonic::Status;

use super::agentpools::azure::flexvm::{self, AgentPool, AgentPoolSpec, AgentPoolStatus};
use super::api::Metadata;
use super::kubeadm::{Config, Taint};
use super::pools::{Pool, Stored};
use crate::grpc::refusal;

/// The most characters in an ID.
const LONGEST_ID: usize = 253;

/// The pool that an item describes, or an error with every wrong field.
pub(super) fn wanted(item: Option<&Any>) -> Result<Pool, Status> {
    let item = item.ok_or_else(|| wrong("item", "it is missing"))?;
    let name = item.type_url.rsplit('/').next().unwrap_or_default();
    if name != AgentPool::full_name() {
        let what = format!("`{}` is not {}", item.type_url, AgentPool::type_url());
        return Err(wrong("item.type_url", &what));
    }
    let pool = AgentPool::decode(item.value.as_slice())
        .map_err(|error| wrong("item.value", &format!("it cannot be read: {error}")))?;
    let mut faults = Vec::new();
    let mut say = |field: &str, what: String| faults.push(format!("{field}: {what}"));
    let id = pool.metadata.and_then(|metadata| metadata.id).unwrap_or_default();
    if id.is_empty() || id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        say("metadata.id", format!("it must have 1 to {LONGEST_ID} characters"));
    }
    let spec = pool.spec.unwrap_or_default();
    let kubeadm = spec.kubeadm.clone().unwrap_or_default();
    let class = class(&spec, &kubeadm);
    for fault in Class::of(&class).err().into_iter().flatten() {
        say(field(fault.field), fault.what);
    }
    let size = spec.vm_size.unwrap_or_default();
    if sizes::find(&size).is_none() {
        let known: Vec<&str> = sizes::SIZES.iter().map(|size| size.name).collect();
        say("spec.vm_size", format!("`{size}` is none of {}", known.join(", ")));
    }
    let missing = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    for (name, is_missing) in [
        ("server", missing(&kubeadm.server)),
        (
            "certificate_authority_data",
            kubeadm.certificate_authority_data.as_ref().is_none_or(Vec::is_empty),
        ),
        ("token", missing(&kubeadm.token)),
    ] {
        if is_missing {
            say(&format!("spec.kubeadm.{name}"), "it is missing".to_owned());
        }
    }
    if !missing(&kubeadm.node_ip) {
        say("spec.kubeadm.node_ip", "it is not supported: Azure chooses".to_owned());
    }
    let mut taints = Vec::new();
    for taint in &kubeadm.register_with_taints {
        match written(taint) {
            Ok(taint) => taints.push(taint),
            Err(what) => say("spec.kubeadm.register_with_taints", what),
        }
    }
    if !faults.is_empty() {
        return Err(refusal::wrong_request(faults.join("; ")));
    }
    Ok(Pool {
        id,
        class,
        size,
        labels: kubeadm.node_labels,
        taints,
        server: kubeadm.server.unwrap_or_default(),
        authority: kubeadm.certificate_authority_data.unwrap_or_default(),
    })
}

fn wrong(field: &str, what: &str) -> Status {
    refusal::wrong_request(format!("{field}: {what}"))
}

/// The value of a field that is set. An empty text counts as not set.
fn set(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn class(spec: &AgentPoolSpec, kubeadm: &Config) -> FlexNodeClassSpec {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    FlexNodeClassSpec {
        subscription_id: text(&spec.subscription_id),
        location: text(&spec.location),
        resource_group: text(&spec.resource_group),
        subnet_id: text(&spec.subnet_id),
        image_reference: spec.image_reference.as_ref().map(|image| ImageReference {
            publisher: text(&image.publisher),
            offer: text(&image.offer),
            sku: text(&image.sku),
            version: set(image.version.as_ref()),
        }),
        image_id: set(spec.image_id.as_ref()),
        security_type: set(spec.security_type.as_ref()),
        os_disk_size_gb: spec.os_disk_size_gb.filter(|size| *size != 0),
        ssh_public_keys: spec.ssh_public_keys.clone(),
        allocate_node_public_ip: spec.allocate_public_ip.filter(|wanted| *wanted),
        max_pods_per_node: kubeadm.max_pods_per_node.filter(|pods| *pods != 0),
        tags: spec.tags.clone(),
        ..FlexNodeClassSpec::default()
    }
}

/// The name of a class's field in an item.
fn field(name: &str) -> &str {
    match name {
        "subscriptionID" => "spec.subscription_id",
        "location" => "spec.location",
        "resourceGroup" => "spec.resource_group",
        "subnetID" => "spec.subnet_id",
        "imageReference" => "spec.image_reference",
        "imageID" => "spec.image_id",
        "securityType" => "spec.security_type",
        "osDiskSizeGB" => "spec.os_disk_size_gb",
        "sshPublicKeys" => "spec.ssh_public_keys",
        "allocateNodePublicIP" => "spec.allocate_public_ip",
        "maxPodsPerNode" => "spec.kubeadm.max_pods_per_node",
        "tags" => "spec.tags",
        // Items have no other fields of a class.
        other => other,
    }
}

/// A taint in the format of kubelet's option.
fn written(taint: &Taint) -> Result<String, String> {
    let (key, value, effect) = (taint.key(), taint.value(), taint.effect());
    let plain = |text: &str| !text.contains([':', '=', ',', ' ']);
    if key.is_empty() || !plain(key) || !plain(value) {
        return Err(format!("`{key}={value}` is not the key and value of a taint"));
    }
    if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(format!("`{effect}` is not NoSchedule, PreferNoSchedule or NoExecute"));
    }
    Ok(format!("{key}={value}:{effect}"))
}

/// A taint in the format of an item.
fn taint(written: &str) -> Taint {
    let (pair, effect) = written.rsplit_once(':').unwrap_or((written, ""));
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let [key, value, effect] = [key, value, effect].map(|part| Some(part.to_owned()));
    Taint { key, value, effect }
}

/// A pool as an item, without a token, because none is stored.
pub(super) fn pool_item(stored: &Stored) -> Any {
    let Stored { pool, vm_resource_id, created_at } = stored;
    let class = &pool.class;
    let kubeadm = Config {
        server: set(Some(&pool.server)),
        certificate_authority_data: Some(pool.authority.clone()),
        token: None,
        node_labels: pool.labels.clone(),
        node_ip: None,
        register_with_taints: pool.taints.iter().map(|written| taint(written)).collect(),
        max_pods_per_node: class.max_pods_per_node,
    };
    let spec = AgentPoolSpec {
        subscription_id: set(Some(&class.subscription_id)),
        resource_group: set(Some(&class.resource_group)),
        location: set(Some(&class.location)),
        subnet_id: set(Some(&class.subnet_id)),
        vm_size: set(Some(&pool.size)),
        image_reference: class.image_reference.clone().map(|image| flexvm::ImageReference {
            publisher: Some(image.publisher),
            offer: Some(image.offer),
            sku: Some(image.sku),
            version: image.version,
        }),
        image_id: class.image_id.clone(),
        security_type: class.security_type.clone(),
        os_disk_size_gb: class.os_disk_size_gb,
        ssh_public_keys: class.ssh_public_keys.clone(),
        allocate_public_ip: None,
        tags: class.tags.clone(),
        kubeadm: Some(kubeadm),
    };
    let created_at =
        Timestamp { seconds: created_at.as_second(), nanos: created_at.subsec_nanosecond() };
    let status =
        AgentPoolStatus { vm_resource_id: vm_resource_id.clone(), created_at: Some(created_at) };
    packed(&AgentPool {
        metadata: Some(metadata::<AgentPool>(pool.id.clone())),
        spec: Some(spec),
        status: Some(status),
    })
}

pub(super) fn instance_item(pool: &str) -> Any {
    packed(&flexvm::Instance {
        metadata: Some(metadata::<flexvm::Instance>(format!("{pool}/0"))),
        spec: Some(flexvm::InstanceSpec {}),
        status: Some(flexvm::InstanceStatus {}),
    })
}

fn metadata<M: Name>(id: String) -> Metadata {
    Metadata { r#type: Some(M::full_name()), id: Some(id) }
}

fn packed<M: Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec() }
}

/// Whether each of the given certificates is one of the cluster's certificate authority. The formatting of
/// the PEM does not matter.
pub fn same_authority(given: &[u8], own: &[u8]) -> bool {
    let read = |pem: &[u8]| {
        let all: Result<BTreeSet<Vec<u8>>, _> = CertificateDer::pem_slice_iter(pem)
            .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
            .collect();
        all.unwrap_or_default()
    };
    let given = read(given);
    !given.is_empty() && given.is_subset(&read(own))
}
