//! Requests that Azure refuses: reservations, quota, capacity, access, limits.

mod common;

use common::{Client, SUBSCRIPTION, disk, nic, vm, vm_body};

#[test]
fn a_refused_vm_keeps_its_nic_reserved_for_180_seconds() {
    let client = Client::new("quotas: [{region: eastus, family: standardDSv5Family, limit: 2}]");
    client.put_nic("a");
    let refused = client.put(&vm("a"), &vm_body("a", "1"));
    assert_eq!((refused.status, refused.error()), (409, "OperationNotAllowed"));
    assert!(
        refused.message().contains("exceeding approved standardDSv5Family Cores quota"),
        "{refused:?}"
    );
    assert!(refused.message().contains("Current Limit: 2, Current Usage: 0, Additional Required: 4, (Minimum) New Limit Required: 4"));
    assert_eq!(client.get(&vm("a")).status, 404);

    client.advance(179);
    let kept = client.delete(&nic("a"));
    assert_eq!((kept.status, kept.error()), (400, "NicReservedForAnotherVm"));
    client.advance(2);
    let deleted = client.delete(&nic("a"));
    assert_eq!(deleted.status, 202);
    assert_eq!(client.finish(&deleted)["status"], "Succeeded");
    client.advance(5);
    assert_eq!(client.get(&nic("a")).status, 404);
    assert_eq!(client.delete(&nic("a")).status, 204);
}

#[test]
fn a_reservation_starts_anew_with_each_attempt_and_lets_the_same_vm_through() {
    let client = Client::new("quotas: [{region: eastus, family: cores, limit: 2}]");
    client.put_nic("a");
    client.put(&vm("a"), &vm_body("a", "1"));
    client.advance(120);
    let again = client.put(&vm("a"), &vm_body("a", "1"));
    assert!(again.message().contains("Total Regional Cores quota"), "{again:?}");
    client.advance(120);
    assert_eq!(client.delete(&nic("a")).error(), "NicReservedForAnotherVm");
    let mut other = vm_body("b", "1");
    other["properties"]["networkProfile"]["networkInterfaces"][0]["id"] = nic("a").into();
    assert_eq!(client.put(&vm("b"), &other).error(), "NicReservedForAnotherVm");
}

#[test]
fn quota_counts_what_is_in_use_and_spot_apart() {
    let client = Client::new(
        "quotas: [{region: eastus, family: cores, limit: 4}, {region: eastus, family: lowPriorityCores, limit: 0}]",
    );
    client.create_vm("a", "1");
    client.put_nic("b");
    assert_eq!(client.put(&vm("b"), &vm_body("b", "1")).status, 409);
    client.put_nic("c");
    let mut spot = vm_body("c", "1");
    spot["properties"]["priority"] = "Spot".into();
    assert!(client.put(&vm("c"), &spot).message().contains("LowPriorityCores quota"));
    let usages =
        client.get(&format!("{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/usages"));
    assert_eq!(usages.body["value"][0]["currentValue"], 4);
    client.finish(&client.delete(&format!("{}?forceDeletion=true", vm("a"))));
    assert_eq!(client.put(&vm("b"), &vm_body("b", "1")).status, 201);
}

#[test]
fn a_size_without_capacity_is_accepted_and_then_fails_to_be_allocated() {
    let yaml = "capacity: [{region: eastus, size: Standard_D4s_v5, available: 1, until: 1h}]";
    let client = Client::new(yaml);
    client.finish(&client.create_vm("a", "1"));
    let put = client.create_vm("b", "1");
    assert_eq!(client.finish(&put)["error"]["code"], "AllocationFailed");
    assert_eq!(client.get(&vm("b")).body["properties"]["provisioningState"], "Failed");
    assert_eq!(client.get(&disk("b")).status, 200, "the disk is left");
    assert_eq!(client.delete(&nic("b")).error(), "NicInUse");

    client.finish(&client.delete(&vm("b")));
    client.advance(60);
    assert_eq!(client.get(&disk("b")).status, 404);
    assert_eq!(client.get(&nic("b")).status, 404);

    client.advance(3600);
    assert_eq!(client.finish(&client.create_vm("c", "1"))["status"], "Succeeded");
}

#[test]
fn a_limit_of_capacity_that_is_lifted_refuses_nothing_more() {
    let client = Client::new("capacity: [{region: eastus, size: Standard_D4s_v5}]");
    assert_eq!(client.finish(&client.create_vm("a", "1"))["error"]["code"], "AllocationFailed");
    client.simulator.with(|azure| azure.lift_capacity_limit("EastUS", "standard_d4s_v5"));
    assert_eq!(client.finish(&client.create_vm("b", "1"))["status"], "Succeeded");
}

#[test]
fn a_zonal_vm_fails_by_zone() {
    let client = Client::new("capacity: [{region: eastus, zone: '2', size: Standard_D4s_v5}]");
    client.put_nic("a");
    let mut body = vm_body("a", "1");
    body["zones"] = serde_json::json!(["2"]);
    let put = client.put(&vm("a"), &body);
    assert_eq!(client.finish(&put)["error"]["code"], "ZonalAllocationFailed");
    client.put_nic("b");
    body["zones"] = serde_json::json!(["1"]);
    body["properties"]["networkProfile"]["networkInterfaces"][0]["id"] = nic("b").into();
    assert_eq!(client.finish(&client.put(&vm("b"), &body))["status"], "Succeeded");
}

