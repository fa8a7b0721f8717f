//! Operations, deletion, delayed views, and the services that a VM uses.

mod common;

use common::{Client, ORAS_MISSING, SUBSCRIPTION, disk, group, nic, vm, vm_body};
use serde_json::json;

#[test]
fn deleting_a_vm_takes_nic_and_disk_along_a_little_later() {
    let client = Client::new("");
    client.finish(&client.create_vm("a", "1"));
    assert_eq!(client.delete(&nic("a")).error(), "NicInUse");
    let deleted = client.delete(&format!("{}?forceDeletion=true", vm("a")));
    assert_eq!(deleted.status, 202);
    assert_eq!(client.instance_view("a")["statuses"][0]["code"], "ProvisioningState/deleting");
    assert_eq!(client.finish(&deleted)["status"], "Succeeded");
    client.advance(120);
    for path in [vm("a"), nic("a"), disk("a")] {
        assert_eq!(client.get(&path).status, 404, "{path}");
    }
    assert_eq!(client.delete(&vm("a")).status, 204);
}

#[test]
fn without_delete_option_nic_and_disk_stay_and_count_as_orphans() {
    let client = Client::new("");
    client.put_nic("a");
    let mut body = vm_body("a", "1");
    body["properties"]["networkProfile"]["networkInterfaces"][0]["properties"] = json!({});
    body["properties"]["storageProfile"]["osDisk"]["deleteOption"] = "Detach".into();
    client.finish(&client.put(&vm("a"), &body));
    client.finish(&client.delete(&vm("a")));
    client.advance(300);
    let orphans: Vec<&str> = client.simulator.with(|azure| {
        azure
            .resources()
            .into_iter()
            .filter(|resource| resource.orphan)
            .map(|resource| resource.kind)
            .collect()
    });
    assert_eq!(orphans, ["Microsoft.Network/networkInterfaces", "Microsoft.Compute/disks"]);
    assert_eq!(client.finish(&client.delete(&disk("a")))["status"], "Succeeded");
    assert_eq!(client.get(&nic("a")).status, 200);
}

#[test]
fn a_deleted_resource_still_answers_for_a_moment() {
    let client = Client::new("quirks: {shownAfterDelete: 5s}");
    client.put_nic("a");
    client.finish(&client.delete(&nic("a")));
    let gone = |client: &Client| client.get(&nic("a")).status == 404;
    assert_eq!(client.get(&nic("a")).body["properties"]["provisioningState"], "Deleting");
    client.advance(6);
    assert!(gone(&client));
}

#[test]
fn a_delete_preempts_the_operation_that_runs() {
    for (quirk, status) in [("canceled", "Canceled"), ("failed", "Failed")] {
        let client = Client::new(&format!("quirks: {{preemption: {quirk}}}"));
        let put = client.create_vm("a", "1");
        client.delete(&vm("a"));
        let ended = client.finish(&put);
        assert_eq!(ended["status"], status);
        assert_eq!(ended["error"]["code"], "OperationPreempted");
    }
    let client = Client::new("quirks: {preemption: conflict}");
    let put = client.create_vm("a", "1");
    assert_eq!(client.delete(&vm("a")).status, 409);
    assert_eq!(client.finish(&put)["status"], "Succeeded");
}

#[test]
fn an_operation_is_followed_by_its_stored_address_alone_until_that_expires() {
    let client = Client::new("quirks: {operationAddressLives: 1h}");
    let put = client.create_vm("a", "1");
    let address = put.header("azure-asyncoperation").to_owned();
    assert!(address.len() > 1500, "real addresses are long");
    client.advance(600);
    assert_eq!(client.send("GET", &address, None).body["status"], "Succeeded");
    client.advance(3600);
    assert_eq!(client.send("GET", &address, None).status, 404);
}

