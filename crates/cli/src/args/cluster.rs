//! What can be typed after the commands that ask a cluster.

use std::path::PathBuf;

use bringup_contract::Cause;
use bringup_observe::profile::Kind;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::AnswerForm;
use crate::azure::AzureArguments;
use crate::controller::length_of_time;

pub(super) const WHY_EXAMPLES: &str = "Examples:
  bringup why default-x7k2p
  bringup why aks-default-x7k2p
  bringup why default-x7
  bringup why default-x7k2p --context staging --output json
  bringup why machine/worker-abcde --namespace team-a
  bringup why azuremachine/worker-abcde
  bringup why machine/worker-abcde --machine-deadline 20m

The name may be shortened as long as it fits one thing only. A NodeClaim or
Machine that is gone is found by its report. Where the controller has no verdict
yet, Azure is asked as it would ask.

The exit code says how it ended: 0 the node came up, 10 a failure whose cause
is known, 11 a cause that is not known or not known yet, 64 no such name or
several.";

pub(super) const REPORTS_EXAMPLES: &str = "Examples:
  bringup reports
  bringup reports --nodepool default --since 2h
  bringup reports --image 202601.27.0 --cause BinaryMissing
  bringup reports --kind machine --cluster prod
  bringup reports --all-namespaces --output wide
  bringup reports --output json";

pub(super) const REPORT_EXAMPLES: &str = "Examples:
  bringup report default-x7k2p-3f9c01d2ab
  bringup report default-x7k2p-3f9c01d2ab --output yaml

The exit code says how it ended: 0 the node came up after all, 10 a failure
whose cause is known, 11 a cause that is not known, 64 no such report.";

/// Which cluster is asked.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// The kubeconfig, instead of those in KUBECONFIG or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Only Machines and reports of this namespace, instead of all
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

/// `why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The name of a NodeClaim, of a Node, of a VM or of a report, or its
    /// beginning; of a Machine of Cluster API, machine/NAME
    #[arg(value_name = "NODECLAIM|NODE|VM|machine/NAME")]
    pub(crate) name: String,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: AnswerForm,
    /// Lines that only you know and what they mean, in YAML or JSON; looked for
    /// where Azure is asked, as the controller does with the same file
    #[arg(long, value_name = "FILE")]
    pub(crate) signatures: Option<PathBuf>,
    /// How long after its VM is there a Machine without a verdict is judged;
    /// what the controller was given, if not 10m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = length_of_time)]
    pub(crate) machine_deadline: SignedDuration,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    #[command(flatten)]
    pub(crate) azure: AzureArguments,
}

/// `reports`.
#[derive(Debug, Args)]
pub(crate) struct ReportsArguments {
    /// Only those of this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<TypedKind>,
    /// Only those of Machines of this cluster of Cluster API
    #[arg(long = "cluster", value_name = "CLUSTER")]
    pub(crate) of_cluster: Option<String>,
    /// Only those of this NodePool
    #[arg(long, value_name = "NODEPOOL")]
    pub(crate) nodepool: Option<String>,
    /// Only those of this version of the node's image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image: Option<String>,
    /// Only those of the last seconds (90s), minutes (30m), hours (2h) or days
    /// (7d)
    #[arg(long, value_name = "DURATION", value_parser = length_of_time)]
    pub(crate) since: Option<SignedDuration>,
    /// Only those with this cause
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<Cause>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    pub(crate) output: ListForm,
    /// Those of all namespaces, as without it, and says which
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The name of a report, or its beginning
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: AnswerForm,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

/// What a report can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypedKind {
    #[value(name = "nodeclaim")]
    NodeClaim,
    Machine,
}

impl From<TypedKind> for Kind {
    fn from(typed: TypedKind) -> Self {
        match typed {
            TypedKind::NodeClaim => Self::NodeClaim,
            TypedKind::Machine => Self::Machine,
        }
    }
}

/// The forms of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListForm {
    Table,
    Wide,
    Json,
    Yaml,
}
