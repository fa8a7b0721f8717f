//! Every typed read, against a simulated Azure.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use std::time::Duration;

use bringup_azure::model::{BootDiagnostics, OsType};
use bringup_azure::operation::OperationState;
use bringup_azure::{InstanceId, MachineId, Priority, ScaleSetInstanceId};
use common::{ORAS_MISSING, SUBSCRIPTION, World, group, name, subnet, vm};
use serde_json::json;

#[tokio::test]
async fn a_virtual_machine_whose_script_failed_says_so_in_every_field() {
    let world = World::new(ORAS_MISSING);
    let ended = world.bootstrap("aks-x7k2p", "202601.27.0").await;
    let OperationState::Failed(failure) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.code.as_deref(), Some("VMExtensionProvisioningError"));

    let seen = world.arm.virtual_machine(&vm("AKS-X7K2P"), Priority::Event).await.unwrap();
    assert_eq!(seen.name.as_deref(), Some("aks-x7k2p"));
    assert_eq!(seen.id.as_ref().unwrap(), &(&vm("aks-x7k2p")).into());
    assert_eq!(seen.vm_id.as_ref().unwrap().len(), 36);
    assert_eq!(seen.location.as_deref(), Some("eastus"));
    assert_eq!(seen.zones, ["1"]);
    assert_eq!(seen.size.as_deref(), Some("Standard_D4s_v5"));
    assert_eq!(seen.image.as_ref().unwrap().version(), Some("202601.27.0"));
    assert_eq!(seen.os, Some(OsType::Linux));
    assert_eq!(seen.computer_name.as_deref(), Some("aks-x7k2p"));
    assert!(seen.created.is_some());
    assert_eq!(seen.provisioning_state.as_deref(), Some("Failed"));
    assert_eq!(seen.power_state.as_deref(), Some("running"));
    assert!(seen.statuses.iter().any(bringup_azure::model::Status::is_error));
    let agent = seen.agent.as_ref().unwrap();
    assert!(agent.is_ready() && agent.version.is_some());
    assert_eq!(agent.handlers.len(), 1);
    assert_eq!(seen.tags["karpenter.sh_nodepool"], "default");
    assert_eq!(seen.boot_diagnostics, BootDiagnostics::Managed);
    assert!(seen.extensions_reported);
    let [cse] = seen.extensions.as_slice() else { panic!("{:?}", seen.extensions) };
    assert!(cse.is_custom_script());
    assert_eq!(cse.name, "cse");
    assert_eq!(cse.publisher.as_deref(), Some("Microsoft.Azure.Extensions"));
    assert_eq!(cse.provisioning_state.as_deref(), Some("Failed"));
    let status = &cse.statuses[0];
    assert!(status.is_error() && status.message.as_ref().unwrap().contains("exit status=211"));
    assert_eq!(seen.raw["properties"]["vmId"], seen.vm_id.as_deref().unwrap());

    let alone = world.arm.extension(&vm("aks-x7k2p"), &name("cse"), Priority::Event).await.unwrap();
    assert_eq!(alone.statuses[0].message, status.message);
    assert_eq!(alone.kind.as_deref(), Some("CustomScript"));
}

#[tokio::test]
async fn managed_run_commands_say_what_they_printed() {
    let world = World::new(ORAS_MISSING);
    world.bootstrap("a", "202601.27.0").await;
    let id = InstanceId::from(vm("a"));
    assert!(world.arm.run_commands(&id, Priority::Schedule).await.unwrap().is_empty());
    let path = format!("{}/Microsoft.Compute/virtualMachines/a/runCommands/collect", group());
    let script = json!({ "script": "bringup-node report --token hunter2" });
    world.put(&path, &json!({ "location": "eastus", "properties": { "source": script } })).await;
    let started = world.arm.run_commands(&id, Priority::Schedule).await.unwrap();
    assert_eq!(started[0].execution_state.as_deref(), Some("Running"));
    assert_eq!((started[0].exit_code, &started[0].output), (None, &None));
    world.advance(30);
    let ended = world.arm.run_commands(&id, Priority::Schedule).await.unwrap();
    let [command] = ended.as_slice() else { panic!("{ended:?}") };
    assert_eq!((command.name.as_str(), command.exit_code), ("collect", Some(0)));
    assert!(command.output.as_ref().unwrap().contains("\"ExitCode\": \"211\""), "{command:?}");
    assert!(command.ended.is_some());
    assert!(!format!("{command:?}").contains("hunter2"));
    let missing = world.arm.run_commands(&vm("unknown").into(), Priority::Schedule).await;
    assert!(missing.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_machine_that_has_just_been_asked_for_is_known_and_says_little() {
    let world = World::new("");
    world.create_vm("a", "1").await;
    let seen = world.arm.virtual_machine(&vm("a"), Priority::Schedule).await.unwrap();
    assert_eq!(seen.provisioning_state.as_deref(), Some("Creating"));
    assert!(seen.agent.is_none() && seen.extensions.is_empty() && !seen.extensions_reported);
}

#[tokio::test]
async fn an_instance_of_a_scale_set_reads_like_a_virtual_machine() {
    let world = World::new(ORAS_MISSING);
    let set = format!("{}/Microsoft.Compute/virtualMachineScaleSets/set", group());
    let body = json!({
        "location": "eastus",
        "sku": { "name": "Standard_D4s_v5", "capacity": 1 },
        "properties": { "orchestrationMode": "Uniform", "virtualMachineProfile": {
            "osProfile": { "computerNamePrefix": "pool", "adminPassword": "secret" },
            "storageProfile": { "imageReference": { "version": "202601.27.0" }, "osDisk": { "deleteOption": "Delete" } },
            "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic", "properties": {
                "ipConfigurations": [{ "name": "ipconfig", "properties": { "subnet": { "id": subnet() } } }] } }] },
            "extensionProfile": { "extensions": [{ "name": "vmssCSE", "properties": {
                "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript" } }] },
        } },
    });
    let put = world.put(&set, &body).await;
    assert!(matches!(world.finish(&put).await, OperationState::Failed(_)));
    let id: ScaleSetInstanceId = format!("{set}/virtualMachines/0").parse().unwrap();
    let seen = world.arm.scale_set_instance(&id, Priority::Event).await.unwrap();
    assert_eq!(seen.computer_name.as_deref(), Some("pool000000"));
    let cse = seen.extensions.iter().find(|extension| extension.name == "vmssCSE").unwrap();
    assert!(cse.is_custom_script() && cse.statuses[0].is_error());
    let same = world.arm.instance(&InstanceId::from(id), Priority::Event).await.unwrap();
    assert_eq!(same.vm_id, seen.vm_id);
}

