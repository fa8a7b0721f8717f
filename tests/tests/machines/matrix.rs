//! Every form of a machine with every way to fail: one verdict each, and the line that proves it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_objects::BootstrapReport;
use bringup_objects::report::CollectorState;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::common::{ManagementCluster, condition, kinds};
use crate::launch::{Form, Wanted};

/// What happens to a machine, and the expected verdict.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The lines that the bootstrap writes to the console.
    console: &'static [&'static str],
    cause: &'static str,
    /// A part of the line that proves the cause.
    pub(crate) proof: &'static str,
    pub(crate) is: Is,
}

/// What is different about a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    /// The console proves the cause.
    Plain,
    /// The console supports the cause, and only the end of the provider's own extension shows the
    /// failure.
    Hinted,
    /// The Node joins.
    Healthy,
    /// The agent never reports.
    Silent,
    /// The console is off, and the provider's own extension reports the failure.
    Dark,
    /// The console is off, and `bringup-node wait` runs in an extension.
    Waited,
    /// The provider's own extension is off.
    Bare,
}

impl Is {
    fn has_console(self) -> bool {
        !matches!(self, Self::Dark | Self::Waited)
    }
}

const PREFLIGHT: &str = "[preflight] Some fatal errors occurred:";
const FINISHED: &str = "Cloud-init v. 24.4.1 finished at Thu, 01 Jan 2026 00:02:03 +0000. Datasource DataSourceAzure [seed=/dev/sr0].  Up 93.10 seconds";
const JWS: &str = "error: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"";

/// The only message of the provider's extension.
const GIVES_UP: &str =
    "Enable failed: failed to execute command: command terminated with exit status=1";
const WAITED: &str = "BRINGUP-NODE/1 {\"v\":1,\"kind\":\"wait\",\"exit\":31,\"name\":\"X\",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1}";

pub(crate) static CASES: [Case; 13] = [
    Case {
        name: "healthy",
        console: &["This node has joined the cluster:"],
        cause: "NodeRegistered",
        proof: "",
        is: Is::Healthy,
    },
    Case {
        name: "userdata",
        console: &[
            "util.py[WARNING]: Failed loading yaml blob. Invalid format at line 7 column 3",
            FINISHED,
        ],
        cause: "UserDataInvalid",
        proof: "Failed loading yaml blob",
        is: Is::Hinted,
    },
    Case {
        name: "script",
        console: &[
            "/var/lib/cloud/instance/scripts/runcmd: 4: kubeadm: not found",
            "cc_scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in /var/lib/cloud/instance/scripts)",
        ],
        cause: "BinaryMissing",
        proof: "kubeadm: not found",
        is: Is::Plain,
    },
    Case {
        name: "token",
        console: &[JWS],
        cause: "BootstrapTokenInvalid",
        proof: "could not find a JWS signature",
        is: Is::Plain,
    },
    Case {
        name: "dns",
        console: &[
            "error: error execution phase preflight: couldn't validate the identity of the API Server: failed to request the cluster-info ConfigMap: Get \"https://prod.example:6443/api/v1/namespaces/kube-public/configmaps/cluster-info\": dial tcp: lookup prod.example on 127.0.0.53:53: no such host",
        ],
        cause: "ApiServerDnsFailure",
        proof: "lookup prod.example",
        is: Is::Plain,
    },
    Case {
        name: "apiserver",
        console: &[
            "error: error execution phase preflight: couldn't validate the identity of the API Server: failed to request the cluster-info ConfigMap: Get \"https://prod.example:6443/api/v1/namespaces/kube-public/configmaps/cluster-info\": dial tcp 192.0.2.4:6443: i/o timeout",
        ],
        cause: "ApiServerUnreachable",
        proof: "192.0.2.4:6443: i/o timeout",
        is: Is::Plain,
    },
    Case {
        name: "preflight",
        console: &[
            PREFLIGHT,
            "\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
            "error: error execution phase preflight: preflight checks failed",
        ],
        cause: "VmTooSmall",
        proof: "[ERROR NumCPU]",
        is: Is::Plain,
    },
    Case {
        name: "runtime",
        console: &[
            PREFLIGHT,
            "\t[ERROR CRI]: could not connect to the container runtime: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService",
            "error: error execution phase preflight: preflight checks failed",
        ],
        cause: "ContainerRuntimeFailure",
        proof: "unknown service runtime.v1.RuntimeService",
        is: Is::Plain,
    },
    Case {
        name: "disk",
        console: &["cp: error writing '/opt/bin/kubelet': No space left on device", FINISHED],
        cause: "DiskFull",
        proof: "No space left on device",
        is: Is::Plain,
    },
    Case {
        name: "agent",
        console: &[],
        cause: "GuestAgentUnresponsive",
        proof: "VM status blob",
        is: Is::Silent,
    },
    Case {
        name: "dark",
        console: &[JWS],
        cause: "Unknown",
        proof: "has reported a failure when processing extension 'CAPZ.",
        is: Is::Dark,
    },
    Case {
        name: "waited",
        console: &[JWS],
        cause: "BootstrapTokenInvalid",
        proof: "cluster-info has no signature for it",
        is: Is::Waited,
    },
    Case {
        name: "bare",
        console: &[JWS],
        cause: "BootstrapTokenInvalid",
        proof: "could not find a JWS signature",
        is: Is::Bare,
    },
];

