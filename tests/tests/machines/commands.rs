//! `bringup-node wait` in a managed run command: bringup reads its output where nothing else shows the
//! failure.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::arm::Arm;
use bringup_objects::cluster_api::vm_name;
use bringup_objects::report::{Collector, CollectorState};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition};
use crate::launch::{Form, Wanted};

/// The last line that `bringup-node wait` prints.
const WAIT: &str = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";
/// A token that the script prints before that line.
const SECRET: &str = "q1w2e3.0123456789abcdef";

/// A rule for VMs of a case in which a run command prints this.
fn rule(case: &str, prints: &str) -> Value {
    json!({
        "name": case, "when": { "tags": { "case": case } },
        "boot": {
            "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
            "script": { "ends": { "exitCode": 1, "lasts": "5s" } },
            "runCommands": { "bringup-wait": { "exitCode": 31, "lasts": "10s", "output": prints } },
        },
    })
}

/// The VM of a machine in Azure.
fn vm(cluster: &ManagementCluster, arm: &Arm, wanted: Wanted<'_>) -> Result<String> {
    let compute = format!("{}/Microsoft.Compute", cluster.providers());
    let name = vm_name(wanted.name, wanted.os == "Windows");
    if wanted.form == Form::Vm {
        return Ok(format!("{compute}/virtualMachines/{name}"));
    }
    let all =
        arm.get(&format!("{compute}/virtualMachineScaleSets/{}/virtualMachines", wanted.name))?;
    Ok(all.body["value"][0]["id"].as_str().context("an instance")?.to_owned())
}

