//! One run of a script inside a machine of its own, see `tests/guest/boot.sh`.

use std::process::Command;

use anyhow::{Context as _, Result};
use bringup_end_to_end::guest::Guest;

const BOOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guest/boot.sh");

/// The path of the measured program in the machine, whatever its name outside.
pub(crate) const AGENT: &str = "/opt/azure/containers/aks-node-controller";

/// Runs a script as the only process of the machine; the machine ends with the script.
pub(crate) fn run(guest: &Guest, script: &str) -> Result<()> {
    guest.file("boot/guest.sh", script)?;
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "--pid", "--uts", "--net", "--ipc"])
        .args(["--fork", "--kill-child", "bash", BOOT])
        .arg(guest.at("/"))
        .arg("inside");
    let output = command.output().context("run unshare")?;
    anyhow::ensure!(
        output.status.success(),
        "the machine ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