/// A form of machine.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) os: &'static str,
    pub(crate) form: Form,
}

pub(crate) const ROWS: [Row; 4] = [
    Row { name: "linux", os: "Linux", form: Form::Vm },
    Row { name: "windows", os: "Windows", form: Form::Vm },
    Row { name: "uniform", os: "Linux", form: Form::Uniform },
    Row { name: "flexible", os: "Linux", form: Form::Flexible },
];

/// The scenario's rules for the VMs: how long their scripts take, and how long the provider's own
/// extension waits for the scripts.
pub(crate) fn scenario(script: &str, extension: &str) -> String {
    let rules: Vec<_> = CASES.iter().map(|case| case.rule(script, extension)).collect();
    json!({ "rules": rules }).to_string()
}

impl Case {
    fn rule(&self, script: &str, extension: &str) -> serde_json::Value {
        let fails = i32::from(self.is != Is::Healthy);
        let lines = self.console.iter().enumerate();
        let console: Vec<String> = lines
            .map(|(at, line)| format!("[   {}.812] cloud-init[1021]: {line}", 90 + at))
            .collect();
        let gives_up = json!({ "exitCode": fails, "lasts": extension, "output": GIVES_UP });
        let waited = json!({ "exitCode": 31, "lasts": extension, "output": WAITED });
        json!({
            "name": self.name,
            "when": { "tags": { "case": self.name } },
            "boot": {
                "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
                "agent": if self.is == Is::Silent { "silent" } else { "ready" },
                "script": { "ends": { "exitCode": fails, "lasts": script } },
                "console": console.join("\n"),
                "extensions": {
                    "CAPZ.Linux.Bootstrapping": gives_up, "CAPZ.Windows.Bootstrapping": gives_up,
                    "BringupNodeLinux": waited, "BringupNodeWindows": waited,
                },
            },
        })
    }

    pub(crate) fn machine(&self, row: Row) -> String {
        format!("{}-{}", row.name, self.name)
    }
}

pub(crate) fn is_failed(machine: &DynamicObject) -> bool {
    condition(machine, "BootstrapSucceeded").is_some_and(|it| it["status"] == "False")
}

/// Checks that a machine has the expected verdict, with its proof and the sources that were read.
pub(crate) fn check(
    case: &Case,
    machine: &DynamicObject,
    report: Option<&BootstrapReport>,
) -> Result<()> {
    let verdict = condition(machine, "BootstrapSucceeded").context("there")?;
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    assert_eq!(verdict["reason"], case.cause, "{name}: {verdict}");
    let message = verdict["message"].as_str().unwrap_or_default();
    assert!(message.contains(case.proof), "{name}: {message}");
    if case.is == Is::Healthy {
        assert!(report.is_none(), "{name} has not failed");
        return Ok(());
    }
    let report = report.with_context(|| format!("{name} has a report"))?;
    let status = report.status.as_ref().context("there")?;
    let lines: Vec<&str> = status.evidence.iter().map(|line| line.line.as_str()).collect();
    assert!(lines.iter().any(|line| line.contains(case.proof)), "{name}: {lines:?}");
    let console = status.collectors.iter().find(|asked| asked.name == "serial log");
    if case.is == Is::Waited {
        assert!(console.is_none(), "{name}: what is certain needs no console");
        return Ok(());
    }
    let is_on = case.is.has_console();
    let wanted = if is_on { CollectorState::Ok } else { CollectorState::Disabled };
    let console = console.with_context(|| format!("{name}: {:?}", status.collectors))?;
    assert_eq!(console.state, wanted, "{name}: {console:?}");
    Ok(())
}

