//! `bringup why` accepts the same options as the controller.

use bringup_end_to_end::test_bed::shared_with_machines;
use std::time::Duration;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::common::ManagementCluster;
use crate::help::{assert_contains, bringup_as};
use crate::launch::Wanted;
use crate::program::fits;
use crate::terminal::Terminal;

/// A scenario with a machine whose console contains these lines.
fn scenario(console: &[&str]) -> String {
    let boot = json!({
        "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
        "script": { "ends": { "exitCode": 0, "lasts": "5s" } }, "console": console.join("\n"),
    });
    json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_of_the_user_are_looked_for() -> Result<()> {
    let console = scenario(&[
        "[   91.8] cloud-init[1021]: the license server says no",
        "[   92.0] cloud-init[1021]: Failed to run module scripts-user",
    ]);
    let cluster = ManagementCluster::unobserved("cli-lines", &console).await?;
    cluster.launch(Wanted::linux("worker-lines")).await?;
    cluster.azure.advance(Duration::from_secs(90));
    let terminal = Terminal::new(&cluster.azure).await?;
    let ask = ["why", "machine/worker-lines", "-n", "cli-lines"];
    let plain = terminal.run(&ask).await?;
    assert!(!plain.out.contains("ConfigRejected"), "{}", plain.out);

    let directory = tempfile::tempdir()?;
    let file = directory.path().join("lines.yaml");
    let known = "version: 1\nsignatures:\n- {id: license, literal: license server says no, cause: ConfigRejected, rank: 20, reference: 'https://wiki.contoso.example/license'}\n";
    std::fs::write(&file, known)?;
    let path = file.to_string_lossy();
    let asked = [&ask[..], &["--signatures", &path]].concat();
    let told = terminal.run(&asked).await?;
    assert_eq!(told.code, 10, "{}\n{}", told.out, told.err);
    assert_contains(
        &told.out,
        &["FAILED: ConfigRejected", "the license server says no", "/license"],
    );
    fits(&told.out);

    std::fs::write(&file, known.replace("rank: 20", "rank: 500"))?;
    let refused = bringup_as(shared_with_machines().await?.admin(), &asked);
    assert_eq!((refused.code, refused.out.as_str()), (65, ""), "{}", refused.err);
    assert_contains(&refused.err, &["cannot use the signatures in", "its rank has to be 1 to 499"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_judged_when_the_time_of_its_controller_is_over() -> Result<()> {
    // The console shows no end, so there is no verdict before the time limit.
    let line = "[   91.8] cloud-init[1021]: curl: (6) Could not resolve host: a.contoso.example";
    let cluster = ManagementCluster::unobserved("cli-deadline", &scenario(&[line])).await?;
    cluster.launch(Wanted::linux("worker-late")).await?;
    cluster.azure.advance(Duration::from_secs(90));
    let since = Timestamp::now() - SignedDuration::from_hours(2);
    let made = json!({ "status": { "conditions": [{
        "type": "InfrastructureReady", "status": "True", "reason": "Ready",
        "message": "it is there", "lastTransitionTime": since.strftime("%FT%TZ").to_string(),
    }] } });
    let machines = cluster.machines();
    machines.patch_status("worker-late", &PatchParams::default(), &Patch::Merge(&made)).await?;
    let terminal = Terminal::new(&cluster.azure).await?;
    let ask = ["why", "machine/worker-late", "-n", "cli-deadline"];
    for (more, code, said) in [
        (&[][..], 10, "FAILED: DnsFailure"),
        (&["--machine-deadline", "1h"], 10, "FAILED: DnsFailure"),
        (&["--machine-deadline", "7d"], 11, "RUNNING: no verdict yet"),
        (&["--machine-deadline", "soon"], 64, ""),
    ] {
        let ran = terminal.run(&[&ask, more].concat()).await?;
        assert_eq!(ran.code, code, "{more:?}: {}\n{}", ran.out, ran.err);
        assert_contains(&ran.out, &[said]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_nothing_can_be_made_from_yet_is_no_failure() -> Result<()> {
    let cluster = ManagementCluster::unobserved("cli-early", &scenario(&[])).await?;
    let early = Wanted { is_said: false, has_data: false, ..Wanted::linux("worker-early") };
    cluster.create_machine(early, None).await?;
    let late = Wanted { is_said: false, ..Wanted::linux("worker-quota") };
    cluster.create_machine(late, None).await?;
    let terminal = Terminal::new(&cluster.azure).await?;
    for (name, said) in [
        ("worker-early", "Its VM has not been requested yet."),
        ("worker-quota", "virtual machine was not found: the VM does not exist"),
    ] {
        let asked = ["why", &format!("machine/{name}"), "-n", "cli-early"];
        let told = terminal.run(&asked).await?;
        assert_eq!(told.code, 11, "{name}: {}\n{}", told.out, told.err);
        assert_contains(&told.out, &["its node has not joined yet", said]);
        fits(&told.out);
    }
    Ok(())
}
