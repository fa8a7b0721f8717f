//! `make sim`: a real control plane and a simulated Azure, until Ctrl-C.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use clap::Parser;

/// Starts a real Kubernetes control plane and a simulated Azure, and says how to reach both.
#[derive(Debug, Parser)]
#[command(
    name = "bringup-sim",
    after_help = "Example:\n  bringup-sim --scenario tests/scenarios/demo.yaml"
)]
struct Options {
    /// What the VMs of the simulated Azure do; without it, all are healthy.
    #[arg(long, env = "BRINGUP_SCENARIO", value_name = "FILE")]
    scenario: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let mut builder = TestBed::builder().machines().endpoints().not_installed();
    if let Some(path) = &options.scenario {
        builder = builder.scenario_file(path);
    }
    let bed = builder.start().await?;
    let kubectl = bed.control_plane().kubectl().context("find kubectl")?;
    write!(
        io::stdout(),
        "A real control plane and a simulated Azure are up. Ctrl-C ends both and leaves nothing behind.\n\
         \n\
         Kubernetes\n\
         \x20 export KUBECONFIG={kubeconfig}\n\
         \x20 {kubectl} get crds\n\
         \n\
         Azure (any bearer token is accepted)\n\
         \x20 curl --cacert {ca} -H 'Authorization: Bearer me' \\\n\
         \x20   '{azure}/subscriptions/s/providers/Microsoft.Compute/virtualMachines?api-version=2024-11-01'\n\
         \n\
         Time, faults, what happened\n\
         \x20 curl {control}/log\n\
         \x20 curl {control}/resources\n\
         \x20 curl -X POST {control}/clock -d '{{\"advance\": \"15m\"}}'\n",
        kubeconfig = bed.kubeconfig().display(),
        kubectl = kubectl.get_program().display(),
        ca = bed.azure_ca_file().display(),
        azure = bed.azure_endpoint(),
        control = bed.control_endpoint(),
    )?;
    io::stdout().flush()?;
    tokio::signal::ctrl_c().await.context("wait for Ctrl-C")?;
    let left = bed
        .azure
        .with(|azure| azure.resources().into_iter().filter(|resource| resource.orphan).count());
    writeln!(io::stdout(), "\nStopped. Resources that nothing used any more: {left}.")?;
    Ok(())
}
