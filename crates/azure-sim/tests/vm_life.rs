//! The behaviour of a VM after its PUT, as clients of ARM observe it.

mod common;

use common::{Client, ORAS_MISSING, vm};

fn extension_message(view: &serde_json::Value) -> &str {
    view["extensions"][0]["statuses"][0]["message"].as_str().unwrap_or_default()
}

#[test]
fn a_healthy_vm_passes_through_the_documented_states_and_joins() {
    let client = Client::new("");
    let put = client.create_vm("aks-a", "202601.13.0");
    assert_eq!(put.body["properties"]["provisioningState"], "Creating");
    assert!(client.instance_view("aks-a").get("vmAgent").is_none());

    client.advance(6);
    let view = client.instance_view("aks-a");
    assert_eq!(view["statuses"][0]["code"], "ProvisioningState/creating/OSProvisioningInProgress");
    assert_eq!(view["vmAgent"]["statuses"][0]["code"], "ProvisioningState/Unavailable");
    assert!(view.get("extensions").is_none(), "the key is absent, not an empty list");

    assert_eq!(client.finish(&put)["status"], "Succeeded");
    let extension = client.put_cse("aks-a");
    assert_eq!(extension.status, 201);
    assert!(
        !extension.bytes.windows(6).any(|part| part == b"secret"),
        "protected settings come back"
    );
    assert_eq!(client.finish(&extension)["status"], "Succeeded");
    client.advance(60);

    let view = client.instance_view("aks-a");
    assert_eq!(view["vmAgent"]["statuses"][0]["message"], "Guest Agent is running");
    assert_eq!(view["extensions"][0]["statuses"][0]["code"], "ProvisioningState/succeeded");
    assert!(
        extension_message(&view).starts_with("Enable succeeded: \n[stdout]\n{ \"ExitCode\": \"0\"")
    );
    assert_eq!(client.node_names(), ["aks-a"]);
    let read = client.get(&vm("aks-a"));
    assert_eq!(read.body["properties"]["provisioningState"], "Succeeded");
    assert!(read.body["properties"]["osProfile"].get("customData").is_none());
}

#[test]
fn a_script_that_fails_shows_in_operation_extension_and_vm() {
    let client = Client::new(ORAS_MISSING);
    let operation = client.bootstrap("aks-b", "202601.27.0");
    assert_eq!(operation["status"], "Failed");
    assert_eq!(operation["error"]["code"], "VMExtensionProvisioningError");
    let message = operation["error"]["message"].as_str().unwrap();
    assert!(message.contains(
        "'cse-agent-karpenter' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript')"
    ));
    assert!(message.contains("exit status=211"), "{message}");

    let view = client.instance_view("aks-b");
    assert_eq!(
        view["statuses"][0]["code"],
        "ProvisioningState/failed/VMExtensionProvisioningError"
    );
    assert_eq!(view["extensions"][0]["statuses"][0]["code"], "ProvisioningState/failed/0");
    assert!(extension_message(&view).contains("failed to run command 'oras'"));
    assert_eq!(client.get(&vm("aks-b")).body["properties"]["provisioningState"], "Failed");
    client.advance(3600);
    assert!(client.node_names().is_empty());
}

#[test]
fn another_image_is_not_struck_by_the_rule() {
    let client = Client::new(ORAS_MISSING);
    assert_eq!(client.bootstrap("aks-c", "202601.13.0")["status"], "Succeeded");
}

#[test]
fn a_newer_handler_words_it_without_prefix_and_with_a_substatus() {
    let client = Client::new(
        "rules: [{name: new, boot: {handler: 2.1.19, script: {ends: {exitCode: 50}}}}]",
    );
    client.bootstrap("aks-d", "202601.27.0");
    let view = client.instance_view("aks-d");
    assert!(
        extension_message(&view)
            .starts_with("failed to execute command: command terminated with exit status=50")
    );
    assert_eq!(
        view["extensions"][0]["substatuses"][0]["code"],
        "ComponentStatus/ErrorClarification/failed/2"
    );
}

#[test]
fn an_outer_status_of_one_can_hide_the_code() {
    let client = Client::new(
        "rules: [{name: anc, boot: {script: {ends: {exitCode: 50, outerExitCode: 1}}}}]",
    );
    client.bootstrap("aks-e", "202601.27.0");
    let view = client.instance_view("aks-e");
    assert!(extension_message(&view).contains("exit status=1\n[stdout]\n{ \"ExitCode\": \"50\""));
}

