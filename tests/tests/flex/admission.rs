//! Objects that the API server refuses.

use anyhow::Result;
use bringup_end_to_end::test_bed::shared_with_flex;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::common::{class, machine};

#[tokio::test]
async fn case_27_the_api_server_refuses_each_wrong_field_by_its_name() -> Result<()> {
    let client = shared_with_flex().await?.client();
    let classes: Api<AzureFlexNodeClass> = Api::all(client.clone());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    classes.create(&dry, &serde_json::from_value(class("fine"))?).await?;
    for (field, value) in [
        ("allocateNodePublicIP", json!(true)),
        ("subscriptionID", json!("mine")),
        ("location", json!("east-us")),
        ("subnetID", json!("/subscriptions/s")),
        ("osDiskSizeGB", json!(1)),
        ("maxPodsPerNode", json!(1000)),
        ("bootTimeout", json!("1s")),
        ("securityType", json!("TrustedLaunch")),
        ("tags", json!({ "bringup-cluster": "other" })),
        ("zones", json!(["eastus-1"])),
        ("imageReference", json!({ "publisher": "p", "offer": "", "sku": "s" })),
    ] {
        let mut wrong = class("wrong");
        wrong["spec"][field] = value;
        let refused = classes.create(&dry, &serde_json::from_value(wrong)?).await;
        let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains(field), "{field}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn the_api_server_refuses_a_machine_whose_fields_are_too_long_or_of_another_form()
-> Result<()> {
    let client = shared_with_flex().await?.client();
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let fine = serde_json::to_value(machine("fine", "plain", "Standard_D8s_v5")?)?;
    machines.create(&dry, &serde_json::from_value(fine.clone())?).await?;
    for (field, value) in [
        ("nodeClass", json!("../plain")),
        ("vmSize", json!("Standard D8s")),
        ("zone", json!("eastus-1")),
        ("capacityType", json!("free")),
        ("claimRef", json!({ "name": "a".repeat(300), "uid": "u" })),
        ("claimRef", json!({ "name": "a", "uid": "u".repeat(300) })),
        ("claimRef", json!({ "name": "a/b", "uid": "u" })),
        ("nodePool", json!("A B")),
        ("taints", json!(["x".repeat(600)])),
    ] {
        let mut wrong = fine.clone();
        wrong["spec"][field] = value;
        let refused = machines.create(&dry, &serde_json::from_value(wrong)?).await;
        let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains(field), "{field}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_machine_is_never_changed() -> Result<()> {
    let client = shared_with_flex().await?.client();
    let machines: Api<AzureFlexMachine> = Api::all(client);
    let fixed = machine("fixed", "nowhere", "Standard_D8s_v5")?;
    machines.create(&PostParams::default(), &fixed).await?;
    let change = Patch::Merge(json!({ "spec": { "vmSize": "Standard_ND96isr_H200_v5" } }));
    let refused = machines.patch("fixed", &PatchParams::default(), &change).await;
    let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("spec is immutable"), "{told}");
    Ok(())
}
