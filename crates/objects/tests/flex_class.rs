//! What a class may say, by the rules that its definition carries.

use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use kube::core::{CustomResourceExt as _, ObjectMeta};
use serde_json::{Value, json};

fn valid() -> Value {
    json!({
        "subscriptionID": "00000000-0000-0000-0000-000000000000",
        "location": "eastus2",
        "resourceGroup": "rg-flex",
        "subnetID": "/subscriptions/s/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes",
    })
}

/// What is wrong with a class that has these fields beside the valid ones.
fn wrong(changes: &Value) -> Option<String> {
    let mut spec = valid();
    for (name, value) in changes.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    let spec = match serde_json::from_value(spec) {
        Ok(spec) => spec,
        Err(error) => return Some(error.to_string()),
    };
    let class = AzureFlexNodeClass { metadata: ObjectMeta::default(), spec, status: None };
    class.validate_cel().err().map(|errors| errors.to_string())
}

#[test]
fn a_class_needs_no_more_than_where_its_nodes_are() {
    assert_eq!(wrong(&json!({})), None);
    let all = json!({
        "location": "East US 2",
        "imageReference": { "publisher": "p", "offer": "o", "sku": "s" },
        "securityType": "Standard", "osDiskSizeGB": 30, "maxPodsPerNode": 250,
        "sshPublicKeys": ["ssh-ed25519 AAAA me@here"], "allocateNodePublicIP": false,
        "tags": { "team": "a" }, "kubernetesVersion": "v1.34.2", "bootTimeout": "20m",
        "launchTimeout": "5m30s", "bootDiagnostics": "Disabled", "capacityType": "spot",
        "hunting": { "enabled": true, "maxAttemptsPerHour": 60 }, "zones": ["1", "3"],
    });
    assert_eq!(wrong(&all), None);
    let gallery = "/CommunityGalleries/g/images/i/versions/1.0.0";
    assert_eq!(wrong(&json!({ "imageID": gallery })), None);
}

#[test]
fn every_field_that_is_wrong_is_refused_by_its_name() {
    let image = json!({ "publisher": "p", "offer": "o", "sku": "s" });
    let many: serde_json::Map<String, Value> =
        (0..41).map(|number| (format!("t{number}"), json!(""))).collect();
    for (field, changes) in [
        ("subscriptionID", json!({ "subscriptionID": "mine" })),
        ("location", json!({ "location": "east-us" })),
        ("location", json!({ "location": "" })),
        ("resourceGroup", json!({ "resourceGroup": "ends." })),
        ("resourceGroup", json!({ "resourceGroup": "a/b" })),
        ("resourceGroup", json!({ "resourceGroup": "x".repeat(91) })),
        (
            "subnetID",
            json!({ "subnetID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v" }),
        ),
        (
            "imageID",
            json!({ "imageReference": image, "imageID": "/CommunityGalleries/g/images/i" }),
        ),
        ("imageID", json!({ "imageID": "ubuntu" })),
        (
            "imageReference",
            json!({ "imageReference": { "publisher": "p", "offer": "", "sku": "s" } }),
        ),
        (
            "imageReference",
            json!({ "imageReference": { "publisher": "p", "offer": "o", "sku": "s", "version": "" } }),
        ),
        ("securityType", json!({ "securityType": "TrustedLaunch" })),
        ("osDiskSizeGB", json!({ "osDiskSizeGB": 29 })),
        ("osDiskSizeGB", json!({ "osDiskSizeGB": 4096 })),
        ("sshPublicKeys", json!({ "sshPublicKeys": ["my key"] })),
        ("allocateNodePublicIP", json!({ "allocateNodePublicIP": true })),
        ("maxPodsPerNode", json!({ "maxPodsPerNode": 9 })),
        ("maxPodsPerNode", json!({ "maxPodsPerNode": 251 })),
        ("tags", json!({ "tags": many })),
        ("tags", json!({ "tags": { "a/b": "" } })),
        ("tags", json!({ "tags": { "a\\b": "" } })),
        ("tags", json!({ "tags": { "Bringup-cluster": "other" } })),
        ("tags", json!({ "tags": { "a": "x".repeat(257) } })),
        ("kubernetesVersion", json!({ "kubernetesVersion": "latest" })),
        ("bootTimeout", json!({ "bootTimeout": "2m" })),
        ("launchTimeout", json!({ "launchTimeout": "61m" })),
        ("bootDiagnostics", json!({ "bootDiagnostics": "On" })),
        ("capacityType", json!({ "capacityType": "reserved" })),
        ("hunting", json!({ "hunting": { "enabled": true, "maxAttemptsPerHour": 0 } })),
        ("zones", json!({ "zones": ["eastus-1"] })),
    ] {
        let told = wrong(&changes);
        assert!(told.as_ref().is_some_and(|told| told.contains(field)), "{changes}: {told:?}");
    }
}

#[test]
fn both_definitions_are_cluster_scoped_and_have_a_status_of_their_own() {
    for definition in [AzureFlexNodeClass::crd(), AzureFlexMachine::crd()] {
        assert_eq!(definition.spec.scope, "Cluster");
        let version = &definition.spec.versions[0];
        assert!(version.subresources.as_ref().is_some_and(|more| more.status.is_some()));
    }
    let names = AzureFlexNodeClass::crd().spec.names;
    assert_eq!(names.short_names, Some(vec!["afnc".to_owned(), "afncs".to_owned()]));
    assert_eq!(names.categories, Some(vec!["karpenter".to_owned(), "nap".to_owned()]));
}
