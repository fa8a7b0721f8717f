//! `make demo`: a node that fails, as an operator sees it today, what Azure knew, and what bringup
//! makes of it.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use bringup_azure_sim::scenario;
use bringup_testbed::CrdSet;
use bringup_world::World;
use bringup_world::provider::Provider;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<()> {
    say("Starting a real Kubernetes API server and a simulated Azure ...")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/demo.yaml");
    // Minutes pass in Azure while the demo lasts seconds: they are taken from the past, so that
    // kubectl's ages make sense.
    let start = Timestamp::now() - SignedDuration::from_mins(4);
    let world = World::start_at(scenario::load(&path)?, &[CrdSet::KarpenterAzure], start).await?;
    let provider = Provider::new(&world);
    provider.create_pool("default").await?;

    let claim = "default-x7k2p";
    heading("A NodeClaim is launched on AzureLinux V3, image 202601.27.0")?;
    provider.launch(claim, "default", "202601.27.0").await?;
    let error = provider.bootstrap(claim)?.context("the demo's image should fail")?;
    provider.report_failure(claim, &error).await?;

    heading("$ kubectl describe nodeclaim, as Karpenter leaves it")?;
    let described = output(world.control_plane.kubectl()?.args(["describe", "nodeclaim", claim]))?;
    say(&from(&described, "Status:"))?;

    heading("What ARM answers for the VM's extension, for the seconds until the VM is deleted")?;
    let extension =
        format!("{}/extensions/cse-agent-karpenter?$expand=instanceView", Provider::vm_path(claim));
    let body = world.arm().get(&extension)?.body;
    say(&serde_json::to_string_pretty(&shortened(&body)).context("print ARM's answer")?)?;

    heading("$ bringup diagnose extension.json")?;
    say(diagnose(&body)?.trim_end())?;

    heading("Karpenter deletes VM and claim; the answer is gone with them")?;
    provider.clean_up(claim).await?;
    world.azure.advance(std::time::Duration::from_secs(30));
    let gone = world.arm().get(&Provider::vm_path(claim))?;
    say(&format!(
        "GET {} -> {} {}",
        Provider::vm_path(claim),
        gone.status,
        gone.body["error"]["code"]
    ))?;
    let orphans = world.azure.with(|azure| azure.resources().len());
    say(&format!("Resources left in the simulated Azure: {orphans}."))?;
    say("\nNothing is left running. `make sim` starts the same and lets you look around.")
}

/// What `bringup diagnose` says of ARM's answer. It ends with 10, because the bootstrap failed.
fn diagnose(body: &Value) -> Result<String> {
    let directory = tempfile::tempdir().context("make a directory for the answer")?;
    std::fs::write(directory.path().join("extension.json"), body.to_string())
        .context("write ARM's answer")?;
    let program = std::env::var_os("BRINGUP").context("BRINGUP must name the program bringup")?;
    let mut command = Command::new(program);
    command.args(["diagnose", "extension.json"]).current_dir(directory.path());
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    anyhow::ensure!(
        output.status.code() == Some(10),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn say(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").context("write to standard output")
}

fn heading(text: &str) -> Result<()> {
    say(&format!("\n== {text}"))
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    anyhow::ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The part of a text from a heading on.
fn from(text: &str, heading: &str) -> String {
    let start = text.find(heading).unwrap_or(0);
    text[start..].trim_end().to_owned()
}

/// The extension without what does not matter here.
fn shortened(extension: &Value) -> Value {
    serde_json::json!({
        "name": extension["name"],
        "properties": {
            "provisioningState": extension["properties"]["provisioningState"],
            "instanceView": { "statuses": extension["properties"]["instanceView"]["statuses"] },
        },
    })
}
