//! Converts machines, sizes and needs from and to the messages of the service.

use std::collections::BTreeMap;

use bringup_flex::class::Class;
use bringup_flex::hash;
use bringup_flex::offers::{self, Needs, Offer};
use bringup_flex::quantity::{mebibytes, thousandths};
use bringup_flex::requirements::Requirement;
use bringup_flex::sizes::{self, EVICTION, Size};
use bringup_objects::flex::AzureFlexMachine;
use bringup_objects::flex::machine::{ClaimReference, FlexMachineSpec, Image, Phase};
use kube::api::ObjectMeta;
use prost_types::Timestamp;

use crate::grpc::v1;
use crate::reconciler::nodes::CLAIM_LABEL;

const GPU: &str = "nvidia.com/gpu";
const PLACES: [&str; 3] =
    ["topology.kubernetes.io/region", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"];
/// Labels that Karpenter knows, but that no Node of bringup has.
const NEVER: [&str; 1] = ["node.kubernetes.io/windows-build"];
const GPU_COUNT: &str = "karpenter.azure.com/sku-gpu-count";
/// The taint of a Node that Karpenter has not registered yet.
const UNREGISTERED: &str = "karpenter.sh/unregistered:NoExecute";

pub(super) fn requirements(asked: &[v1::Requirement]) -> Result<Vec<Requirement>, String> {
    let read = |one: &v1::Requirement| Requirement::read(&one.key, &one.operator, &one.values);
    asked.iter().map(|one| read(one).map_err(|error| error.to_string())).collect()
}

pub(super) fn needs(requests: &BTreeMap<String, String>) -> Result<Needs, String> {
    let text = |name: &str| requests.get(name).map_or("0", String::as_str);
    let wrong = |name: &str| format!("requests: `{}` of {name} is not a quantity", text(name));
    let count = |name: &str| {
        let read = thousandths(text(name)).map(|it| it.div_ceil(1_000));
        read.and_then(|it| u64::try_from(it).ok()).ok_or_else(|| wrong(name))
    };
    let cpu = thousandths(text("cpu")).and_then(|it| u64::try_from(it).ok());
    Ok(Needs {
        cpu: cpu.ok_or_else(|| wrong("cpu"))?,
        memory: mebibytes(text("memory")).ok_or_else(|| wrong("memory"))?,
        storage: mebibytes(text("ephemeral-storage")).ok_or_else(|| wrong("ephemeral-storage"))?,
        gpus: count(GPU)?,
        pods: count("pods")?,
    })
}

pub(super) fn machine(
    claim: &v1::Claim,
    class: &Class,
    offer: &Offer,
    cluster: &str,
) -> AzureFlexMachine {
    let mut labels: BTreeMap<String, String> =
        claim.labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let resolved = offers::labels(class, offer);
    labels.extend(resolved.into_iter().map(|(name, value)| (name.to_owned(), value)));
    for (name, value) in [
        (CLAIM_LABEL, claim.name.as_str()),
        // Azure's own cloud controller leaves such a Node alone.
        ("kubernetes.azure.com/managed", "false"),
        ("kubernetes.azure.com/cluster", cluster),
        ("kubernetes.azure.com/mode", "user"),
        ("aks.azure.com/stretch-managed", "true"),
        ("aks.azure.com/cloud", "azure"),
        ("aks.azure.com/region", &class.location),
        ("aks.azure.com/instance-type", &offer.size.name.to_ascii_lowercase()),
    ] {
        labels.insert(name.to_owned(), value.to_owned());
    }
    let taints = claim.taints.iter().chain(&claim.startup_taints).map(|taint| {
        let v1::Taint { key, value, effect } = taint;
        if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
    });
    AzureFlexMachine {
        metadata: ObjectMeta {
            name: Some(claim.name.clone()),
            annotations: Some(BTreeMap::from([
                (hash::ANNOTATION.to_owned(), hash::of(class)),
                (hash::VERSION_ANNOTATION.to_owned(), hash::VERSION.to_owned()),
            ])),
            ..ObjectMeta::default()
        },
        spec: FlexMachineSpec {
            node_class: claim.node_class.clone(),
            vm_size: offer.size.name.to_owned(),
            zone: offer.zone.clone(),
            capacity_type: Some(offer.capacity_type.into()),
            claim_ref: Some(ClaimReference { name: claim.name.clone(), uid: claim.uid.clone() }),
            node_pool: Some(claim.node_pool.clone()).filter(|pool| !pool.is_empty()),
            labels,
            taints: taints.chain([UNREGISTERED.to_owned()]).collect(),
        },
        status: None,
    }
}

/// Whether the VM may exist in Azure without being shown yet.
pub(super) fn is_coming(machine: &AzureFlexMachine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.phase < Phase::Running)
}