#[tokio::test]
async fn a_machine_of_aks_names_its_virtual_machine_and_why_it_failed() {
    let world = World::new(ORAS_MISSING);
    let id = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg1/providers/Microsoft.ContainerService/managedClusters/aks1/agentPools/pool/machines/m1"
    );
    let body = json!({ "zones": ["1"], "properties": {
        "hardware": { "vmSize": "Standard_D4s_v5" },
        "nodeImageVersion": "AKSAzureLinux-V3gen2-202601.27.0",
        "tags": { "a": "b" },
    } });
    let resource = id.parse().unwrap();
    let started = world.arm.start(&common::put(&resource, &body)).await.unwrap();
    assert_eq!(started.status, 201);
    world.advance(600);
    let id: MachineId = id.parse().unwrap();
    let seen = world.arm.machine(&id, Priority::Event).await.unwrap();
    assert_eq!(seen.provisioning_state.as_deref(), Some("Failed"));
    assert_eq!(seen.node_image_version.as_deref(), Some("AKSAzureLinux-V3gen2-202601.27.0"));
    let failure = seen.provisioning_error.unwrap();
    let codes: Vec<_> = failure.chain().iter().filter_map(|part| part.code.as_deref()).collect();
    assert_eq!(
        codes,
        ["FailedToCreateOrUpdateVirtualMachineExtension", "VMExtensionProvisioningError"]
    );
    let beneath = InstanceId::try_from(&seen.resource_id.unwrap()).unwrap();
    let beneath = world.arm.instance(&beneath, Priority::Event).await.unwrap();
    assert_eq!(beneath.provisioning_state.as_deref(), Some("Failed"));
}

#[tokio::test]
async fn the_activity_log_tells_what_failed_after_a_while() {
    let world = World::new(ORAS_MISSING);
    let from = world.now();
    world.bootstrap("a", "202601.27.0").await;
    world.advance(1800);
    let (subscription, group) = (name(SUBSCRIPTION), name("mc_RG1_aks1_eastus"));
    let read = world.arm.activity_log(&subscription, &group, from, world.now(), Priority::Schedule);
    let log = read.await.unwrap();
    assert!(log.complete);
    let failed =
        log.entries.iter().find(|entry| entry.status.as_deref() == Some("Failed")).unwrap();
    assert!(failed.operation.as_ref().unwrap().contains("extensions/write"), "{failed:?}");
    assert!(failed.time.is_some() && failed.correlation_id.is_some());
    assert!(failed.resource_id.is_some());
    let failure = failed.failure.as_ref().unwrap();
    assert_eq!(failure.details[0].code.as_deref(), Some("VMExtensionProvisioningError"));
    assert!(failed.status_message.as_ref().unwrap().starts_with('{'));
    let filter = world.sent().pop().unwrap().address;
    assert!(!filter.contains('+') && filter.contains("resourceGroupName%20eq%20"), "{filter}");
}

#[tokio::test]
async fn pages_of_the_activity_log_are_followed_but_not_in_circles_and_not_elsewhere() {
    let page = |next: &str| {
        let body = json!({ "value": [{ "correlationId": "x" }, null, 7], "nextLink": next });
        json!({ "answer": { "status": 200, "body": body.to_string() } })
    };
    let host = "https://management.azure.com/subscriptions/s/providers/Microsoft.Insights/eventtypes/management/values?api-version=2015-04-01&page=";
    for (next, requests) in [
        (format!("{host}2"), 2),
        ("https://evil.example/page".to_owned(), 1),
        ("no address".to_owned(), 1),
        (String::new(), 1),
    ] {
        let world = World::new("");
        world.fault(&json!({ "pathContains": "eventtypes" }), &page(&next));
        let (subscription, group) = (name("s"), name("g"));
        let read = world.arm.activity_log(
            &subscription,
            &group,
            world.now(),
            world.now(),
            Priority::Schedule,
        );
        let log = world.drive(Duration::from_secs(1), read).await.unwrap();
        assert_eq!(world.sent().len(), requests, "{next}");
        assert_eq!(log.entries.len(), requests * 3);
        assert_eq!(log.complete, next.is_empty());
    }
}

#[tokio::test]
async fn every_request_says_who_asks_and_which_one_it_is() {
    let world = World::new("");
    let _ = world.arm.virtual_machine(&vm("a"), Priority::Event).await;
    let _ = world.arm.virtual_machine(&vm("a"), Priority::Event).await;
    let sent = world.sent();
    for asked in &sent {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(asked.header("user-agent"), Some(format!("bringup/{version}").as_str()));
        assert_eq!(asked.header("authorization"), Some("Bearer anything"));
    }
    let ids: Vec<_> = sent.iter().map(|asked| asked.header("x-ms-client-request-id")).collect();
    assert!(ids[0].is_some() && ids[0] != ids[1]);
}
