//! Clusters that do not exist, lack a resource, or do not allow the user to read.

use std::process::Command;

use anyhow::Result;
use bringup_objects::report::definition;
use bringup_testbed::{ControlPlane, CrdSet, User};
use serde_json::json;

use crate::common::{Ran, file, fits, ran};
use crate::example_cluster::{BAD, bringup_as, claim, create, failed, flat, report, shared};

fn assert_contains(text: &str, parts: &[&str]) {
    let text = flat(text);
    for part in parts {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
}

/// Runs bringup with a kubeconfig of its own, or none.
fn bringup_at(kubeconfig: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBERNETES_SERVICE_PORT");
    ran(&mut command)
}

/// Runs bringup as a user with an Azure credential, which the command never uses.
fn bringup_with_azure(user: &User, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
    command.args(arguments).env("KUBECONFIG", user.kubeconfig_path());
    ran(command.env("BRINGUP_AZURE_CREDENTIAL", "managed-identity"))
}

#[test]
fn without_a_kubeconfig_there_is_no_cluster_to_ask() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("none").display().to_string();
    for command in [&["why", "x"][..], &["why", "machine/x"], &["reports"], &["report", "x"]] {
        let ran = bringup_at(&nowhere, command);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert_contains(&ran.err, &["cannot read the kubeconfig", &nowhere, "--kubeconfig"]);
    }
    let empty = file(directory.path(), "empty", b"apiVersion: v1\nkind: Config\n");
    let ran = bringup_at(&empty, &["reports"]);
    assert_contains(&ran.err, &["the kubeconfig has no current context", "--context"]);
    let broken = file(directory.path(), "broken", b"{{");
    assert_eq!(bringup_at(&broken, &["reports"]).code, 1);
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let directory = tempfile::tempdir().unwrap();
    // No server listens on the port of a closed listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    drop(listener);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "k", "cluster": { "server": address } }],
        "contexts": [{ "name": "c", "context": { "cluster": "k" } }],
    });
    let path = file(directory.path(), "config", config.to_string().as_bytes());
    let ran = bringup_at(&path, &["why", "x"]);
    assert_eq!(ran.code, 1);
    assert_contains(
        &ran.err,
        &[&address, "cannot be reached", "Connection refused", "get-contexts"],
    );
    fits(&ran.err);
    let other = bringup_at(&path, &["why", "x", "--context", "d"]);
    assert_eq!(other.code, 64);
    assert_contains(&other.err, &["the kubeconfig has no context `d`"]);
}

#[tokio::test]
async fn who_may_not_look_is_told_which_verb_on_what_is_missing() -> Result<()> {
    let plane = shared().await?;
    let user = plane.user("no-rights", None).await?;
    for command in [&["why", "default-gone"][..], &["reports"], &["report", "x"]] {
        let ran = bringup_as(&user, command);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert_contains(
            &ran.err,
            &["you lack permission for `list` on `bootstrapreports.bringup.dev`"],
        );
        assert_contains(
            &ran.err,
            &["User \"no-rights\" cannot list", "the ClusterRole `bringup-reader`"],
        );
        fits(&ran.err);
    }
    Ok(())
}

#[tokio::test]
async fn what_may_be_seen_is_told_and_what_may_not_is_noted() -> Result<()> {
    let plane = shared().await?;
    let role = |name: &str, group: &str, resource: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": name },
            "rules": [{ "apiGroups": [group], "resources": [resource], "verbs": ["get", "list"] }],
        })
    };
    create(&plane.client(), &role("claims", "karpenter.sh", "nodeclaims")).await?;
    create(&plane.client(), &role("reports", "bringup.dev", "bootstrapreports")).await?;
    let claims = plane.user("claims", None).await?;
    plane.bind(&claims, "claims").await?;
    let ran = bringup_as(&claims, &["why", "default-alive"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(&ran.out, &["FAILED: BinaryMissing", "oras is absent. Use another image."]);
    assert_contains(
        &ran.out,
        &["Note: not read: you lack permission for `list` on `bootstrapreports.bringup.dev`"],
    );
    let reports = plane.user("reports", None).await?;
    plane.bind(&reports, "reports").await?;
    let ran = bringup_as(&reports, &["why", "default-go"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(&ran.out, &["FAILED: BinaryMissing", "202601.27.0: 3 of 3 failed"]);
    assert_contains(&ran.out, &["you lack permission for `list` on `nodeclaims.karpenter.sh`"]);
    Ok(())
}

#[tokio::test]
async fn without_reports_only_what_the_conditions_say_is_told() -> Result<()> {
    let plane = ControlPlane::builder().crds([]).start().await?;
    for command in [&["why", "x"][..], &["reports"]] {
        let ran = bringup_as(plane.admin(), command);
        assert_eq!(ran.code, 1);
        assert_contains(&ran.err, &["bringup is not installed in this cluster", "helm install"]);
        fits(&ran.err);
    }
    plane.install(CrdSet::Karpenter).await?;
    let client = plane.client();
    claim(&client, "alone", "default", BAD, &failed()).await?;
    claim(&client, "silent", "default", BAD, &failed()[..2]).await?;
    let ran = bringup_as(plane.admin(), &["why", "alone"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(
        &ran.out,
        &["FAILED: BinaryMissing", "CSE exited with code 211.", "not installed"],
    );
    let ran = bringup_as(plane.admin(), &["why", "silent"]);
    assert_eq!(ran.code, 1);
    assert_contains(&ran.err, &["bringup is not installed in this cluster"]);
    Ok(())
}

#[tokio::test]
async fn without_cluster_api_a_machine_is_told_by_its_report_or_not_at_all() -> Result<()> {
    let plane = ControlPlane::builder().crds([]).start().await?;
    plane.install_definitions([definition()]).await?;
    for command in ["why", "boot-log"] {
        let ran = bringup_with_azure(plane.admin(), &[command, "machine/worker-1"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert_contains(&ran.err, &["Cluster API is not installed in this cluster", "--context"]);
        fits(&ran.err);
    }
    let mut told = report("default", "worker-1", "u1", "", "1.34.2", 60);
    told["spec"]["targetRef"]["kind"] = "Machine".into();
    told["spec"]["parentRef"] = json!({ "kind": "Cluster", "name": "prod" });
    told["metadata"]["labels"] = json!({});
    create(&plane.client(), &told).await?;
    for name in ["machine/worker-1", "machine/work", "worker-1"] {
        let ran = bringup_as(plane.admin(), &["why", name]);
        assert_eq!(ran.code, 10, "{}", ran.err);
        assert_contains(
            &ran.out,
            &["Machine default/worker-1 of cluster prod, node aks-worker-1, is gone"],
        );
    }
    Ok(())
}

#[tokio::test]
async fn without_karpenter_reports_are_enough() -> Result<()> {
    let plane = ControlPlane::builder().crds([]).start().await?;
    plane.install_definitions([definition()]).await?;
    let told = report("default", "old-x7k2p", "u1", "old", BAD, 60);
    create(&plane.client(), &told).await?;
    for name in ["old-x7k2p", "old-", "aks-old-x7k2p"] {
        let ran = bringup_as(plane.admin(), &["why", name]);
        assert_eq!(ran.code, 10, "{}", ran.err);
        assert_contains(&ran.out, &["FAILED: BinaryMissing", "202601.27.0: 1 of 1 failed"]);
        assert!(!ran.out.contains("Note:"), "{}", ran.out);
    }
    Ok(())
}