#[test]
fn a_script_from_custom_data_shows_on_the_console_alone() {
    let yaml = "rules: [{name: scriptless, boot: {bootstrap: custom-data, script: {ends: {exitCode: 211, output: oras gone}}}}]";
    let client = Client::new(yaml);
    client.finish(&client.create_vm("aks-f", "202601.27.0"));
    client.advance(300);
    assert!(client.instance_view("aks-f").get("extensions").is_none());
    let addresses = client
        .post(&format!("{}/retrieveBootDiagnosticsData", vm("aks-f")), &serde_json::json!({}));
    let blob =
        client.send("GET", addresses.body["serialConsoleLogBlobUri"].as_str().unwrap(), None);
    let text = String::from_utf8_lossy(&blob.bytes);
    assert!(text.contains("cloud-init[1899]: { \"ExitCode\": \"211\""), "{text}");
    assert_eq!(blob.bytes.len() % 512, 0, "the blob grows in pages");
}

#[test]
fn a_vm_comes_and_goes_as_fast_as_it_is_told() {
    let yaml =
        "rules: [{name: fast, boot: {vmReadyAfter: 2s, agentReadyAfter: 1s, goneAfter: 3s}}]";
    let client = Client::new(yaml);
    client.create_vm("aks-f", "202601.27.0");
    client.advance(2);
    assert!(client.instance_view("aks-f")["computerName"].is_null());
    client.advance(1);
    assert_eq!(client.instance_view("aks-f")["computerName"], "aks-f");
    let deleted = client.delete(&vm("aks-f"));
    client.advance(3);
    let operation = client.send("GET", deleted.header("azure-asyncoperation"), None);
    assert_eq!(operation.body["status"], "Succeeded");
}

#[test]
fn an_extension_that_never_ends_times_out_after_90_minutes() {
    let client = Client::new("rules: [{name: hangs, boot: {script: hangs}}]");
    client.finish(&client.create_vm("aks-g", "202601.27.0"));
    let put = client.put_cse("aks-g");
    client.advance(89 * 60);
    assert_eq!(
        client.instance_view("aks-g")["extensions"][0]["statuses"][0]["message"],
        "Enable in progress"
    );
    assert_eq!(client.finish(&put)["error"]["code"], "VMExtensionProvisioningTimeout");
}

#[test]
fn a_handler_that_fails_never_runs_the_script() {
    let client =
        Client::new("rules: [{name: handler, boot: {script: {handlerFails: 'panic: example'}}}]");
    let operation = client.bootstrap("aks-h", "202601.27.0");
    assert_eq!(operation["error"]["code"], "VMExtensionHandlerNonTransientError");
    assert!(operation["error"]["message"].as_str().unwrap().contains("panic: example"));
    assert_eq!(
        client.instance_view("aks-h")["vmAgent"]["extensionHandlers"][0]["status"]["level"],
        "Error"
    );
}

#[test]
fn a_silent_agent_is_given_up_on_after_25_minutes() {
    let client = Client::new("rules: [{name: silent, boot: {agent: silent}}]");
    client.finish(&client.create_vm("aks-i", "202601.27.0"));
    let put = client.put_cse("aks-i");
    client.advance(24 * 60);
    assert_eq!(client.instance_view("aks-i")["vmAgent"]["vmAgentVersion"], "Unknown");
    assert_eq!(client.finish(&put)["error"]["code"], "VMAgentStatusCommunicationError");
}

#[test]
fn an_os_that_does_not_come_up_times_out_after_20_minutes() {
    let client = Client::new("rules: [{name: os, boot: {os: times-out}}]");
    let put = client.create_vm("aks-j", "202601.27.0");
    client.advance(19 * 60);
    assert_eq!(client.get(&vm("aks-j")).body["properties"]["provisioningState"], "Creating");
    assert_eq!(client.finish(&put)["error"]["code"], "OSProvisioningTimedOut");
    assert_eq!(client.get(&vm("aks-j")).body["properties"]["provisioningState"], "Failed");
}

#[test]
fn a_vm_that_was_given_up_on_can_join_all_the_same() {
    let client = Client::new(
        "rules: [{name: late, boot: {os: times-out-then-ready, bootstrap: custom-data}}]",
    );
    let put = client.create_vm("aks-k", "202601.27.0");
    assert_eq!(client.finish(&put)["status"], "Failed");
    client.advance(600);
    assert_eq!(client.get(&vm("aks-k")).body["properties"]["provisioningState"], "Succeeded");
    assert_eq!(client.node_names(), ["aks-k"]);
}

#[test]
fn a_silent_success_has_no_node() {
    let client = Client::new("rules: [{name: silent success, boot: {node: never}}]");
    assert_eq!(client.bootstrap("aks-l", "202601.27.0")["status"], "Succeeded");
    client.advance(3600);
    assert!(client.node_names().is_empty());
}

