//! Scale sets: uniform and flexible.

mod common;

use common::{Client, ORAS_MISSING, SUBSCRIPTION, group, subnet};
use serde_json::{Value, json};

fn body(mode: &str, capacity: u32, image_version: &str) -> Value {
    json!({
        "location": "eastus",
        "sku": { "name": "Standard_D4s_v5", "capacity": capacity },
        "properties": {
            "orchestrationMode": mode,
            "virtualMachineProfile": {
                "osProfile": {
                    "computerNamePrefix": "pool",
                    "customData": "c2VjcmV0",
                    "adminPassword": "secret",
                },
                "storageProfile": { "imageReference": { "version": image_version }, "osDisk": { "deleteOption": "Delete" } },
                "networkProfile": { "networkInterfaceConfigurations": [{
                    "name": "nic",
                    "properties": { "ipConfigurations": [{ "name": "ipconfig", "properties": { "subnet": { "id": subnet() } } }] },
                }] },
                "extensionProfile": { "extensions": [{
                    "name": "vmssCSE",
                    "properties": {
                        "publisher": "Microsoft.Azure.Extensions",
                        "type": "CustomScript",
                        "protectedSettings": { "commandToExecute": "secret" },
                    },
                }] },
            },
        },
    })
}

fn set() -> String {
    group("Microsoft.Compute/virtualMachineScaleSets/set")
}

#[test]
fn a_uniform_set_has_instances_under_it_that_join() {
    let client = Client::new("");
    let put = client.put(&set(), &body("Uniform", 2, "1"));
    assert!(!String::from_utf8_lossy(&put.bytes).contains("ecret"), "secrets never come back");
    assert_eq!(client.finish(&put)["status"], "Succeeded");
    client.advance(60);
    assert_eq!(client.node_names(), ["pool000000", "pool000001"]);
    let listed = client.get(&format!("{}/virtualMachines", set()));
    assert_eq!(listed.body["value"][1]["instanceId"], "1");
    let view = client.get(&format!("{}/virtualMachines/0/instanceView", set())).body;
    assert_eq!(view["extensions"][0]["name"], "vmssCSE");
    assert_eq!(view["computerName"], "pool000000");
    assert_eq!(
        client.get(&format!("{}/instanceView", set())).body["virtualMachine"]["statusesSummary"][0]
            ["count"],
        2
    );
}

#[test]
fn a_set_whose_script_fails_fails_with_its_error() {
    let client = Client::new(ORAS_MISSING);
    let put = client.put(&set(), &body("Uniform", 1, "202601.27.0"));
    let ended = client.finish(&put);
    assert_eq!(ended["error"]["code"], "VMExtensionProvisioningError");
    assert_eq!(client.get(&set()).body["properties"]["provisioningState"], "Failed");
}

#[test]
fn a_flexible_set_has_vms_beside_it_with_nics_of_their_own() {
    let client = Client::new("");
    client.finish(&client.put(&set(), &body("Flexible", 2, "1")));
    let filter = format!("'virtualMachineScaleSet/id'%20eq%20'{}'", set())
        .replace("'virtualMachineScaleSet/id'", "virtualMachineScaleSet/id");
    let path = format!(
        "{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines?$filter={filter}&$expand=instanceView"
    );
    let vms = client.get(&path).body["value"].as_array().unwrap().clone();
    assert_eq!(vms.len(), 2);
    assert!(vms[0]["name"].as_str().unwrap().starts_with("set_"));
    assert!(vms[0]["properties"]["instanceView"].is_object());
    assert_eq!(
        client.get(&group("Microsoft.Network/networkInterfaces")).body["value"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_set_scales_down_and_is_deleted_with_all_it_had() {
    let client = Client::new("");
    for mode in ["Uniform", "Flexible"] {
        client.finish(&client.put(&set(), &body(mode, 3, "1")));
        client.finish(&client.put(&set(), &body(mode, 1, "1")));
        client.advance(300);
        assert_eq!(client.node_names().len(), 1, "{mode}");
        assert_eq!(client.finish(&client.delete(&set()))["status"], "Succeeded");
        client.advance(300);
        assert_eq!(client.get(&set()).status, 404);
        let left = client.simulator.with(|azure| azure.resources());
        assert!(left.is_empty(), "{mode}: {left:?}");
    }
}
