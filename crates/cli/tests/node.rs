//! The real agent inside simulated VMs, and the resulting reports in the cluster. The boothook of the real
//! CustomData starts the agent with stub scripts, in a machine with a root, processes and a network of its
//! own; the extension's command waits for the result.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::ProgramRunner;
use bringup_azure_sim::scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_contract::node_config::{Form, NodeConfig, node_bootstrapping};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::arm::Arm;
use bringup_end_to_end::guest::{Guest, can_boot};
use bringup_end_to_end::order::Order;
use bringup_end_to_end::test_bed::shared;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, CSE_PROVISIONED, find};
use bringup_objects::{BootstrapReport, NodeClaim};
use serde_json::{Value, json};

/// A configuration whose nodes pull programs from a registry, with oras.
const CONFIGURATION: &str = r#"{
  "version": "v1",
  "vm_size": "Standard_D4s_v5",
  "api_server_config": {"api_server_name": "aks1.hcp.eastus.azmk8s.io"},
  "cluster_config": {"location": "eastus"},
  "bootstrapping_config": {"tls_bootstrapping_token": "abcdef.0123456789abcdef"},
  "bootstrap_profile_container_registry_server": "registry.example.io/aks-managed-repository"
}"#;

/// The beginning of each script: `say TEXT` logs, `ends CODE` writes a result like AKS's scripts.
const SCRIPT: &str = r#"
log=/var/log/azure/cluster-provision.log
mkdir -p /var/log/azure/aks
say() { printf '%s\n' "$*" >>$log; }
ends() {
  printf '{"ExitCode": "%s", "Output": "%s", "Error": "", "ExecDuration": "3"}' "$1" \
    "$(tail -c 2000 $log | tr '\n"\\' '|__')" >/var/log/azure/aks/provision.json
  touch /opt/azure/containers/provision.complete
  exit "$1"
}
"#;

/// The agent under test: in the folder of bringup, where `cargo test --workspace` builds it.
fn agent() -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_bringup")).with_file_name("bringup-node");
    anyhow::ensure!(path.exists(), "there is no bringup-node: cargo build -p bringup-node");
    Ok(path)
}

fn machine(script: &str) -> Result<Guest> {
    Guest::new(&agent()?, &format!("{SCRIPT}{script}"))
}

fn has_oras(guest: Guest) -> Result<Guest> {
    guest.program("local/bin/oras", "echo 1.3.0")?;
    Ok(guest)
}

fn order() -> Result<Order> {
    order_as(Form::Boothook)
}

fn order_as(form: Form) -> Result<Order> {
    let config = NodeConfig::parse(CONFIGURATION.as_bytes())?;
    let made = node_bootstrapping(&config, form)?;
    Ok(Order::of("202601.27.0").bootstrapped(&made.custom_data, made.cse))
}

/// Status, reason and message of a condition.
fn condition_of(claim: &NodeClaim, kind: &str) -> (String, String, String) {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    find(conditions, kind)
        .map(|held| (held.status.clone(), held.reason.clone(), held.message.clone()))
        .unwrap_or_default()
}

/// A node that did not come up.
struct Failed {
    claim: NodeClaim,
    report: BootstrapReport,
    /// The output of `bringup why`.
    why: String,
}

impl Failed {
    /// The cause and the code in the report.
    fn cause(&self) -> (&str, Option<i32>) {
        let status = self.report.status.as_ref();
        let cause = status.and_then(|status| status.verdict.as_ref());
        let cse = status.and_then(|status| status.cse.as_ref());
        (cause.map_or("", |verdict| verdict.cause.as_str()), cse.and_then(|cse| cse.exit_code))
    }

    /// Whether the cause in the report was found on the node.
    fn is_from_the_node(&self) -> bool {
        let evidence = self.report.status.as_ref().and_then(|status| status.root_evidence.as_ref());
        evidence.is_some_and(|evidence| evidence.source == "node report")
    }
}

/// Brings up a node that fails.
async fn fail(name: &str, guest: &Guest) -> Result<Failed> {
    let bed = TestBed::named(name, &guest.scenario()).await?;
    let _programs = ProgramRunner::start(bed.azure.clone());
    let _controller = bed.observe();
    let (claim, order) = (bed.claim_name("a"), order()?);
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    let error = bed.karpenter.bootstrap_for_real(&claim, &order).await?;
    let error = error.context("the bootstrap should fail")?;
    bed.karpenter.report_failure(&claim, &error).await?;
    let object = bed.failed_claim(&claim).await?;
    let report = bed.report().await?;
    let why = Command::new(env!("CARGO_BIN_EXE_bringup"))
        .args(["why", &claim])
        .env("KUBECONFIG", shared().await?.admin().kubeconfig_path())
        .output()?;
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    Ok(Failed { claim: object, report, why })
}

