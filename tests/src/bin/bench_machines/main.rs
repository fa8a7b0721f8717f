//! `make bench-machines`: what the controller as it is shipped needs for 5,000 Machines of Cluster API,
//! beside what it needs for as many NodeClaims.

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
/// How long it is watched whether anything still happens.
const QUIET: Duration = Duration::from_secs(10);
/// As much of a core as it may need while nothing happens.
const LITTLE: f64 = 0.03;

/// What a cluster is full of.
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

/// What the controller needs in such a cluster, once it has seen everything.
async fn measure(program: &Path, fill: Fill) -> Result<Usage> {
    let bed = TestBed::builder().definitions(&CrdSet::DEFAULT).endpoints().start().await?;
    match fill {
        Fill::Nothing => {}
        Fill::Claims => {
            claims::fill(&bed.client, FLEET).await?;
        }
        Fill::Machines => fleet::fill(&bed.client, FLEET).await?,
    }
    // The same program in the same way, whatever the cluster is full of.
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
