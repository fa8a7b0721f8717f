//! Responses with arbitrary values in their fields: parsing never fails as a whole, and never panics.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

use bringup_azure::model::{BootDiagnostics, Machine, VirtualMachine};
use proptest::prelude::*;
use serde_json::{Value, json};

fn whole() -> Value {
    json!({
        "id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a",
        "name": "a", "location": "eastus", "zones": ["1"], "tags": { "k": "v" },
        "properties": {
            "vmId": "1", "provisioningState": "Failed", "timeCreated": "2026-01-27T14:30:02.1234567+00:00",
            "hardwareProfile": { "vmSize": "x" },
            "storageProfile": { "imageReference": { "id": "i" }, "osDisk": { "osType": "Windows" } },
            "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
            "instanceView": {
                "computerName": "a",
                "vmAgent": { "vmAgentVersion": "2", "statuses": [{ "code": "ProvisioningState/succeeded" }], "extensionHandlers": [{ "type": "t", "status": { "code": "c" } }] },
                "extensions": [{ "name": "cse", "type": "P.CustomScript", "statuses": [{ "code": "ProvisioningState/failed/0", "level": "Error", "message": "m", "time": null }], "substatuses": [{ "code": "x" }] }],
                "statuses": [{ "code": "PowerState/running", "level": "Info" }],
            },
        },
        "resources": [{ "name": "cse", "properties": { "type": "CustomScript", "provisioningState": "Failed" } }],
    })
}

/// The JSON pointers of all places in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, inner)| (key.clone(), inner)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(nth, inner)| (nth.to_string(), inner)).collect()
        }
        _ => Vec::new(),
    };
    for (key, inner) in inner {
        places(inner, &format!("{at}/{key}"), found);
    }
}

#[test]
fn whatever_one_place_holds_instead_the_others_are_still_read() {
    let mut found = Vec::new();
    places(&whole(), "", &mut found);
    for place in found.iter().filter(|place| !place.is_empty()) {
        for odd in [json!(null), json!(7), json!("text"), json!([]), json!({}), json!([[null]])] {
            let mut answer = whole();
            *answer.pointer_mut(place).unwrap() = odd.clone();
            let seen = VirtualMachine::of(answer.clone());
            assert_eq!(seen.raw, answer);
            if !place.starts_with("/location") {
                assert_eq!(seen.location.as_deref(), Some("eastus"), "{place} = {odd}");
            }
            if !"/properties/vmId".starts_with(place.as_str()) {
                assert_eq!(seen.vm_id.as_deref(), Some("1"), "{place} = {odd}");
            }
            let _ = Machine::of(answer);
        }
    }
}

#[test]
fn the_parts_of_a_windows_machine_are_found() {
    let seen = VirtualMachine::of(whole());
    assert_eq!(seen.os, Some(bringup_azure::model::OsType::Windows));
    assert_eq!(seen.power_state.as_deref(), Some("running"));
    let [cse] = seen.extensions.as_slice() else { panic!("{:?}", seen.extensions) };
    assert_eq!((cse.statuses.len(), cse.substatuses.len()), (1, 1));
    assert_eq!(seen.boot_diagnostics, BootDiagnostics::Managed);
}

#[test]
fn an_instance_view_alone_will_do() {
    let view = whole().pointer("/properties/instanceView").unwrap().clone();
    let seen = VirtualMachine::of(view);
    assert_eq!(seen.computer_name.as_deref(), Some("a"));
    assert_eq!(seen.boot_diagnostics, BootDiagnostics::Unknown);
    assert_eq!(seen.power_state.as_deref(), Some("running"));
    assert!(seen.agent.unwrap().is_ready());
    assert!(seen.extensions[0].is_custom_script());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("properties".to_owned()),
        Just("instanceView".to_owned()),
        Just("statuses".to_owned()),
        Just("extensions".to_owned()),
        Just("status".to_owned()),
        Just("error".to_owned()),
        Just("details".to_owned()),
        Just("name".to_owned()),
        Just("vmAgent".to_owned()),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_makes_anything_panic(answer in any_json()) {
        let _ = VirtualMachine::of(answer.clone());
        let _ = Machine::of(answer.clone());
        let _ = bringup_azure::error::ArmFailure::of(&answer).chain();
    }
}
