//! Facts about a cluster besides its machines: the host of its API server, and the signatures of its
//! operators.

use anyhow::{Context as _, Result};
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::common::{ManagementCluster, SUBSCRIPTION, condition};
use crate::launch::Wanted;

/// A token that the script prints just before the error.
const SECRET: &str = "q1w2e3.0123456789abcdef";

/// A machine that cannot resolve a host, and does not print why it needs the host.
fn rule(case: &str, host: &str) -> Value {
    let console = [
        "[   88.812000] cloud-init[1021]: first".to_owned(),
        format!("[   89.812000] cloud-init[1021]: + join --token {SECRET}"),
        "[   90.812000] cloud-init[1021]: + curl".to_owned(),
        format!("[   91.812000] cloud-init[1021]: curl: (6) Could not resolve host: {host}"),
        format!("[   92.812000] cloud-init[1021]: {}", "long ".repeat(300)),
        "[   93.812000] cloud-init[1021]: Cloud-init v. 25.1 finished at Mon, 02 Mar 2026 14:31:42 +0000. Up 93.81 seconds".to_owned(),
        "[   94.812000] cloud-init[1021]: last".to_owned(),
    ];
    json!({
        "name": case, "when": { "tags": { "case": case } },
        "boot": {
            "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
            "script": { "ends": { "exitCode": 1, "lasts": "5s" } },
            "console": console.join("\n"),
        },
    })
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_the_api_servers_or_another_one() -> Result<()> {
    // The cluster's objects name the host of the API server.
    let rules = [rule("ours", "PROD.example"), rule("theirs", "downloads.example")];
    let cluster = ManagementCluster::new("hosts", &json!({ "rules": rules }).to_string()).await?;
    for name in ["ours", "theirs"] {
        cluster.launch(Wanted { case: name, ..Wanted::linux(name) }).await?;
    }
    for (name, cause) in [("ours", "ApiServerDnsFailure"), ("theirs", "DnsFailure")] {
        let machine = cluster.verdict(name).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], cause, "{verdict}");
    }
    let reports = cluster.reports().await?;
    for report in &reports {
        let status = report.status.as_ref().context("there")?;
        let root = status.root_evidence.as_ref().context("a proof")?;
        assert!(root.line.contains("Could not resolve host"), "{root:?}");
        assert_eq!((root.before.len(), root.after.len()), (2, 2), "{root:?}");
        assert!(root.before[0].contains("+ join --token"), "{root:?}");
        assert!(root.before[1].ends_with("+ curl"), "{root:?}");
        assert!(root.after[0].contains("long long"), "{root:?}");
        assert!(root.after[1].contains("finished at"), "{root:?}");
        assert!(root.after.iter().all(|line| line.len() <= 512), "{root:?}");
    }
    let text = serde_json::to_string(&reports)?;
    assert!(!text.contains("0123456789abcdef"), "what stands around it is redacted, too");
    Ok(())
}

/// A Cluster with its infrastructure reference and the endpoint of its API server.
fn cluster_object(name: &str, kind: &str, reference: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": reference },
                  "controlPlaneEndpoint": { "host": format!("{name}.example"), "port": 6443 } },
    })
}

#[tokio::test]
async fn the_host_of_the_api_server_is_the_clusters_own_where_the_azure_cluster_has_none()
-> Result<()> {
    let rules = [rule("edge", "edge.example"), rule("managed", "managed.example")];
    let cluster =
        ManagementCluster::new("own-hosts", &json!({ "rules": rules }).to_string()).await?;
    // This AzureCluster has neither the name of its Cluster nor a label with that name: only the Cluster
    // refers to it.
    let site = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
        "metadata": { "name": "somewhere" },
        "spec": { "resourceGroup": "rg-own-hosts", "subscriptionID": SUBSCRIPTION, "location": "eastus" },
    });
    cluster.azure_clusters().create(&PostParams::default(), &serde_json::from_value(site)?).await?;
    for object in [
        cluster_object("edge", "AzureCluster", "somewhere"),
        cluster_object("managed", "AzureManagedCluster", "none"),
    ] {
        let object = serde_json::from_value(object)?;
        cluster.clusters().create(&PostParams::default(), &object).await?;
    }
    // The provider has not even set the id of the first VM: bringup finds the VM by its Cluster.
    for (name, is_said) in [("edge", false), ("managed", true)] {
        let wanted = Wanted { case: name, cluster: name, is_said, ..Wanted::linux(name) };
        cluster.launch(wanted).await?;
    }
    for name in ["edge", "managed"] {
        let machine = cluster.verdict(name).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], "ApiServerDnsFailure", "{name}: {verdict}");
    }
    Ok(())
}

#[tokio::test]
async fn a_signature_of_the_user_gives_its_verdict() -> Result<()> {
    let console = "[   91.812000] cloud-init[1021]: License server says NO\n[   93.812000] cloud-init[1021]: Cloud-init v. 25.1 finished at Mon, 02 Mar 2026 14:31:42 +0000. Up 93.81 seconds";
    let boot = json!({
        "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
        "script": { "ends": { "exitCode": 1, "lasts": "5s" } }, "console": console,
    });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] });
    let cluster = ManagementCluster::new("signatures", &scenario.to_string()).await?;
    cluster.launch(Wanted::linux("licensed")).await?;
    let machine = cluster.verdict("licensed").await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "ConfigRejected", "{verdict}");
    let message = verdict["message"].as_str().unwrap_or_default();
    assert!(message.contains("License server says NO"), "{message}");
    assert!(message.contains("contoso.license, see https://wiki.contoso.example"), "{message}");
    Ok(())
}