/// A form of machine with a case.
pub(crate) type Cell = (Row, &'static Case);

/// Every form with every case.
pub(crate) fn all() -> impl Iterator<Item = Cell> {
    ROWS.iter().flat_map(|row| CASES.iter().map(|case| (*row, case)))
}

/// Creates the machines, and waits until the controller has seen them.
pub(crate) async fn launch(cluster: &ManagementCluster, cells: &[Cell]) -> Result<()> {
    for (row, case) in cells {
        let extension = match case.is {
            Is::Waited => format!("BringupNode{}", row.os),
            _ => format!("CAPZ.{}.Bootstrapping", row.os),
        };
        let extensions = [extension.as_str()];
        let name = case.machine(*row);
        let wanted = Wanted {
            os: row.os,
            form: row.form,
            console: case.is.has_console(),
            case: case.name,
            extensions: if case.is == Is::Bare { &[] } else { &extensions },
            ..Wanted::linux(&name)
        };
        cluster.launch(wanted).await.with_context(|| name.clone())?;
    }
    for (row, case) in cells {
        let name = case.machine(*row);
        let is = |it: &DynamicObject| condition(it, "BootstrapSucceeded").is_some();
        cluster.until(cluster.machines(), &name, &format!("{name} to be seen"), is).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_form_of_machine_gets_the_right_verdict_for_every_failure() -> Result<()> {
    let cluster = ManagementCluster::new("matrix", &scenario("5s", "20s")).await?;
    launch(&cluster, &all().collect::<Vec<_>>()).await?;
    for (row, _) in all().filter(|(_, case)| case.is == Is::Healthy) {
        let name = format!("{}-healthy", row.name);
        let joined = json!({ "status": { "nodeRef": { "name": name } } });
        let patch = Patch::Merge(&joined);
        cluster.machines().patch_status(&name, &PatchParams::default(), &patch).await?;
    }
    cluster.azure.advance(Duration::from_secs(70));
    let is_over = |(_, case): &Cell| !matches!(case.is, Is::Silent | Is::Healthy);
    for (row, case) in all().filter(is_over) {
        let name = case.machine(row);
        cluster
            .until(cluster.machines(), &name, &format!("a verdict of {name}"), is_failed)
            .await?;
    }
    cluster.azure.advance(Duration::from_secs(550));
    for (row, case) in all() {
        let name = case.machine(row);
        let is = |it: &DynamicObject| {
            let status = condition(it, "BootstrapSucceeded").map(|it| it["status"].clone());
            status == Some(json!(if case.is == Is::Healthy { "True" } else { "False" }))
        };
        let machine =
            cluster.until(cluster.machines(), &name, &format!("a verdict of {name}"), is).await?;
        let mirror = match row.form {
            Form::Vm => cluster.provided(),
            Form::Uniform | Form::Flexible | Form::Strange => cluster.pooled(),
        };
        let status = condition(&machine, "BootstrapSucceeded").context("there")?["status"].clone();
        let same = |it: &DynamicObject| {
            condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == status)
        };
        let behind = cluster.until(mirror, &name, &format!("the same behind {name}"), same).await?;
        assert_eq!(kinds(&behind), ["Ready", "VMRunning", "NodeBootstrapSucceeded"], "{name}");
        let reports = cluster.reports().await?;
        let report = reports.iter().find(|report| report.spec.target_ref.name == name);
        check(case, &machine, report)?;
    }
    Ok(())
}