#[test]
fn a_restricted_size_is_refused_on_the_put_and_listed_as_such() {
    let client =
        Client::new("capacity: [{region: eastus, size: Standard_D4s_v5, restricted: true}]");
    client.put_nic("a");
    assert_eq!(client.put(&vm("a"), &vm_body("a", "1")).error(), "SkuNotAvailable");
    let skus = client.get(&format!(
        "{SUBSCRIPTION}/providers/Microsoft.Compute/skus?$filter=location%20eq%20'eastus'"
    ));
    let found = skus.body["value"]
        .as_array()
        .unwrap()
        .iter()
        .find(|sku| sku["name"] == "Standard_D4s_v5")
        .unwrap();
    assert_eq!(found["restrictions"][0]["reasonCode"], "NotAvailableForSubscription");
}

#[test]
fn a_rule_can_refuse_with_any_error() {
    let yaml = "
rules:
  - name: policy
    when: {namePrefix: p}
    refuse: {status: 403, code: RequestDisallowedByPolicy, message: 'Resource was disallowed by policy.'}
  - name: later
    refuse: {code: OverconstrainedAllocationRequest, message: 'Allocation failed. VM(s) with the following constraints cannot be allocated.'}
";
    let client = Client::new(yaml);
    client.put_nic("p");
    assert_eq!(client.put(&vm("p"), &vm_body("p", "1")).error(), "RequestDisallowedByPolicy");
    let put = client.create_vm("q", "1");
    assert_eq!(client.finish(&put)["error"]["code"], "OverconstrainedAllocationRequest");
}

#[test]
fn bad_bodies_are_refused_with_what_is_wrong() {
    let client = Client::new("resourceGroups: [MC_rg1_aks1_eastus, rg-net]");
    client.put_nic("a");
    let mut body = vm_body("a", "1");
    body["properties"]["osProfile"]["linuxConfiguration"] = serde_json::json!({});
    assert_eq!(client.put(&vm("a"), &body).body["error"]["target"], "linuxConfiguration");
    body["properties"]["hardwareProfile"]["vmSize"] = "Standard_Nonsense".into();
    assert_eq!(client.put(&vm("a"), &body).body["error"]["target"], "vmSize");
    let absent = format!(
        "{SUBSCRIPTION}/resourceGroups/nowhere/providers/Microsoft.Compute/virtualMachines/a"
    );
    assert_eq!(client.get(&absent).error(), "ResourceGroupNotFound");
    assert_eq!(client.send("GET", &vm("a"), None).error(), "MissingApiVersionParameter");
    assert_eq!(
        client.send("GET", &format!("{}?api-version=latest", vm("a")), None).error(),
        "InvalidApiVersionParameter"
    );
}

#[test]
fn a_changed_ssh_key_is_refused_and_changed_tags_are_not() {
    let client = Client::new("");
    client.finish(&client.create_vm("a", "1"));
    let mut body = vm_body("a", "1");
    body["tags"] = serde_json::json!({ "new": "tag" });
    let put = client.put(&vm("a"), &body);
    assert_eq!(put.status, 200);
    client.finish(&put);
    assert_eq!(client.get(&vm("a")).body["tags"]["new"], "tag");
    body["properties"]["osProfile"]["linuxConfiguration"]["ssh"]["publicKeys"][0]["keyData"] =
        "other".into();
    assert_eq!(client.put(&vm("a"), &body).error(), "PropertyChangeNotAllowed");
}

#[test]
fn a_second_custom_script_under_another_name_is_refused() {
    for status in [400, 409] {
        let client = Client::new(&format!("quirks: {{secondCustomScript: {status}}}"));
        client.finish(&client.create_vm("a", "1"));
        client.put_cse("a");
        let body = serde_json::json!({ "location": "eastus", "properties": { "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript" } });
        let second = client.put(&format!("{}/extensions/other", vm("a")), &body);
        assert_eq!(second.status, status);
        assert!(
            second.message().starts_with("Multiple VMExtensions per handler not supported"),
            "{second:?}"
        );
    }
}

#[test]
fn a_full_subnet_refuses_the_nic_until_an_address_is_free() {
    let client = Client::new("subnets: [{prefix: 10.1.0.0/29}]");
    for name in ["a", "b", "c"] {
        assert_eq!(client.put_nic(name).status, 201);
    }
    assert_eq!(client.put_nic("d").error(), "SubnetIsFull");
    client.finish(&client.delete(&nic("b")));
    assert_eq!(client.put_nic("d").status, 201);
}

#[test]
fn reads_of_one_vm_are_limited_and_say_so_in_headers() {
    let client = Client::new("");
    client.finish(&client.create_vm("a", "1"));
    client.advance(600);
    let first = client.get(&vm("a"));
    assert!(
        first
            .header("x-ms-ratelimit-remaining-resource")
            .contains("Microsoft.Compute/LowCostGetResource;35"),
        "{first:?}"
    );
    let refused = (0..100).map(|_| client.get(&vm("a"))).find(|seen| seen.status == 429).unwrap();
    assert_eq!(refused.body["code"], "OperationNotAllowed", "compute's 429 has no outer error");
    assert_eq!(refused.body["details"][0]["target"], "LowCostGetResource");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    client.advance(wait);
    assert_eq!(client.get(&vm("a")).status, 200);
}

#[test]
fn without_a_token_there_is_no_answer_but_401() {
    let client = Client::new("");
    let request = http::Request::get(format!("{}?api-version=2024-11-01", vm("a")))
        .body(bytes::Bytes::new())
        .unwrap();
    let bringup_azure_sim::azure::Delivery::Response(response) =
        client.simulator.answer(&request).delivery
    else {
        panic!()
    };
    assert_eq!(response.status(), 401);
    assert!(response.headers().contains_key("www-authenticate"));
}