/// The instance that represents a machine to Karpenter.
pub(super) fn instance(machine: &AzureFlexMachine) -> v1::Instance {
    let status = machine.status.clone().unwrap_or_default();
    let size = sizes::find(&machine.spec.vm_size);
    let place = status.place.unwrap_or_default();
    let (disk, pods) = (place.os_disk_size_gb, place.max_pods);
    let image_id = match place.image {
        Image::Id(id) => id,
        Image::Marketplace { publisher, offer, sku, version } => {
            [publisher, offer, sku, version].join(":")
        }
    };
    let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let annotations = machine.metadata.annotations.iter().flatten();
    v1::Instance {
        provider_id: status.provider_id.unwrap_or_default(),
        claim: machine.spec.claim_ref.as_ref().map(|claim| claim.name.clone()).unwrap_or_default(),
        labels: machine.spec.labels.clone().into_iter().collect(),
        annotations: annotations
            .filter(|(name, _)| {
                [hash::ANNOTATION, hash::VERSION_ANNOTATION].contains(&name.as_str())
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        image_id,
        capacity: size.map(|size| capacity(size, disk, pods)).unwrap_or_default(),
        allocatable: size.map(|size| allocatable(size, disk, pods)).unwrap_or_default(),
        created_at: created.map(|at| Timestamp { seconds: at.as_second(), nanos: 0 }),
        deleting: machine.metadata.deletion_timestamp.is_some() || status.phase.is_cleaning(),
    }
}

fn amounts<const N: usize>(all: [(&str, String); N]) -> BTreeMap<String, String> {
    all.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect()
}

fn with_gpus(mut all: BTreeMap<String, String>, size: &Size) -> BTreeMap<String, String> {
    if size.gpus > 0 {
        all.insert(GPU.to_owned(), size.gpus.to_string());
    }
    all
}

fn capacity(size: &Size, disk: i32, pods: i32) -> BTreeMap<String, String> {
    let all = amounts([
        ("cpu", size.cpus.to_string()),
        ("memory", format!("{}Gi", size.memory)),
        ("ephemeral-storage", format!("{disk}Gi")),
        ("pods", pods.to_string()),
    ]);
    with_gpus(all, size)
}

fn allocatable(size: &Size, disk: i32, pods: i32) -> BTreeMap<String, String> {
    let all = amounts([
        ("cpu", format!("{}m", size.allocatable_cpu())),
        ("memory", format!("{}Mi", size.allocatable_memory())),
        ("ephemeral-storage", format!("{disk}Gi")),
        ("pods", pods.to_string()),
    ]);
    with_gpus(all, size)
}

/// Every size, with its offerings.
pub(super) fn instance_types(class: &Class, all: &[Offer]) -> Vec<v1::InstanceType> {
    let mut sizes: Vec<&'static Size> = Vec::new();
    for offer in all {
        if !sizes.iter().any(|size| size.name == offer.size.name) {
            sizes.push(offer.size);
        }
    }
    let of = |size: &'static Size| all.iter().filter(move |offer| offer.size.name == size.name);
    sizes
        .into_iter()
        .map(|size| instance_type(class, size, &of(size).collect::<Vec<_>>()))
        .collect()
}

fn instance_type(class: &Class, size: &Size, all: &[&Offer]) -> v1::InstanceType {
    let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for offer in all {
        for (name, value) in offers::labels(class, offer) {
            let known = values.entry(name).or_default();
            if !known.contains(&value) {
                known.push(value);
            }
        }
    }
    let mut requirements: Vec<v1::Requirement> =
        values.into_iter().map(|(name, values)| requirement(name, "In", values)).collect();
    let absent = NEVER.into_iter().chain((size.gpus == 0).then_some(GPU_COUNT));
    requirements.extend(absent.map(|name| requirement(name, "DoesNotExist", Vec::new())));
    let offerings = all.iter().map(|offer| {
        let labels = offers::labels(class, offer);
        let place = PLACES
            .iter()
            .filter_map(|name| Some(requirement(name, "In", vec![labels.get(name)?.clone()])));
        v1::Offering {
            requirements: place.collect(),
            price: offer.price,
            available: offer.available,
        }
    });
    v1::InstanceType {
        name: size.name.to_owned(),
        requirements,
        offerings: offerings.collect(),
        capacity: capacity(size, class.os_disk, class.max_pods),
        kube_reserved: amounts([
            ("cpu", format!("{}m", size.reserved_cpu())),
            ("memory", format!("{}Mi", size.reserved_memory())),
        ]),
        system_reserved: BTreeMap::new(),
        eviction_threshold: amounts([("memory", format!("{EVICTION}Mi"))]),
    }
}

fn requirement(key: &str, operator: &str, values: Vec<String>) -> v1::Requirement {
    v1::Requirement { key: key.to_owned(), operator: operator.to_owned(), values, min_values: None }
}
