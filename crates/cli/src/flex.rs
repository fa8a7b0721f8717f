//! `bringup flex`: the machines that bringup creates, and their orphaned resources in Azure.

mod status;
mod sweep;

use clap::{Args, Subcommand};

use crate::args::{AnswerForm, ClusterArguments};
use crate::azure::AzureArguments;
use crate::cluster::Unseen;
use crate::failure::{Exit, Failure};
use crate::program::Program;

/// Examples of use.
pub(crate) const EXAMPLES: &str = "Examples:
  bringup flex status
  bringup flex status --output json
  bringup flex sweep --dry-run --azure-credential azure-cli
  bringup flex sweep --azure-credential azure-cli

See docs/flex.md.";

/// `flex`.
#[derive(Debug, Subcommand)]
pub(crate) enum FlexCommand {
    /// Show classes, machines, refused VM sizes, quotas and orphaned resources
    #[command(
        after_help = "Examples:\n  bringup flex status\n  bringup flex status --output json\n  bringup flex status --context staging --system-namespace fleet"
    )]
    Status(StatusArguments),
    /// Delete orphaned Azure resources: VMs, NICs and disks without a machine
    #[command(
        after_help = "Examples:\n  bringup flex sweep --dry-run --azure-credential azure-cli\n  bringup flex sweep --azure-credential azure-cli\n  bringup flex sweep --dry-run --flex-cluster prod-1\n\nThe sweep deletes only resources with the tags of this cluster that are older\nthan five minutes. The controller runs the same sweep every five minutes."
    )]
    Sweep(SweepArguments),
}

/// `flex status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: AnswerForm,
    /// Namespace of the controller, which stores its ledger there
    #[arg(long, value_name = "NAMESPACE", default_value = "bringup-system")]
    system_namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// `flex sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// List the orphaned resources, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Cluster ID in the tags of resources; default: the one that the controller uses
    #[arg(long, value_name = "ID")]
    flex_cluster: Option<String>,
    /// Namespace of the controller, which stores its ledger there
    #[arg(long, value_name = "NAMESPACE", default_value = "bringup-system")]
    system_namespace: String,
    #[command(flatten)]
    azure: AzureArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Runs the command.
pub(crate) fn run(command: FlexCommand, program: Program) -> Result<Exit, Failure> {
    match command {
        FlexCommand::Status(typed) => status::run(typed, program),
        FlexCommand::Sweep(typed) => sweep::run(typed, program),
    }
}

/// The error when machines cannot be listed.
fn unseen(unseen: Unseen) -> Failure {
    match unseen {
        Unseen::NotServed => Failure::error(
            "bringup does not manage VMs in this cluster: AzureFlexMachines are not installed",
        )
        .detail("the API server does not serve azureflexmachines.flex.aks.azure.com")
        .hint("install the chart with `flex.enabled`; or choose another cluster with --context"),
        other => other.failure(),
    }
}