#[tokio::test]
async fn a_healthy_node_comes_up() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let guest = has_oras(machine("say all is well; ends 0")?)?;
    let bed = TestBed::named("healthy", &guest.scenario()).await?;
    let _programs = ProgramRunner::start(bed.azure.clone());
    let _controller = bed.observe();
    let (claim, order) = (bed.claim_name("a"), order()?);
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    assert_eq!(bed.karpenter.bootstrap_for_real(&claim, &order).await?, None);
    bed.azure.advance(Duration::from_mins(1));
    bed.ready_node(&claim).await?;
    bed.karpenter.register(&claim).await?;
    let up = |claim: &NodeClaim| {
        condition_of(claim, BOOTSTRAP_SUCCEEDED).0 == "True"
            && condition_of(claim, CSE_PROVISIONED).0 == "True"
    };
    bed.claim_when(&claim, "a node that is up", up).await?;
    Ok(())
}

#[tokio::test]
async fn on_an_older_image_the_enabled_unit_brings_the_node_up() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let guest = has_oras(machine("say all is well; ends 0")?)?;
    let bed = TestBed::named("olderimage", &guest.scenario()).await?;
    let _programs = ProgramRunner::start(bed.azure.clone());
    let (claim, order) = (bed.claim_name("a"), order_as(Form::CloudConfig)?);
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    assert_eq!(bed.karpenter.bootstrap_for_real(&claim, &order).await?, None);
    assert!(guest.read("/var/log/azure/cluster-provision.log").contains("all is well"));
    Ok(())
}

#[tokio::test]
async fn oras_that_is_missing_reaches_the_claim_with_its_code_name_and_evidence() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let failed = fail("orasmissing", &machine("say this must not run; ends 0")?).await?;
    assert_eq!(failed.cause(), ("BinaryMissing", Some(232)));
    let (_, _, told) = condition_of(&failed.claim, CSE_PROVISIONED);
    assert!(told.starts_with("CSE exited with code 232 (ERR_ORAS_BINARY_NOT_FOUND)"), "{told}");
    assert_eq!(condition_of(&failed.claim, BOOTSTRAP_SUCCEEDED).1, "BinaryMissing");
    assert!(failed.why.contains("ERR_ORAS_BINARY_NOT_FOUND"), "{}", failed.why);
    assert!(failed.why.contains("oras"), "{}", failed.why);
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

#[tokio::test]
async fn oras_that_is_not_in_the_path_is_found_by_the_scripts_all_the_same() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let guest = machine("oras version >>$log 2>&1 || ends 211; ends 0")?;
    guest.program("/opt/bin/oras", "echo 1.3.0")?;
    let bed = TestBed::named("notinpath", &guest.scenario()).await?;
    let _programs = ProgramRunner::start(bed.azure.clone());
    let (claim, order) = (bed.claim_name("a"), order()?);
    bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
    assert_eq!(bed.karpenter.bootstrap_for_real(&claim, &order).await?, None);
    let report = guest.read("/var/log/bringup-node/provision-report.json");
    assert!(report.contains("not-in-path"), "{report}");
    Ok(())
}

#[tokio::test]
async fn scripts_that_set_the_path_themselves_and_lose_oras_are_told_from_a_network_timeout()
-> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let script = "export PATH=/usr/sbin:/usr/bin\n\
        timeout 60 oras login registry.example.io 2>>$log || { say '+ exit 211'; ends 211; }";
    let guest = machine(script)?;
    guest.program("/opt/bin/oras", "echo 1.3.0")?;
    let failed = fail("lostpath", &guest).await?;
    assert_eq!(failed.cause(), ("BinaryMissing", Some(211)));
    assert!(failed.why.contains("oras"), "{}", failed.why);
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

#[tokio::test]
async fn an_unreachable_name_server_is_the_cause() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let script = "say '+ nslookup aks1.hcp.eastus.azmk8s.io'\n\
        getent hosts aks1.hcp.eastus.azmk8s.io || \
        say ';; connection timed out; no servers could be reached'\n\
        say '+ exit 52'; ends 52";
    let failed = fail("dnsdead", &has_oras(machine(script)?)?).await?;
    assert_eq!(failed.cause().1, Some(52));
    assert!(
        ["DnsFailure", "ApiServerDnsFailure"].contains(&failed.cause().0),
        "{:?}",
        failed.cause()
    );
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

