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
  bringup why default-x7k2p --context staging --output json
  bringup why machine/worker-abcde --namespace team-a
  bringup why machine/worker-abcde --machine-deadline 20m

NAME can be a unique prefix. A deleted NodeClaim or Machine is found by its
BootstrapReport. While the controller has no verdict yet, this command reads the
VM from Azure itself, with your credential. See docs/why.md.

Exit codes: 0 the node came up, 10 a failure of known cause, 11 a failure of
unknown cause or no verdict yet, 64 no object or several objects of that name.";

pub(super) const REPORTS_EXAMPLES: &str = "Examples:
  bringup reports
  bringup reports --nodepool default --since 2h
  bringup reports --image 202601.27.0 --cause BinaryMissing
  bringup reports --kind machine --cluster prod
  bringup reports --all-namespaces --output wide";

pub(super) const REPORT_EXAMPLES: &str = "Examples:
  bringup report default-x7k2p-3f9c01d2ab
  bringup report default-x7k2p --output yaml

NAME can be a unique prefix, such as the name of the NodeClaim.

Exit codes: 0 the node joined later, 10 a failure of known cause, 11 a failure
of unknown cause, 64 no report or several reports of that name.";

/// The cluster to read from.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// Path to the kubeconfig; default: KUBECONFIG, then `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: the current context
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Namespace of Machines and reports; default: all namespaces
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

/// `why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// Name of a NodeClaim, Node, VM or BootstrapReport; machine/NAME or
    /// azuremachine/NAME for Cluster API. A unique prefix is enough
    #[arg(value_name = "NODECLAIM|NODE|VM|machine/NAME")]
    pub(crate) name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: AnswerForm,
    /// Your own signatures, in YAML or JSON; see docs/why.md. They apply to
    /// evidence that this command reads from Azure
    #[arg(long, value_name = "FILE")]
    pub(crate) signatures: Option<PathBuf>,
    /// Time from the creation of its VM after which a Machine without a Node is
    /// diagnosed. Use the same value as the controller
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
    /// List only reports about this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<TypedKind>,
    /// List only reports about Machines of this Cluster API Cluster
    #[arg(long = "cluster", value_name = "CLUSTER")]
    pub(crate) of_cluster: Option<String>,
    /// List only reports about NodeClaims of this NodePool
    #[arg(long, value_name = "NODEPOOL")]
    pub(crate) nodepool: Option<String>,
    /// List only reports about this version of the node image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image: Option<String>,
    /// List only reports newer than this, such as 90s, 30m, 2h or 7d
    #[arg(long, value_name = "DURATION", value_parser = length_of_time)]
    pub(crate) since: Option<SignedDuration>,
    /// List only reports with this cause, such as `BinaryMissing`
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<Cause>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: ListForm,
    /// List reports of all namespaces, and always show the namespace
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Name of a BootstrapReport, or a unique prefix of it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
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