#[test]
fn location_answers_202_and_then_the_result() {
    let client = Client::new("");
    client.finish(&client.create_vm("a", "1"));
    let deleted = client.delete(&vm("a"));
    let address = deleted.header("location").to_owned();
    assert_eq!(client.send("GET", &address, None).status, 202);
    client.advance(600);
    assert_eq!(client.send("GET", &address, None).status, 204);
}

#[test]
fn a_vm_made_anew_under_the_same_name_is_another_vm() {
    let client = Client::new("");
    client.bootstrap("a", "1");
    let first = client.get(&vm("a")).body["properties"]["vmId"].clone();
    client.finish(&client.delete(&vm("a")));
    client.advance(60);
    client.create_vm("a", "1");
    assert_ne!(client.get(&vm("a")).body["properties"]["vmId"], first);
    client.advance(3600);
    assert!(client.node_names().is_empty(), "nothing of the old VM's life reaches the new one");
}

#[test]
fn the_extensions_of_a_vm_that_is_being_deleted_are_kept_or_dropped() {
    for (quirk, kept) in [("kept", true), ("dropped", false)] {
        let yaml = format!("{ORAS_MISSING}\nquirks: {{extensionsWhileDeleting: {quirk}}}");
        let client = Client::new(&yaml);
        client.bootstrap("a", "202601.27.0");
        client.delete(&vm("a"));
        assert_eq!(client.instance_view("a").get("extensions").is_some(), kept);
    }
}

#[test]
fn an_equal_extension_does_not_run_again_and_a_failed_one_can_be_deleted() {
    let client = Client::new(ORAS_MISSING);
    client.bootstrap("a", "202601.13.0");
    let again = client.put_cse("a");
    assert_eq!(again.status, 200);
    assert_eq!(client.finish(&again)["status"], "Succeeded");
    assert_eq!(client.log().matches("script ended").count(), 1);
    client.bootstrap("b", "202601.27.0");
    let path = format!("{}/extensions/cse-agent-karpenter", vm("b"));
    assert_eq!(
        client.get(&format!("{path}?$expand=instanceView")).body["properties"]["provisioningState"],
        "Failed"
    );
    assert_eq!(client.finish(&client.delete(&path))["status"], "Succeeded");
    assert_eq!(client.get(&path).status, 404);
}

