//! `bringup why`.

use std::process::Command;

use anyhow::Result;

use crate::common::{fits, ran};
use crate::example_cluster::{bringup, flat, shared};

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
}

#[tokio::test]
async fn a_claim_that_is_gone_is_told_by_its_report_with_proof_remedy_and_images() -> Result<()> {
    let ran = bringup(&["why", "default-gone"]).await?;
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(
        &ran.out,
        &[
            "FAILED: BinaryMissing, exit code 211 ERR_ORAS_PULL_NETWORK_TIMEOUT\n",
            "  | timeout: failed to run command 'oras': No such file or directory\n",
            "What misled:\n  ERR_ORAS_PULL_NETWORK_TIMEOUT: Says network timeout.\n",
            "+63   s  verdict\n",
            "serial log is disabled: boot diagnostics are off\n",
            "What to do:\n  Use an image that has the program.\n",
            "  202601.27.0: 3 of 3 failed; 202601.13.0: 5 of 5 joined;",
            "Owner:      image owner\n",
            "Report:     bringup-system/default-gone-",
        ],
    );
    let who = "NodeClaim default-gone of pool default, node aks-default-gone, is gone; failed 4m";
    assert_contains(&flat(&ran.out), &[who]);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    fits(&ran.out);
    Ok(())
}

#[tokio::test]
async fn node_vm_report_id_and_beginning_lead_to_the_same_claim() -> Result<()> {
    let whole = bringup(&["why", "default-gone"]).await?.out;
    for name in [
        "aks-default-gone",
        "AKS-default-gone-vm",
        "default-gone-0000007531",
        "default-g",
        "DEFAULT-GO",
        "/subscriptions/s/resourceGroups/x/providers/Microsoft.Compute/virtualMachines/AKS-DEFAULT-GONE",
    ] {
        let ran = bringup(&["why", name]).await?;
        assert_eq!((ran.code, ran.out.as_str()), (10, whole.as_str()), "{name}: {}", ran.err);
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_that_is_there_and_failed_is_told_by_its_report() -> Result<()> {
    for name in ["default-alive", "aks-default-alive", "default-al"] {
        let ran = bringup(&["why", name]).await?;
        assert_eq!(ran.code, 10, "{}", ran.err);
        assert_contains(
            &ran.out,
            &["FAILED: BinaryMissing", "NodeClaim default-alive of pool default"],
        );
        assert!(!ran.out.contains("is gone"), "{}", ran.out);
    }
    Ok(())
}

#[tokio::test]
async fn a_beginning_of_several_names_lists_them() -> Result<()> {
    let ran = bringup(&["why", "default-"]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (64, ""));
    let said = flat(&ran.err);
    assert_contains(
        &said,
        &["`default-` matches 8 objects", "NodeClaim default-gone", "use a longer prefix"],
    );
    fits(&ran.err);
    Ok(())
}

#[tokio::test]
async fn a_name_that_nothing_has_says_where_was_looked_and_what_is_near() -> Result<()> {
    let ran = bringup(&["why", "default-gnoe"]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (64, ""));
    let said = flat(&ran.err);
    assert_contains(
        &said,
        &["searched the NodeClaims, the Nodes and the reports of all namespaces"],
    );
    assert_contains(&said, &["did you mean `default-gone`? `bringup reports` lists"]);
    Ok(())
}

#[tokio::test]
async fn a_node_that_came_up_is_0_and_one_that_is_awaited_is_11() -> Result<()> {
    for name in ["default-ok1", "aks-default-ok1", "aks-default-ok1".to_uppercase().as_str()] {
        let ran = bringup(&["why", name]).await?;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_contains(
            &ran.out,
            &["SUCCEEDED: the node has joined", "Node aks-default-ok1 is ready."],
        );
    }
    let ran = bringup(&["why", "gpu-"]).await?;
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert_contains(
        &ran.out,
        &["RUNNING: no verdict yet", "BootstrapSucceeded=Unknown, Diagnosing"],
    );
    assert_contains(
        &ran.out,
        &["Registered=Unknown, NodeNotFound: Node not registered", "`bringup reports`"],
    );
    assert_contains(
        &flat(&ran.out),
        &[
            "Note: no evidence was read from Azure: cannot use the Azure credential workload-identity:",
        ],
    );
    fits(&ran.out);
    Ok(())
}

#[tokio::test]
async fn a_node_without_a_claim_has_joined_and_shows_whether_it_is_ready() -> Result<()> {
    for name in ["aks-system-1", "aks-sys"] {
        let ran = bringup(&["why", name]).await?;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_contains(&ran.out, &["Node aks-system-1 is not ready now: The CNI is not ready."]);
    }
    Ok(())
}

#[tokio::test]
async fn of_a_claim_that_failed_twice_the_newest_is_told_and_the_other_named() -> Result<()> {
    let ran = bringup(&["why", "other-twice"]).await?;
    assert_eq!(ran.code, 10, "{}", ran.err);
    assert_contains(&flat(&ran.out), &["failed 2h ago", "Report: team-a/other-twice-0000007534"]);
    assert_contains(
        &ran.out,
        &["Other failures under this name:\n  team-a/other-twice-0000007533: Binary"],
    );
    assert_contains(&ran.out, &["202512.03.0: 2 of 2 failed; 202601.27.0: 3 of 3 failed;\n"]);
    let older = bringup(&["why", "other-twice-0000007533"]).await?;
    assert_contains(
        &flat(&older.out),
        &["failed 25h ago", "Report: team-a/other-twice-0000007533"],
    );
    Ok(())
}

#[tokio::test]
async fn programs_get_json_and_yaml() -> Result<()> {
    let json = bringup(&["why", "default-gone", "-o", "json"]).await?.json();
    assert_eq!(json["verdict"], "failed");
    assert_eq!((&json["cause"], &json["exists"]), (&"BinaryMissing".into(), &false.into()));
    assert_eq!(json["images"][0]["failed"], 3);
    assert_eq!(json["report"]["status"]["cse"]["exitCode"], 211);
    let yaml = bringup(&["why", "default-ok1", "-o", "yaml"]).await?.out;
    assert_contains(&yaml, &["verdict: succeeded\n", "exists: true\n", "nodeReady: true\n"]);
    Ok(())
}

#[tokio::test]
async fn kubectl_finds_it_as_a_plugin_and_usage_says_kubectl_bringup() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let plugin = directory.path().join("kubectl-bringup");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bringup"), &plugin)?;
    let help = ran(Command::new(&plugin).args(["why", "--help"]));
    assert_contains(
        &help.out,
        &["Usage: kubectl bringup why [OPTIONS] <NODECLAIM|NODE|VM|machine/NAME>"],
    );
    assert_contains(&help.out, &["  kubectl bringup why default-x7k2p\n"]);
    fits(&help.out);
    let whole = ran(Command::new(&plugin).arg("--help"));
    assert_contains(&whole.out, &["Usage: kubectl bringup <COMMAND>"]);
    let wrong = ran(Command::new(&plugin).args(["why"]));
    assert_eq!(wrong.code, 64);
    assert_contains(&wrong.err, &["Usage: kubectl bringup why"]);

    let mut paths = vec![directory.path().to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut kubectl = shared().await?.kubectl()?;
    let path = std::env::join_paths(paths)?;
    let asked = ran(kubectl.args(["bringup", "why", "default-gone"]).env("PATH", path));
    assert_eq!(asked.out, bringup(&["why", "default-gone"]).await?.out, "{}", asked.err);
    Ok(())
}
