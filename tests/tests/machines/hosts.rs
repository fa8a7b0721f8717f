//! What is known of a cluster beside its machines: the name of its API server, and lines that only
//! whoever runs it knows.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::common::{Ground, condition};
use crate::launch::Wanted;

/// A token that somebody printed just before.
const SECRET: &str = "q1w2e3.0123456789abcdef";

/// A machine that asks for a host in vain, and says nothing of what it wanted there.
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
    // What the ground says is the host of its API server.
    let rules = [rule("ours", "PROD.example"), rule("theirs", "downloads.example")];
    let ground = Ground::new("hosts", &json!({ "rules": rules }).to_string()).await?;
    for name in ["ours", "theirs"] {
        ground.launch(Wanted { case: name, ..Wanted::linux(name) }).await?;
    }
    for (name, cause) in [("ours", "ApiServerDnsFailure"), ("theirs", "DnsFailure")] {
        let machine = ground.verdict(name).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], cause, "{verdict}");
    }
    let reports = ground.reports().await?;
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

#[tokio::test]
async fn a_line_that_only_its_user_knows_gets_its_verdict() -> Result<()> {
    let console = "[   91.812000] cloud-init[1021]: License server says NO\n[   93.812000] cloud-init[1021]: Cloud-init v. 25.1 finished at Mon, 02 Mar 2026 14:31:42 +0000. Up 93.81 seconds";
    let boot = json!({
        "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
        "script": { "ends": { "exitCode": 1, "lasts": "5s" } }, "console": console,
    });
    let scenario = json!({ "rules": [{ "name": "all", "boot": boot }] });
    let ground = Ground::new("signatures", &scenario.to_string()).await?;
    ground.launch(Wanted::linux("licensed")).await?;
    let machine = ground.verdict("licensed").await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "ConfigRejected", "{verdict}");
    let message = verdict["message"].as_str().unwrap_or_default();
    assert!(message.contains("License server says NO"), "{message}");
    assert!(message.contains("contoso.license, see https://wiki.contoso.example"), "{message}");
    Ok(())
}