#[test]
fn lists_come_in_pages_and_lag_behind() {
    let client = Client::new(
        "{subnets: [{prefix: 10.1.0.0/16}], quirks: {listsLag: 30s, throttling: false}}",
    );
    for index in 0..250 {
        client.put_nic(&format!("n{index:03}"));
    }
    let path = group("Microsoft.Network/networkInterfaces");
    assert_eq!(client.get(&path).body["value"], json!([]), "new ones do not show yet");
    client.advance(31);
    let mut names = Vec::new();
    let mut next = format!("{path}?api-version=2024-05-01");
    loop {
        let page = client.send("GET", &next, None).body;
        names.extend(
            page["value"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        match page["nextLink"].as_str() {
            Some(link) => next = link.to_owned(),
            None => break,
        }
    }
    assert_eq!(names.len(), 250);
    names.dedup();
    assert_eq!(names.len(), 250);
}

#[test]
fn boot_diagnostics_serve_ranges_and_expire() {
    let client = Client::new("");
    client.bootstrap("a", "1");
    client.advance(60);
    let path = format!("{}/retrieveBootDiagnosticsData?sasUriExpirationTimeInMinutes=5", vm("a"));
    let address =
        client.post(&path, &json!({})).body["serialConsoleLogBlobUri"].as_str().unwrap().to_owned();
    let part = client.try_send("GET", &address, None, &[("range", "bytes=0-99")]).unwrap();
    assert_eq!((part.status, part.bytes.len()), (206, 100));
    assert!(part.header("content-range").starts_with("bytes 0-99/"));
    assert_eq!(
        client.try_send("GET", &address, None, &[("range", "bytes=9999999-")]).unwrap().status,
        416
    );
    client.advance(301);
    assert_eq!(client.send("GET", &address, None).status, 403);
}

#[test]
fn boot_diagnostics_that_are_off_say_so() {
    for status in [400, 409] {
        let client = Client::new(&format!("quirks: {{bootDiagnosticsOff: {status}}}"));
        client.put_nic("a");
        let mut body = vm_body("a", "1");
        body["properties"]["diagnosticsProfile"] = json!({});
        client.finish(&client.put(&vm("a"), &body));
        assert_eq!(
            client.post(&format!("{}/retrieveBootDiagnosticsData", vm("a")), &json!({})).status,
            status
        );
    }
}

#[test]
fn the_activity_log_tells_the_error_after_the_vm_is_gone() {
    let client = Client::new(ORAS_MISSING);
    client.bootstrap("a", "202601.27.0");
    client.finish(&client.delete(&vm("a")));
    let path = format!(
        "{SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values?$filter=eventTimestamp%20ge%20'2026-01-27T14:00:00Z'%20and%20resourceGroupName%20eq%20'MC_rg1_aks1_eastus'"
    );
    assert_eq!(client.get(&path).body["value"], json!([]), "it is minutes behind");
    client.advance(2 * 3600);
    let entries = client.get(&path).body["value"].as_array().unwrap().clone();
    let failed = entries.iter().find(|entry| entry["status"]["value"] == "Failed").unwrap();
    let message: serde_json::Value =
        serde_json::from_str(failed["properties"]["statusMessage"].as_str().unwrap()).unwrap();
    assert_eq!(message["error"]["details"][0]["code"], "VMExtensionProvisioningError");
}

#[test]
fn resource_graph_knows_states_in_lower_case_and_late() {
    let client = Client::new(ORAS_MISSING);
    client.bootstrap("Vm-A", "202601.27.0");
    client.advance(31);
    let query = json!({ "query": "Resources | where type =~ 'microsoft.compute/virtualmachines/extensions' | where properties.provisioningState =~ 'Failed'" });
    let seen = client.post("/providers/Microsoft.ResourceGraph/resources", &query);
    assert_eq!(seen.body["count"], 1, "{seen:?}");
    assert!(
        seen.body["data"][0]["id"]
            .as_str()
            .unwrap()
            .ends_with("/virtualmachines/vm-a/extensions/cse-agent-karpenter")
    );
    let refused = (0..20)
        .map(|_| client.post("/providers/Microsoft.ResourceGraph/resources", &query))
        .find(|seen| seen.status == 429);
    assert_eq!(refused.unwrap().header("x-ms-user-quota-resets-after"), "00:00:05");
}

#[test]
fn run_command_prints_the_result_of_the_bootstrap() {
    let client = Client::new(ORAS_MISSING);
    client.bootstrap("a", "202601.27.0");
    let body = json!({ "commandId": "RunShellScript", "script": ["cat /var/log/azure/aks/provision.json"] });
    let started = client.post(&format!("{}/runCommand", vm("a")), &body);
    assert_eq!(client.post(&format!("{}/runCommand", vm("a")), &body).status, 409, "one at a time");
    let output = client.finish(&started);
    assert!(
        output["properties"]["output"]["value"][0]["message"]
            .as_str()
            .unwrap()
            .contains("\"ExitCode\": \"211\"")
    );
    let path = format!("{}/runCommands/collect", vm("a"));
    client.finish(&client.put(&path, &json!({ "location": "eastus", "properties": { "source": { "script": "bringup-node report" } } })));
    let view =
        client.get(&format!("{path}?$expand=instanceView")).body["properties"]["instanceView"]
            .clone();
    assert_eq!(view["exitCode"], 0);
    let all = client.get(&format!("{}/runCommands?$expand=instanceView", vm("a"))).body;
    assert_eq!(all["value"].as_array().map(Vec::len), Some(1), "an action is no resource: {all}");
    assert_eq!(all["value"][0]["properties"]["instanceView"], view);
    let machine = client.get(&format!("{}?$expand=instanceView", vm("a"))).body;
    assert!(machine.to_string().contains("RunCommandHandlerLinux"), "{machine}");
}

#[test]
fn a_scenario_says_what_a_managed_run_command_does() {
    let scenario = "quirks: {runCommandHandler: hidden}\nrules: [{name: all, boot: {runCommands: {wait: {exitCode: 31, output: said}}}}]";
    let client = Client::new(scenario);
    client.bootstrap("a", "202601.27.0");
    let path = format!("{}/runCommands/wait", vm("a"));
    client.finish(&client.put(&path, &json!({ "location": "eastus", "properties": {} })));
    let view = &client.get(&format!("{path}?$expand=instanceView")).body["properties"];
    assert_eq!(view["instanceView"]["exitCode"], 31);
    assert_eq!(view["instanceView"]["output"], "said");
    assert_eq!(view["instanceView"]["executionState"], "Failed");
    let machine = client.get(&format!("{}?$expand=instanceView", vm("a"))).body;
    assert!(!machine.to_string().contains("RunCommandHandler"), "{machine}");
}

#[test]
fn an_aks_machine_fails_with_the_error_of_its_vm() {
    let client = Client::new(ORAS_MISSING);
    let path = format!(
        "{SUBSCRIPTION}/resourceGroups/rg1/providers/Microsoft.ContainerService/managedClusters/aks1/agentPools/aksmanagedap/machines/default-x7k2p"
    );
    let body = json!({ "zones": ["1"], "properties": { "hardware": { "vmSize": "Standard_D4s_v5" }, "nodeImageVersion": "AKSAzureLinux-V3gen2-202601.27.0" } });
    assert_eq!(client.put(&path, &body).status, 201);
    client.advance(600);
    let machine = client.get(&path).body;
    assert_eq!(machine["properties"]["provisioningState"], "Failed");
    assert_eq!(
        machine["properties"]["status"]["provisioningError"]["details"][0]["code"],
        "VMExtensionProvisioningError"
    );
    let vm = machine["properties"]["resourceId"].as_str().unwrap();
    assert!(vm.contains("/resourceGroups/MC_rg1_aks1_eastus/"), "{vm}");
    assert_eq!(client.get(vm).status, 200);
    let pool = path.rsplit_once('/').unwrap().0;
    assert_eq!(client.get(pool).body["value"].as_array().unwrap().len(), 1);
}

#[test]
fn a_public_address_cannot_be_deleted_while_it_is_in_use() {
    let client = Client::new("");
    let path = group("Microsoft.Network/publicIPAddresses/ip");
    client.put(&path, &json!({ "location": "eastus", "properties": {} }));
    let mut body = common::nic_body();
    body["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"] =
        json!({ "id": path });
    client.put(&nic("a"), &body);
    assert_eq!(client.delete(&path).error(), "PublicIPAddressCannotBeDeleted");
    client.finish(&client.delete(&nic("a")));
    assert_eq!(client.finish(&client.delete(&path))["status"], "Succeeded");
}

#[test]
fn a_put_during_creation_takes_the_creation_over() {
    let client = Client::new("");
    let first = client.create_vm("a", "1");
    let second = client.put(&vm("a"), &vm_body("a", "1"));
    assert_eq!(second.status, 200);
    assert_eq!(client.finish(&first)["error"]["code"], "OperationPreempted");
    assert_eq!(client.finish(&second)["status"], "Succeeded");
    assert_eq!(client.finish(&client.put_cse("a"))["status"], "Succeeded");
    client.advance(60);
    assert_eq!(client.node_names(), ["a"]);
}

#[test]
fn a_list_of_states_has_instance_views() {
    let client = Client::new("");
    client.finish(&client.create_vm("a", "1"));
    let path = format!("{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines");
    let states = client.get(&format!("{path}?statusOnly=true")).body;
    assert!(states["value"][0]["properties"]["instanceView"]["statuses"].is_array());
    assert!(client.get(&path).body["value"][0]["properties"].get("instanceView").is_none());
}
