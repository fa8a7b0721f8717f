//! `bringup flex`: machines that bringup makes, and what is left of them in Azure.

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
  bringup flex sweep --dry-run --azure-credential azure-cli";

/// `flex`.
#[derive(Debug, Subcommand)]
pub(crate) enum FlexCommand {
    /// Shows machines, what Azure has refused, quotas, and whether anything is left
    #[command(after_help = "Examples:\n  bringup flex status\n  bringup flex status -o json")]
    Status(StatusArguments),
    /// Removes from Azure what belongs to no machine of this cluster
    #[command(
        after_help = "Examples:\n  bringup flex sweep --dry-run --azure-credential azure-cli\n\nNothing is touched that does not bear the tags of this cluster, or is younger\nthan five minutes. The controller does the same every five minutes."
    )]
    Sweep(SweepArguments),
}

/// `flex status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: AnswerForm,
    /// Where the controller keeps what it remembers
    #[arg(long, value_name = "NAMESPACE", default_value = "bringup-system")]
    system_namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// `flex sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Only says what would be removed
    #[arg(long)]
    dry_run: bool,
    /// The cluster's id in the tags, instead of the one that the controller uses
    #[arg(long, value_name = "ID")]
    flex_cluster: Option<String>,
    /// Where the controller keeps what it remembers
    #[arg(long, value_name = "NAMESPACE", default_value = "bringup-system")]
    system_namespace: String,
    #[command(flatten)]
    azure: AzureArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Does what was typed.
pub(crate) fn run(command: FlexCommand, program: Program) -> Result<Exit, Failure> {
    match command {
        FlexCommand::Status(typed) => status::run(typed, program),
        FlexCommand::Sweep(typed) => sweep::run(typed, program),
    }
}

/// Why machines cannot be seen.
fn unseen(unseen: Unseen) -> Failure {
    match unseen {
        Unseen::NotServed => Failure::error("this cluster makes no machines with bringup")
            .detail("the API server does not serve azureflexmachines.flex.aks.azure.com")
            .hint(
                "install the chart with `flex.enabled`; or choose another cluster with --context",
            ),
        other => other.failure(),
    }
}
