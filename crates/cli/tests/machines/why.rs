//! `bringup why machine/NAME`, and the reports of Machines.

use bringup_azure_sim::clock::Pace;
use bringup_end_to_end::test_bed::shared_with_machines;
use bringup_testbed::wait::{is_gone, until_object};
use std::time::Duration;

use anyhow::Result;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::common::ManagementCluster;
use crate::definitions::serve_only;
use crate::help::{assert_contains, bringup_as};
use crate::launch::Wanted;
use crate::program::fits;
use crate::terminal::Terminal;

/// A node whose token has expired, as cloud-init writes it to the console.
const TOKEN: &str = r#"
rules:
- name: all
  boot:
    bootstrap: user-data
    vmReadyAfter: 2s
    script: {ends: {exitCode: 1, lasts: 5s}}
    console: |
      [   91.812] cloud-init[1021]: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"
      [   91.900] cloud-init[1021]: To see the stack trace of this error execute with --v=5 or higher
      [   92.010] cloud-init[1021]: Cloud-init v. 24.1 finished at Mon, 16 Nov 2026 06:00:00 +0000. Datasource DataSourceAzure. Up 92.01 seconds
      [   92.020] systemd[1]: cloud-final.service: Failed with result 'exit-code'.
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_controller_found_is_told_while_the_machine_is_there_and_after_it() -> Result<()> {
    let cluster = ManagementCluster::new("cli-told", TOKEN).await?;
    cluster.launch(Wanted::linux("worker-told")).await?;
    cluster.verdict("worker-told").await?;
    let terminal = Terminal::new(&cluster.azure).await?;
    for name in [
        "machine/worker-told",
        "machines.cluster.x-k8s.io/Worker-Told",
        "azuremachine/worker-told",
        "machine/worker-to",
        // The command finds the report without the kind of its object.
        "worker-told",
    ] {
        let ran = terminal.run(&["why", name]).await?;
        assert_eq!(ran.code, 10, "{name}: {}", ran.err);
        assert_contains(
            &ran.out,
            &[
                "FAILED: BootstrapTokenInvalid",
                "Machine cli-told/worker-told of cluster prod, node worker-told; failed",
                "Proof (serial log): ",
                "| [ 91.812] cloud-init[1021]: error execution phase preflight: couldn't | validate",
                "Sources: virtual machine was read: Succeeded",
                "serial log was read:",
                "What to do: ",
                "Machine: Standard_D4s_v5",
                "Replace: not useful: BootstrapTokenInvalid: ",
                "Report: cli-told/worker-told-",
            ],
        );
        assert!(!ran.out.contains("Note:"), "{}", ran.out);
        fits(&ran.out);
    }
    let json = terminal.run(&["why", "machine/worker-told", "-o", "json"]).await?.json();
    assert_eq!((&json["kind"], &json["namespace"]), (&json!("Machine"), &json!("cli-told")));
    assert_eq!((&json["cluster"], &json["exists"]), (&json!("prod"), &json!(true)));
    assert_eq!(json["look"], Value::Null, "the controller has told");
    let kinds: Vec<&Value> =
        json["conditions"].as_array().into_iter().flatten().map(|held| &held["type"]).collect();
    assert_eq!(kinds, ["BootstrapSucceeded", "bringup.dev/ReplacementUseful"]);
    let yaml = terminal.run(&["why", "machine/worker-told", "-o", "yaml"]).await?.out;
    assert_contains(&yaml, &["verdict: failed", "cause: BootstrapTokenInvalid", "cluster: prod"]);

    let machines = cluster.machines();
    machines.delete("worker-told", &DeleteParams::default()).await?;
    until_object(machines, "worker-told", "its end", is_gone).await?;
    let ran = terminal.run(&["why", "machine/worker-told", "-n", "cli-told"]).await?;
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(
        &ran.out,
        &["FAILED: BootstrapTokenInvalid", "node worker-told, is gone; failed"],
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_machines_say_what_they_are_about_and_can_be_chosen() -> Result<()> {
    let cluster = ManagementCluster::new("cli-reports", TOKEN).await?;
    cluster.launch(Wanted::linux("worker-listed")).await?;
    cluster.verdict("worker-listed").await?;
    let admin = shared_with_machines().await?.admin();
    let table = bringup_as(admin, &["reports", "-n", "cli-reports", "--kind", "machine"]);
    assert_eq!(table.code, 0, "{}", table.err);
    assert_contains(
        &table.out,
        &["NAMESPACE NAME KIND CAUSE POOL|CLUSTER AGE cli-reports worker-listed-"],
    );
    assert_contains(&table.out, &[" Machine BootstrapTokenInvalid prod "]);
    for (filter, count) in [
        (&["--cluster", "prod"][..], 1),
        (&["--cluster", "other"], 0),
        (&["--kind", "nodeclaim"], 0),
        (&["--cause", "BootstrapTokenInvalid"], 1),
    ] {
        let asked = [&["reports", "-n", "cli-reports", "-o", "json"], filter].concat();
        let json = bringup_as(admin, &asked).json();
        assert_eq!(json["items"].as_array().map(Vec::len), Some(count), "{filter:?}: {json}");
    }
    let all = bringup_as(admin, &["reports", "-A", "-o", "wide"]);
    assert_contains(
        &all.out,
        &["NAMESPACE NAME KIND CAUSE CODE IMAGE POOL|CLUSTER NODE", "cli-reports worker-listed-"],
    );
    let both = bringup_as(admin, &["reports", "-A", "-n", "cli-reports"]);
    assert_eq!(both.code, 64, "{}", both.out);
    let report = bringup_as(admin, &["report", "worker-listed", "-n", "cli-reports"]);
    assert_contains(
        &report.out,
        &["Machine cli-reports/worker-listed; diagnosed", "Replace: not useful"],
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_controller_has_said_nothing_azure_is_asked() -> Result<()> {
    let cluster = ManagementCluster::unobserved("cli-look", TOKEN).await?;
    cluster.launch(Wanted::linux("worker-look")).await?;
    let terminal = Terminal::new(&cluster.azure).await?;
    let ask = ["why", "machine/worker-look", "-n", "cli-look"];

    let blind = bringup_as(shared_with_machines().await?.admin(), &ask);
    assert_eq!(blind.code, 11, "{}", blind.err);
    assert_contains(
        &blind.out,
        &["RUNNING: no verdict yet", "InfrastructureReady=True", "with --machines:"],
    );
    assert_contains(
        &blind.out,
        &[
            "Note: no evidence was read from Azure: cannot use the Azure credential workload-identity",
        ],
    );
    assert!(!blind.out.contains("Sources:"), "{}", blind.out);
    assert!(!blind.out.contains("paused"), "{}", blind.out);

    let pause = Patch::Merge(json!({ "spec": { "paused": true } }));
    cluster.clusters().patch("prod", &PatchParams::default(), &pause).await?;
    let early = terminal.run(&ask).await?;
    assert_contains(
        &early.out,
        &["Note: the controller writes no conditions: Cluster prod is paused"],
    );
    assert_eq!(early.code, 11, "{}", early.err);
    assert_contains(
        &early.out,
        &["RUNNING: no verdict yet", "Sources: virtual machine was read: "],
    );
    fits(&early.out);

    cluster.azure.advance(Duration::from_secs(90));
    let late = terminal.run(&ask).await?;
    assert_eq!(late.code, 10, "{}\n{}", late.out, late.err);
    assert_contains(
        &late.out,
        &[
            "FAILED: BootstrapTokenInvalid",
            "Machine cli-look/worker-look of cluster prod",
            "could not find a JWS signature",
            "Replace: not useful: BootstrapTokenInvalid",
            "Note: the controller has not reported this yet; this command found it now and does not store it",
        ],
    );
    assert!(!late.out.contains("Report:"), "no report is stored: {}", late.out);
    fits(&late.out);
    let mut asked = ask.to_vec();
    asked.extend(["-o", "json"]);
    let json = terminal.run(&asked).await?.json();
    assert_eq!(json["look"]["asked"][0]["name"], "virtual machine");
    assert_eq!(json["report"]["status"]["verdict"]["cause"], "BootstrapTokenInvalid");
    assert!(cluster.reports().await?.is_empty(), "nothing is written");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_node_is_there_came_up() -> Result<()> {
    let cluster = ManagementCluster::unobserved("cli-up", "{}").await?;
    cluster.launch(Wanted::linux("worker-up")).await?;
    let node = json!({ "status": { "nodeRef": { "name": "node-up" } } });
    let patch = kube::api::Patch::Merge(&node);
    cluster
        .machines()
        .patch_status("worker-up", &kube::api::PatchParams::default(), &patch)
        .await?;
    let ran = bringup_as(shared_with_machines().await?.admin(), &["why", "machine/worker-up"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_contains(
        &ran.out,
        &["SUCCEEDED: the node has joined", "cli-up/worker-up of cluster prod, node no"],
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_not_there_says_where_was_looked_and_where_one_is() -> Result<()> {
    let admin = shared_with_machines().await?.admin();
    for namespace in ["cli-one", "cli-two"] {
        let cluster = ManagementCluster::unobserved(namespace, "{}").await?;
        cluster.create_machine(Wanted::linux("twin-machine"), None).await?;
        if namespace == "cli-one" {
            cluster.create_machine(Wanted::linux("single-machine"), None).await?;
        }
    }
    let elsewhere = bringup_as(admin, &["why", "machine/single-machine", "-n", "cli-two"]);
    assert_eq!((elsewhere.code, elsewhere.out.as_str()), (64, ""));
    assert_contains(
        &elsewhere.err,
        &[
            "found no Machine single-machine and no report about it in namespace cli-two",
            "searched the Machines and the reports of namespace cli-two",
            "a Machine of this name exists in namespace cli-one: use `--namespace cli-one`",
        ],
    );
    fits(&elsewhere.err);
    let twins = bringup_as(admin, &["why", "machine/twin-machine"]);
    assert_eq!(twins.code, 64);
    assert_contains(&twins.err, &["Machine cli-one/twin-machine, Machine cli-two/twin-machine"]);
    assert_contains(&twins.err, &["select one with --namespace"]);
    let wrong = bringup_as(admin, &["why", "machine/single-mahcine"]);
    assert_eq!(wrong.code, 64);
    assert_contains(
        &wrong.err,
        &["and no report about it in any namespace", "did you mean `single-machine`?"],
    );
    let begun = bringup_as(admin, &["why", "ma/single-ma"]);
    assert_eq!(begun.code, 11, "{}", begun.err);
    assert_contains(
        &begun.out,
        &["RUNNING: no verdict yet", "Machine cli-one/single-machine of cluster"],
    );
    let provided = bringup_as(admin, &["why", "azuremachine/nothing-such"]);
    assert_contains(
        &provided.err,
        &["found no Machine of AzureMachine nothing-such and no report about it in any namespace"],
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_see_machines_is_told_by_their_reports() -> Result<()> {
    let cluster = ManagementCluster::new("cli-rights", TOKEN).await?;
    cluster.launch(Wanted::linux("worker-rights")).await?;
    cluster.verdict("worker-rights").await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "cli-reports-only" },
        "rules": [{ "apiGroups": ["bringup.dev"], "resources": ["bootstrapreports"], "verbs": ["list"] }],
    });
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let roles: Api<DynamicObject> =
        Api::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind));
    roles.create(&PostParams::default(), &serde_json::from_value(role)?).await?;
    let reader = shared_with_machines().await?.user("cli-reader", None).await?;
    shared_with_machines().await?.bind(&reader, "cli-reports-only").await?;
    let ran = bringup_as(&reader, &["why", "machine/worker-rights"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(
        &ran.out,
        &[
            "FAILED: BootstrapTokenInvalid",
            "you lack permission for `list` on `machines.cluster.x-",
        ],
    );
    let none = bringup_as(&reader, &["why", "machine/no-such-machine"]);
    assert_eq!(none.code, 64);
    assert_contains(
        &none.err,
        &["no Machine no-such-machine", "not read: you lack permission for `list` on `machines."],
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_of_an_older_cluster_api_are_told_alike() -> Result<()> {
    let cluster = ManagementCluster::own("cli-older", TOKEN, Pace::Real).await?;
    serve_only(&cluster.client, "v1beta1").await?;
    let cluster = cluster.with_version("v1beta1").observed();
    let admin = cluster.control_plane().admin();
    cluster.launch(Wanted::linux("worker-old")).await?;
    cluster.verdict("worker-old").await?;
    let ran = bringup_as(admin, &["why", "machine/worker-old"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(
        &ran.out,
        &["FAILED: BootstrapTokenInvalid", "cli-older/worker-old of cluster prod"],
    );
    let json = bringup_as(admin, &["why", "machine/worker-old", "-o", "json"]).json();
    assert_eq!(json["exists"], true);
    Ok(())
}
