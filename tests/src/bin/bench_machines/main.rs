//! `make bench-machines`: the resource usage of the released controller for 5,000 Machines of Cluster API,
//! compared with its usage for the same number of NodeClaims.

#[path = "../bench/fleet.rs"]
mod claims;
mod fleet;
#[path = "../bench/process.rs"]
mod process;

use bringup_end_to_end::process::built;
use bringup_end_to_end::say;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use bringup_testbed::CrdSet;
use process::Usage;

const FLEET: usize = 5_000;
/// The time in which the controller must be idle.
const QUIET: Duration = Duration::from_secs(10);
/// The largest share of a core that an idle controller may use.
const LITTLE: f64 = 0.03;

/// The objects that fill the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Nothing,
    Claims,
    Machines,
}

#[tokio::main]
async fn main() -> Result<()> {
    let program = built("BRINGUP", "bringup")?;
    let nothing = measure(&program, Fill::Nothing).await?;
    say(&format!("nothing to look after: {nothing}"))?;
    let claims = measure(&program, Fill::Claims).await?;
    say(&format!("{FLEET} NodeClaims and their Nodes: {claims}"))?;
    let machines = measure(&program, Fill::Machines).await?;
    say(&format!("{FLEET} Machines and their AzureMachines: {machines}"))?;
    let share = 100 * machines.resident / claims.resident.max(1);
    say(&format!("Machines need {share} % of what NodeClaims need (target: at most 120)"))
}

/// The usage of the controller in such a cluster, once it has seen all objects.
async fn measure(program: &Path, fill: Fill) -> Result<Usage> {
    let bed = TestBed::builder().definitions(&CrdSet::DEFAULT).endpoints().start().await?;
    match fill {
        Fill::Nothing => {}
        Fill::Claims => {
            claims::fill(&bed.client, FLEET).await?;
        }
        Fill::Machines => fleet::fill(&bed.client, FLEET).await?,
    }
    // The same program with the same options for both clusters.
    let mut controller = ControllerProcess::start(program, &bed, &["--machines"]).await?;
    controller.logged("leading").await?;
    let mut before = Usage::of(controller.id())?;
    let usage = loop {
        tokio::time::sleep(QUIET).await;
        let now = Usage::of(controller.id())?;
        let busy = now.processor.saturating_sub(before.processor).as_secs_f64();
        before = now;
        if busy < LITTLE * QUIET.as_secs_f64() {
            break now;
        }
    };
    let asked = bed.azure.with(|azure| azure.journal().requests().len());
    ensure!(asked == 0, "no Machine is pending, and Azure received {asked} reads");
    ensure!(controller.terminate()? == Some(0), "the controller should end in good order");
    Ok(usage)
}
