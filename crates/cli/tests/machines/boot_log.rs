//! `bringup boot-log`.

use std::time::Duration;

use anyhow::Result;
use bringup_end_to_end::arm::Arm;
use serde_json::{Value, json};

use crate::common::ManagementCluster;
use crate::help::assert_contains;
use crate::launch::Wanted;
use crate::program::fits;
use crate::terminal::Terminal;

const SECRET: &str = "abcdef.0123456789abcdef";

/// A fixed answer to requests with this method whose path contains `path`.
fn answer(method: &str, path: &str, times: Option<u32>, answer: &Value) -> Value {
    json!({
        "on": { "method": method, "pathContains": path, "times": times },
        "fault": { "answer": answer },
    })
}

/// Machines that start twice, and a storage account that gives four wrong answers before the right one.
fn scenario() -> String {
    let console = format!(
        "first boot\n\u{1b}[0mLinux version 6.8.0-1 (boot two)\n\u{1b}[31mkubeadm join --token {SECRET}\u{1b}[0m\nlast line\n"
    );
    let boot = json!({
        "bootstrap": "user-data", "vmReadyAfter": "2s",
        "script": { "ends": { "exitCode": 0, "lasts": "5s" } }, "console": console,
    });
    let missing = "The client 'c' with object id 'o' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/retrieveBootDiagnosticsData/action' over scope '/there' or the scope is invalid.";
    let denied = json!({ "error": { "code": "AuthorizationFailed", "message": missing } });
    let expired = json!({ "status": 403, "headers": { "x-ms-error-code": "AuthenticationFailed" }, "body": "" });
    let absent =
        json!({ "status": 404, "headers": { "x-ms-error-code": "BlobNotFound" }, "body": "" });
    let bytes = json!({ "content-type": "application/octet-stream" });
    let page = json!({ "status": 200, "headers": bytes, "body": "<!DOCTYPE html><html></html>" });
    json!({
        "rules": [{ "name": "all", "boot": boot }],
        "faults": [
            answer("POST", "/denied/retrieveBoot", None, &json!({ "status": 403, "headers": {}, "body": denied.to_string() })),
            answer("GET", "bootdiagnostics/", Some(1), &expired),
            answer("GET", "bootdiagnostics/", Some(1), &absent),
            answer("GET", "bootdiagnostics/", Some(1), &json!({ "status": 200, "headers": bytes, "body": "" })),
            answer("GET", "bootdiagnostics/", Some(1), &page),
        ],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_printed_without_secrets_and_what_keeps_it_away_is_said() -> Result<()> {
    let cluster = ManagementCluster::unobserved("cli-boot", &scenario()).await?;
    cluster.launch(Wanted::linux("worker-boot")).await?;
    cluster.launch(Wanted::linux("denied")).await?;
    cluster.launch(Wanted { console: false, ..Wanted::linux("dark") }).await?;
    let there = format!("{}/Microsoft.Compute/virtualMachines", cluster.providers());
    cluster
        .create_machine(Wanted::linux("vanished"), Some(&format!("azure://{there}/vanished")))
        .await?;
    let nowhere = Wanted { cluster: "other", ..Wanted::linux("nowhere") };
    cluster.create_machine(nowhere, None).await?;
    cluster.azure.advance(Duration::from_secs(90));
    let terminal = Terminal::new(&cluster.azure).await?;
    let in_namespace = ["-n", "cli-boot"];
    for (name, parts) in [
        ("worker-boot", &["forbidden to read the serial log of VM worker-boot", "has expired"][..]),
        ("worker-boot", &["VM worker-boot has no serial log yet", "try again"]),
        ("worker-boot", &["the serial log of VM worker-boot is empty", "nothing was written yet"]),
        ("worker-boot", &["cannot read the serial log of VM worker-boot", "an HTML page"]),
        (
            "denied",
            &["forbidden to read the serial log of VM denied", "BootDiagnosticsData/action on"],
        ),
        (
            "dark",
            &[
                "no serial log of VM dark is stored",
                "are off for this VM: set spec.diagnostics.boot",
            ],
        ),
        ("vanished", &["VM vanished does not exist, so its serial log cannot be read"]),
        ("nowhere", &["cannot find the VM of Machine cli-boot/nowhere", "provider ID"]),
    ] {
        let typed = format!("machine/{name}");
        let ran = terminal.run(&[&["boot-log", &typed], &in_namespace[..]].concat()).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{name}: {}", ran.err);
        assert_contains(&ran.err, parts);
        assert!(!ran.err.contains("sig="), "an address got out: {}", ran.err);
        fits(&ran.err);
    }

    let last = terminal.run(&["boot-log", "machine/worker-boot"]).await?;
    assert_eq!(last.code, 0, "{}", last.err);
    assert_contains(&last.out, &["(boot two)", "kubeadm join --token", "last line"]);
    assert!(!last.out.contains("first boot"), "{}", last.out);
    assert_contains(&last.err, &["serial log of VM worker-boot:", "2 boots, the last is shown"]);
    let id = format!("{there}/worker-boot");
    let first = terminal.run(&["boot-log", &id, "--boot", "first"]).await?;
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.contains("first boot") && !first.out.contains("boot two"), "{}", first.out);
    let all = terminal.run(&["boot-log", &id, "--boot", "all"]).await?;
    assert_contains(&all.out, &["first boot", "(boot two)"]);
    let end = terminal.run(&["boot-log", &id, "--boot", "all", "--lines", "2"]).await?;
    assert_eq!(end.out.lines().count(), 2, "{}", end.out);
    assert!(all.out.ends_with(&end.out), "{}", end.out);
    for ran in [last, first, all, end] {
        for text in [&ran.out, &ran.err] {
            assert!(!text.contains("0123456789abcdef") && !text.contains('\u{1b}'), "{text:?}");
            assert!(!text.contains('\0') && !text.contains("sig="), "{text:?}");
        }
    }
    Arm::new(cluster.azure.clone()).send("DELETE", &id, None)?;
    cluster.azure.advance(Duration::from_mins(10));
    let gone = terminal.run(&["boot-log", &id]).await?;
    assert_eq!(gone.code, 1);
    assert_contains(&gone.err, &["VM worker-boot does not exist"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_vm_and_what_does_not_exist_is_64() -> Result<()> {
    let cluster = ManagementCluster::unobserved("cli-bootless", "{}").await?;
    let terminal = Terminal::new(&cluster.azure).await?;
    let disk = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d";
    let ran = terminal.run(&["boot-log", disk]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (64, ""));
    assert_contains(&ran.err, &["does not name a machine", "disks"]);
    let ran = terminal.run(&["boot-log", "machine/no-such-machine", "-n", "cli-bootless"]).await?;
    assert_eq!(ran.code, 64, "{}", ran.err);
    assert_contains(
        &ran.err,
        &["found no Machine no-such-machine and no report about it in namespace cli-bootless"],
    );
    let ran = terminal.run(&["boot-log", "no-such-claim", "--lines", "0"]).await?;
    assert_eq!(ran.code, 64, "{}", ran.err);
    Ok(())
}
