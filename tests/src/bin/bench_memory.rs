//! `make bench-memory`: the memory usage of the released controller while 200 nodes are pending, each with a
//! console of 4 MiB.

#[path = "bench/process.rs"]
mod process;

use bringup_end_to_end::process::built;
use bringup_end_to_end::say;
use std::time::Duration;

use anyhow::{Result, ensure};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_end_to_end::order::Order;
use process::Usage;
use serde_json::json;

const PENDING: usize = 200;
const CONSOLE: usize = 4 * 1024 * 1024;
/// The highest allowed memory usage of the controller, in kilobytes.
const MOST: u64 = 128_000_000 / 1024;
/// How often progress is shown.
const PAUSE: Duration = Duration::from_secs(15);
/// How long the controller is observed after it has read every console.
const AFTER: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<()> {
    let program = built("BRINGUP", "bringup")?;
    let bed = TestBed::builder().scenario(&scenario()).endpoints().start().await?;
    let order = Order { console: true, ..Order::of("202601.27.0") };
    bed.karpenter.create_pool("default").await?;
    for nth in 0..PENDING {
        let claim = format!("pending-{nth}");
        bed.launch(&claim, "default", &order).await?;
    }
    let mut controller = ControllerProcess::start(&program, &bed, &[]).await?;
    controller.logged("leading").await?;
    say(&format!("{PENDING} claims are pending; consoles are read when a claim is 5 minutes old"))?;
    loop {
        tokio::time::sleep(PAUSE).await;
        let read = consoles_read(&bed);
        say(&format!("{read} of {PENDING} consoles read; {}", Usage::of(controller.id())?))?;
        if read >= PENDING {
            break;
        }
    }
    tokio::time::sleep(AFTER).await;
    let usage = Usage::of(controller.id())?;
    say(&format!(
        "{PENDING} pending nodes with consoles of 4 MiB: {usage} (target: under 128 MB at most)"
    ))?;
    ensure!(usage.most_resident < MOST, "the controller needs too much memory");
    ensure!(controller.terminate()? == Some(0), "the controller should end in good order");
    Ok(())
}

/// Machines that need no extension, and whose scripts never end.
fn scenario() -> String {
    let line = "[   42.000000] cloud-init[1899]: a line like any other, and nothing is wrong\r\n";
    let console = line.repeat(CONSOLE / line.len());
    let boot = json!({
        "bootstrap": "custom-data", "script": "hangs", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
        "earlyConsole": console,
    });
    json!({ "rules": [{ "name": "all", "boot": boot }] }).to_string()
}

/// The number of VMs whose console was read.
fn consoles_read(bed: &TestBed) -> usize {
    bed.azure.with(|azure| {
        let blobs = azure
            .journal()
            .requests()
            .iter()
            .filter(|request| request.path.contains("serialconsole.log"));
        let blob = |path: &'_ str| path.split('?').next().unwrap_or_default().to_owned();
        let mut blobs: Vec<String> = blobs.map(|request| blob(&request.path)).collect();
        blobs.sort_unstable();
        blobs.dedup();
        blobs.len()
    })
}