#[test]
fn a_node_can_join_late_and_after_a_failed_script() {
    let client = Client::new(
        "rules: [{name: late, boot: {node: {joinsAfter: 20m}, script: {ends: {exitCode: 124}}}}]",
    );
    assert_eq!(client.bootstrap("aks-m", "202601.27.0")["status"], "Failed");
    client.advance(19 * 60 - 10);
    assert!(client.node_names().is_empty());
    client.advance(70);
    assert_eq!(client.node_names(), ["aks-m"]);
}

#[test]
fn a_reboot_in_the_middle_starts_the_script_anew() {
    let client = Client::new(
        "rules: [{name: reboot, boot: {rebootAfter: 30s, script: {ends: {exitCode: 0, lasts: 2m}}}}]",
    );
    assert_eq!(client.bootstrap("aks-n", "202601.27.0")["status"], "Succeeded");
    client.advance(60);
    assert_eq!(client.log().matches("powered on").count(), 2);
    assert_eq!(client.log().matches("script ended").count(), 1, "{}", client.log());
    assert_eq!(client.node_names(), ["aks-n"]);
}

#[test]
fn a_restart_is_an_operation_after_which_the_vm_has_started_anew() {
    let client =
        Client::new("rules: [{name: spot, when: {namePrefix: spot}, boot: {evictedAfter: 10m}}]");
    let none = serde_json::Value::Null;
    let restart = |name: &str| client.post(&format!("{}/restart", vm(name)), &none);
    assert_eq!(restart("aks-r").error(), "ResourceNotFound");
    client.bootstrap("aks-r", "202601.27.0");
    assert_eq!(client.log().matches("powered on").count(), 1);
    let accepted = restart("aks-r");
    assert_eq!(accepted.status, 202);
    assert_eq!(client.finish(&accepted)["status"], "Succeeded");
    assert_eq!(client.log().matches("powered on").count(), 2);

    client.bootstrap("spot-r", "202601.27.0");
    client.advance(900);
    assert_eq!(restart("spot-r").error(), "OperationNotAllowed");
}

#[test]
fn an_evicted_vm_is_deallocated_and_its_node_is_gone() {
    let client = Client::new("rules: [{name: spot, boot: {evictedAfter: 10m}}]");
    client.bootstrap("aks-o", "202601.27.0");
    client.advance(30);
    assert_eq!(client.node_names(), ["aks-o"]);
    client.advance(600);
    assert!(client.node_names().is_empty());
    assert_eq!(client.instance_view("aks-o")["statuses"][1]["code"], "PowerState/deallocated");
}

#[test]
fn rules_can_count_and_draw_lots() {
    let yaml = "
rules:
  - {name: first two, when: {namePrefix: x, first: 2}, boot: {node: never}}
  - {name: half, when: {namePrefix: y, probability: 0.5}, boot: {node: never}}
";
    let client = Client::new(yaml);
    for index in 0..4 {
        client.bootstrap(&format!("x{index}"), "1");
    }
    for index in 0..20 {
        client.bootstrap(&format!("y{index}"), "1");
    }
    client.advance(120);
    let names = client.node_names();
    assert_eq!(names.iter().filter(|name| name.starts_with('x')).collect::<Vec<_>>(), ["x2", "x3"]);
    let joined = names.iter().filter(|name| name.starts_with('y')).count();
    assert!((3..18).contains(&joined), "{joined} of 20 joined");
}

#[test]
fn windows_says_one_outside_and_the_code_inside() {
    let client = Client::new(
        "rules: [{name: win, boot: {script: {ends: {exitCode: 34, name: WINDOWS_CSE_ERROR_DOWNLOAD_KUBERNETES_PACKAGE, output: 'Download failed: 404'}}}}]",
    );
    client.put_nic("aks-w");
    let mut body = common::vm_body("aks-w", "202601.27.0");
    body["properties"]["osProfile"] = serde_json::json!({ "computerName": "aks-w", "adminPassword": "p", "windowsConfiguration": {} });
    client.finish(&client.put(&vm("aks-w"), &body));
    let extension = serde_json::json!({ "location": "eastus", "properties": { "publisher": "Microsoft.Compute", "type": "CustomScriptExtension", "typeHandlerVersion": "1.10" } });
    let put =
        client.put(&format!("{}/extensions/windows-cse-agent-karpenter", vm("aks-w")), &extension);
    assert_eq!(client.finish(&put)["status"], "Failed");
    let view = client.instance_view("aks-w");
    assert!(
        extension_message(&view)
            .contains("ExitCode: |34|, Output: |WINDOWS_CSE_ERROR_DOWNLOAD_KUBERNETES_PACKAGE|")
    );
}