#[tokio::test]
async fn a_disk_that_the_scripts_fill_is_the_cause_and_the_result_is_not_lost() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let script = "say '+ tar -xf kubernetes-node.tar.gz'\n\
        head -c 100000000 /dev/zero 2>/dev/null >/var/big || \
        echo 'tar: kubelet: Cannot write: No space left on device' >&2\n\
        exit 85";
    let guest = has_oras(machine(script)?)?.with_small_var("24m")?;
    let failed = fail("diskfull", &guest).await?;
    assert_eq!(failed.cause(), ("DiskFull", Some(85)));
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_is_killed_with_its_scripts_is_said_to_have_died() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    // The agent, the keeper between them, and the script.
    let script = "say '+ installContainerRuntime'\n\
        for pid in $(grep -l -a -E '^[^ ]*aks-node-controller' /proc/[0-9]*/cmdline | cut -d/ -f3); do\n\
          grep -q -a provision-wait /proc/$pid/cmdline || kill -9 $pid\n\
        done\n\
        kill -9 $PPID $$";
    let failed = fail("killedagent", &has_oras(machine(script)?)?).await?;
    assert_eq!(failed.cause().1, Some(245));
    let (_, _, told) = condition_of(&failed.claim, CSE_PROVISIONED);
    assert!(told.contains("PROVISIONER_DIED"), "{told}");
    Ok(())
}

#[tokio::test]
async fn scripts_that_hang_are_told_of_with_the_step_in_which_they_hang() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let guest = has_oras(machine("say '+ retrycmd_if_failure'; exec sleep infinity")?)?;
    guest.file("/etc/bringup-node/config.toml", "timeout = \"3s\"\n")?;
    let failed = fail("hangs", &guest).await?;
    assert_eq!(failed.cause(), ("TimeBudgetExhausted", Some(246)));
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

#[tokio::test]
async fn the_success_of_the_machine_that_an_image_was_captured_from_is_not_believed() -> Result<()>
{
    if !can_boot("guest") {
        return Ok(());
    }
    let script = "say 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (apt-get)'\n\
        say '+ exit 99'; ends 99";
    let guest = has_oras(machine(script)?)?;
    guest.file("/opt/azure/containers/provision.complete", "")?;
    guest
        .file("/var/log/azure/aks/provision.json", r#"{"ExitCode":"0","Output":"","Error":""}"#)?;
    guest.file("/var/lib/cloud/data/previous-instance-id", "one\n")?;
    guest.file("/var/lib/cloud/data/instance-id", "two\n")?;
    let failed = fail("captured", &guest).await?;
    assert_eq!(failed.cause(), ("PackageManagerLocked", Some(99)));
    assert!(failed.is_from_the_node(), "{:?}", failed.report.status);
    Ok(())
}

/// The output of `bringup` with these arguments, and its exit code.
fn bringup(arguments: &[&str], input: &str) -> Result<(String, Option<i32>)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bringup"));
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("its input")?.write_all(input.as_bytes())?;
    let ended = child.wait_with_output()?;
    Ok((String::from_utf8(ended.stdout)?, ended.status.code()))
}

#[tokio::test]
async fn a_scale_set_as_bringup_writes_it_boots_the_agent_and_tells_why_it_failed() -> Result<()> {
    if !can_boot("guest") {
        return Ok(());
    }
    let guest = machine("say this must not run; ends 0")?;
    let start = jiff::Timestamp::now();
    let azure = Simulator::new(scenario::parse("set", &guest.scenario())?, Pace::Real, start);
    let _programs = ProgramRunner::start(azure.clone());
    let (body, code) = bringup(&["nodeconfig", "scale-set", "-"], CONFIGURATION)?;
    assert_eq!(code, Some(0));
    let mut body: Value = serde_json::from_str(&body)?;
    // The properties that only the caller knows: the image, the subnet, and the SSH keys.
    let profile = &mut body["properties"]["virtualMachineProfile"];
    profile["storageProfile"] = json!({ "imageReference": { "version": "202601.27.0" } });
    profile["osProfile"]["computerNamePrefix"] = json!("aks-set-");
    profile["osProfile"]["linuxConfiguration"] = json!({ "ssh": { "publicKeys": [{
        "path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA",
    }] } });
    profile["networkProfile"] = json!({ "networkInterfaceConfigurations": [{
        "name": "nic",
        "properties": { "ipConfigurations": [{ "name": "ip", "properties": { "subnet": {
            "id": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/vnet1/subnets/nodes",
        } } }] },
    }] });
    let arm = Arm::new(azure);
    let set = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg1/providers/Microsoft.Compute/virtualMachineScaleSets/set";
    let ended = arm.follow(&arm.put(set, &body)?).await?;
    assert_eq!(ended["error"]["code"], "VMExtensionProvisioningError", "{ended}");

    let view = arm.get(&format!("{set}/virtualMachines/0/instanceView"))?.body;
    assert_eq!(view["extensions"][0]["name"], "vmssCSE");
    let message = view["extensions"][0]["statuses"][0]["message"].as_str().unwrap_or_default();
    let (said, code) = bringup(&["diagnose", "-", "--output", "json"], message)?;
    assert_eq!(code, Some(10), "{said}");
    let said: Value = serde_json::from_str(&said)?;
    assert_eq!(said["cause"]["reason"], "BinaryMissing", "{said}");
    assert_eq!((&said["exitCode"], &said["codeSource"]), (&json!(232), &json!("node")));
    assert_eq!(said["constant"], "ERR_ORAS_BINARY_NOT_FOUND");
    Ok(())
}
