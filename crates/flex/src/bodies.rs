//! Bodies of requests to ARM.

use std::collections::BTreeMap;

use bringup_objects::flex::machine::{AzureFlexMachine, Image, Place};
use serde_json::{Value, json};

use crate::names::{self, Owner};

/// The administrator, whom the image's own tools create; login with a password is disabled.
const ADMINISTRATOR: &str = "azureuser";

/// The tags of every resource of a machine.
pub fn tags(machine: &AzureFlexMachine, place: &Place, cluster: &str) -> BTreeMap<String, String> {
    let status = machine.status.as_ref();
    let created = status.and_then(|status| status.created_at.as_ref());
    let owner = Owner {
        cluster,
        machine: machine.metadata.name.as_deref().unwrap_or_default(),
        machine_uid: place.machine_uid.as_deref(),
        claim: machine.spec.claim_ref.as_ref(),
        pool: machine.spec.node_pool.as_deref(),
        attempt: status.map_or(1, |status| status.attempt),
        created: created.map(|time| time.0),
    };
    names::tags(owner, &place.tags)
}

/// The body of a request for a NIC.
pub fn nic(place: &Place, tags: &BTreeMap<String, String>) -> Value {
    json!({
        "location": place.location,
        "tags": tags,
        "properties": {
            "ipConfigurations": [{
                "name": "ipconfig",
                "properties": {
                    "primary": true,
                    "privateIPAllocationMethod": "Dynamic",
                    "subnet": { "id": place.subnet_id },
                },
            }],
        },
    })
}

/// The body of a request for a VM with its disk. Azure deletes NIC and disk with the VM.
pub fn vm(
    machine: &AzureFlexMachine,
    place: &Place,
    tags: &BTreeMap<String, String>,
    custom_data: &str,
) -> Value {
    let nic = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/networkInterfaces/{}",
        place.subscription_id, place.resource_group, place.nic
    );
    let keys: Vec<Value> = place
        .ssh_public_keys
        .iter()
        .map(|key| json!({ "path": format!("/home/{ADMINISTRATOR}/.ssh/authorized_keys"), "keyData": key }))
        .collect();
    let image = match &place.image {
        Image::Marketplace { publisher, offer, sku, version } => {
            json!({ "publisher": publisher, "offer": offer, "sku": sku, "version": version })
        }
        Image::Id(id) if id.to_ascii_lowercase().starts_with("/communitygalleries/") => {
            json!({ "communityGalleryImageId": id })
        }
        Image::Id(id) if id.to_ascii_lowercase().starts_with("/sharedgalleries/") => {
            json!({ "sharedGalleryImageId": id })
        }
        Image::Id(id) => json!({ "id": id }),
    };
    let mut body = json!({
        "location": place.location,
        "tags": tags,
        "properties": {
            "hardwareProfile": { "vmSize": machine.spec.vm_size },
            // Explicit, because Azure's default may be Trusted Launch.
            "securityProfile": { "securityType": "Standard" },
            "storageProfile": {
                "imageReference": image,
                "osDisk": {
                    "name": place.disk,
                    "createOption": "FromImage",
                    "deleteOption": "Delete",
                    "diskSizeGB": place.os_disk_size_gb,
                    "managedDisk": { "storageAccountType": "Premium_LRS" },
                },
            },
            "osProfile": {
                "computerName": place.vm,
                "adminUsername": ADMINISTRATOR,
                "customData": custom_data,
                "linuxConfiguration": {
                    "disablePasswordAuthentication": true,
                    "ssh": { "publicKeys": keys },
                },
            },
            "networkProfile": {
                "networkInterfaces": [{
                    "id": nic,
                    "properties": { "primary": true, "deleteOption": "Delete" },
                }],
            },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": place.boot_diagnostics } },
        },
    });
    if let Some(zone) = &machine.spec.zone {
        body["zones"] = json!([zone]);
    }
    if machine.spec.is_spot() {
        body["properties"]["priority"] = json!("Spot");
        body["properties"]["evictionPolicy"] = json!("Delete");
        body["properties"]["billingProfile"] = json!({ "maxPrice": -1 });
    }
    body
}