/// Creates machines with their run commands, and waits until the controller has seen all of them.
async fn cluster(
    name: &str,
    scenario: &Value,
    machines: &[Wanted<'_>],
) -> Result<ManagementCluster> {
    let cluster = ManagementCluster::new(name, &scenario.to_string()).await?;
    let arm = Arm::new(cluster.azure.clone());
    for wanted in machines {
        cluster.launch(*wanted).await?;
        let is = |it: &DynamicObject| condition(it, "BootstrapSucceeded").is_some();
        cluster.until(cluster.machines(), wanted.name, "the Machine to be seen", is).await?;
    }
    // A run command starts once the guest agent runs.
    cluster.azure.advance(Duration::from_secs(10));
    for wanted in machines {
        let script = json!({ "script": "/usr/local/bin/bringup-node wait --timeout 8m" });
        let command = json!({ "location": "eastus", "properties": { "source": script } });
        let path = format!("{}/runCommands/bringup-wait", vm(&cluster, &arm, *wanted)?);
        arm.put(&path, &command)?;
    }
    Ok(cluster)
}

fn is_down(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

/// The verdict on a machine: its cause and its message.
async fn verdict(cluster: &ManagementCluster, name: &str) -> Result<(String, String)> {
    let what = format!("a verdict of {name}");
    let machine = cluster.until(cluster.machines(), name, &what, is_down).await?;
    let verdict = condition(&machine, "BootstrapSucceeded").context("there")?;
    let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
    Ok((text("reason"), text("message")))
}

/// The result of the collector of run commands.
async fn run_command_collector(cluster: &ManagementCluster, name: &str) -> Result<Collector> {
    let reports = cluster.reports().await?;
    let report = reports.iter().find(|it| it.spec.target_ref.name == name).context("a report")?;
    let all = &report.status.as_ref().context("there")?.collectors;
    let asked = all.iter().find(|asked| asked.name == "run commands");
    asked.cloned().with_context(|| format!("{name}: {all:?}"))
}

/// The number of reads of a machine's run commands.
fn reads(cluster: &ManagementCluster, name: &str) -> usize {
    let path = format!("/{name}/runCommands?");
    cluster.azure.with(|azure| {
        let all = azure.journal().requests().iter();
        all.filter(|one| one.method == "GET" && one.path.contains(&path)).count()
    })
}

#[tokio::test]
async fn test_22_28_the_summary_line_of_a_wait_is_found_in_the_output_of_a_run_command()
-> Result<()> {
    let whole = format!("token {SECRET}\nwaiting\n{WAIT}\n");
    let cut = &whole[..whole.len() - "],\"end\":1}\n".len()];
    let scenario = json!({ "rules": [
        rule("linux", &whole), rule("windows", &whole), rule("uniform", &whole), rule("cut", cut),
    ] });
    let of = |name| Wanted { case: name, ..Wanted::linux(name) };
    let machines = [
        of("linux"),
        Wanted { os: "Windows", ..of("windows") },
        Wanted { form: Form::Uniform, ..of("uniform") },
        of("cut"),
    ];
    let cluster = cluster("commands", &scenario, &machines).await?;
    cluster.azure.advance(Duration::from_secs(70));
    for wanted in machines {
        let (reason, message) = verdict(&cluster, wanted.name).await?;
        assert_eq!(reason, "BootstrapTokenInvalid", "{}: {message}", wanted.name);
        let is_sure = message.contains("Confidence high");
        assert_eq!(is_sure, wanted.name != "cut", "{}: {message}", wanted.name);
        if is_sure {
            let proof = "cluster-info has no signature for it";
            assert!(message.contains(proof), "{}: {message}", wanted.name);
        }
        let asked = run_command_collector(&cluster, wanted.name).await?;
        assert_eq!(asked.state, CollectorState::Ok, "{asked:?}");
        assert!(asked.detail.contains("bringup-node in bringup-wait: Failed"), "{asked:?}");
    }
    let reports = serde_json::to_string(&cluster.reports().await?)?;
    assert!(reports.contains("run command"), "the source is named: {reports}");
    assert!(!reports.contains(SECRET), "what else was printed is redacted");
    Ok(())
}

#[tokio::test]
async fn run_commands_that_no_object_shows_are_read_once_before_the_verdict() -> Result<()> {
    let denied = json!({ "error": { "code": "AuthorizationFailed", "message": "The client 'c' with object id 'o' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/runCommands/read' over scope '/there' or the scope is invalid." } });
    let scenario = json!({
        "quirks": { "runCommandHandler": "hidden" },
        "rules": [
            rule("hidden", WAIT),
            rule("users", "cp: error writing 'x': No space left on device"),
            rule("denied", WAIT),
        ],
        "faults": [{
            "on": { "method": "GET", "pathContains": "/denied/runCommands" },
            "fault": { "answer": { "status": 403, "headers": {}, "body": denied.to_string() } },
        }],
    });
    let machines =
        ["hidden", "users", "denied"].map(|name| Wanted { case: name, ..Wanted::linux(name) });
    let cluster = cluster("lastquestion", &scenario, &machines).await?;
    cluster.azure.advance(Duration::from_secs(70));
    for wanted in machines {
        cluster.until_looked(wanted.name).await?;
        assert_eq!(reads(&cluster, wanted.name), 0, "{}: nothing speaks of one", wanted.name);
    }
    cluster.azure.advance(Duration::from_secs(550));
    for (name, cause, state, detail) in [
        ("hidden", "BootstrapTokenInvalid", CollectorState::Ok, "bringup-node in bringup-wait"),
        ("users", "Unknown", CollectorState::Ok, "none is of bringup-node"),
        ("denied", "Unknown", CollectorState::Denied, "virtualMachines/runCommands/read"),
    ] {
        let (reason, message) = verdict(&cluster, name).await?;
        assert_eq!(reason, cause, "{name}: {message}");
        let asked = run_command_collector(&cluster, name).await?;
        assert_eq!(asked.state, state, "{name}: {asked:?}");
        assert!(asked.detail.contains(detail), "{name}: {asked:?}");
        assert_eq!(reads(&cluster, name), 1, "{name}");
    }
    Ok(())
}
