//! Machines that join with another agent than kubeadm: those of RKE2 and k3s.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition};
use crate::latency::{judged_in_time, watched};
use crate::launch::Wanted;

/// What happens to a machine, and the expected verdict.
struct Case {
    name: &'static str,
    /// The bootstrap provider's kind.
    config: &'static str,
    console: &'static [&'static str],
    cause: &'static str,
    proof: &'static str,
}

const UNREACHABLE: &str = "rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://prod.example:9345: failed to get CA certs: Get \\\"https://127.0.0.1:6444/cacerts\\\": dial tcp 192.0.2.4:9345: i/o timeout\"";
const FAILED: &str = "cloud-init[1021]: Job for rke2-agent.service failed because the control process exited with error code.";
const FINISHED: &str = "cloud-init[1021]: Cloud-init v. 25.1 finished at Mon, 02 Mar 2026 14:31:42 +0000. Up 72.50 seconds";

const CASES: [Case; 5] = [
    Case {
        name: "rke2-token",
        config: "RKE2Config",
        console: &[
            "rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Waiting to retrieve agent configuration; server is not ready: https://127.0.0.1:6444/v1-rke2/serving-kubelet.crt: 401 Unauthorized\"",
            FAILED,
            FINISHED,
        ],
        cause: "BootstrapTokenInvalid",
        proof: "/v1-rke2/serving-kubelet.crt: 401 Unauthorized",
    },
    Case {
        name: "rke2-ca",
        config: "RKE2Config",
        console: &[
            "rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://prod.example:9345: token CA hash does not match the Cluster CA certificate hash: 9f00ab != 4be1cd\"",
            FINISHED,
        ],
        cause: "ClusterCaMismatch",
        proof: "token CA hash does not match",
    },
    Case {
        name: "rke2-unreachable",
        config: "RKE2Config",
        console: &[UNREACHABLE, UNREACHABLE, FAILED],
        cause: "ApiServerUnreachable",
        proof: "192.0.2.4:9345: i/o timeout",
    },
    Case {
        name: "k3s-name",
        config: "KThreesConfig",
        console: &[
            "k3s[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Waiting to retrieve agent configuration; server is not ready: Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag\"",
            FINISHED,
        ],
        cause: "NodeIdentityConflict",
        proof: "Node password rejected, duplicate hostname",
    },
    // The agent keeps retrying, and no component reports the end of the bootstrap.
    Case {
        name: "rke2-retries",
        config: "RKE2Config",
        console: &[UNREACHABLE, UNREACHABLE],
        cause: "ApiServerUnreachable",
        proof: "192.0.2.4:9345: i/o timeout",
    },
];
/// An agent whose first two requests fail, and which then gets a response.
const CAME_RIGHT: [&str; 3] = [
    UNREACHABLE,
    UNREACHABLE,
    "rke2[1733]: time=\"2026-03-02T14:31:31Z\" level=info msg=\"Running kubelet --address=0.0.0.0\"",
];

fn rule(case: &str, console: &[&str], lasts: &str) -> Value {
    let lines = console.iter().enumerate();
    let console: Vec<String> =
        lines.map(|(at, line)| format!("[   {}.812000] {line}", 40 + at)).collect();
    json!({
        "name": case, "when": { "tags": { "case": case } },
        "boot": {
            "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
            "script": { "ends": { "exitCode": 1, "lasts": lasts } },
            "console": console.join("\n"),
        },
    })
}

fn status(machine: &DynamicObject) -> Option<&str> {
    condition(machine, "BootstrapSucceeded")?["status"].as_str()
}

#[tokio::test]
async fn a_machine_that_another_agent_joins_gets_the_right_verdict_and_its_proof() -> Result<()> {
    let mut rules: Vec<Value> =
        CASES.iter().map(|case| rule(case.name, case.console, "5s")).collect();
    rules.push(rule("came-right", &CAME_RIGHT, "5s"));
    let cluster = ManagementCluster::new("agents", &json!({ "rules": rules }).to_string()).await?;
    let known = CASES.iter().map(|case| (case.name, case.config));
    for (name, config) in known.chain([("came-right", "RKE2Config")]) {
        cluster.launch(Wanted { case: name, config: Some(config), ..Wanted::linux(name) }).await?;
        let is = |it: &DynamicObject| status(it).is_some();
        cluster.until(cluster.machines(), name, "the Machine to be seen", is).await?;
    }
    cluster.azure.advance(Duration::from_secs(70));
    for case in &CASES {
        if case.name == "rke2-retries" {
            cluster.until_looked(case.name).await?;
            cluster.until_looked("came-right").await?;
            cluster.azure.advance(Duration::from_secs(550));
        }
        let down = |it: &DynamicObject| status(it) == Some("False");
        let what = format!("a verdict of {}", case.name);
        let machine = cluster.until(cluster.machines(), case.name, &what, down).await?;
        let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
        assert_eq!(verdict["reason"], case.cause, "{}: {verdict}", case.name);
        let message = verdict["message"].as_str().unwrap_or_default();
        assert!(message.contains(case.proof), "{}: {message}", case.name);
        let is_sure = message.contains("Confidence high");
        assert_eq!(is_sure, case.name != "rke2-retries", "{}: {message}", case.name);
    }
    // The time of this machine is over as well, and the errors that it recovered from are not given as
    // the cause.
    let down = |it: &DynamicObject| status(it) == Some("False");
    let machine =
        cluster.until(cluster.machines(), "came-right", "its time to be over", down).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    assert_eq!(verdict["reason"], "Unknown", "{verdict}");
    Ok(())
}

#[tokio::test]
async fn a_machine_that_another_agent_joins_is_judged_within_three_seconds() -> Result<()> {
    // All cases but the one in which no component reports the end.
    let decided = &CASES[..4];
    let rules: Vec<Value> =
        decided.iter().map(|case| rule(case.name, case.console, "1m")).collect();
    let rules = json!({ "rules": rules }).to_string();
    let cluster = ManagementCluster::with_manual_clock("agents-in-time", &rules).await?;
    let mut waiting = Vec::new();
    for Case { name, config, proof, .. } in decided {
        cluster.launch(Wanted { case: name, config: Some(config), ..Wanted::linux(name) }).await?;
        waiting.push(watched(&cluster, name, proof).await?);
    }
    judged_in_time(&cluster, waiting).await
}
