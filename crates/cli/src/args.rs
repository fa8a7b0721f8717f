//! What can be typed. What it means is in [`crate::request`].

mod cluster;

use std::path::PathBuf;

use bringup_contract::{ImageVersion, Os};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use cluster::{
    ClusterArguments, ListForm, ReportArguments, ReportsArguments, WhyArguments,
};
use cluster::{REPORT_EXAMPLES, REPORTS_EXAMPLES, WHY_EXAMPLES};

const EXIT_CODES: &str = "Exit codes:
  0   success: no failure was found
  10  a failure was found, and its cause is known
  11  a failure of unknown cause, or no verdict yet
  64  the command line is wrong
  65  the input cannot be used
  1   any other error";

const EXPLAIN_EXAMPLES: &str = "Examples:
  bringup explain 211
  bringup explain 211 212 ERR_IMDS_FETCH_FAILED
  bringup explain 231 --image-version 202601.27.0
  bringup explain 50 --os windows
  bringup explain BinaryMissing --output json";

const DIAGNOSE_EXAMPLES: &str = "Examples:
  bringup diagnose cluster-provision.log
  az vm get-instance-view -g GROUP -n VM -o json | bringup diagnose
  bringup diagnose extension.json provision.json --serial-log boot.log
  bringup diagnose extension.json --evidence-out evidence.json
  bringup diagnose evidence.json --output json

Exit codes: 0 no failure was found, 10 a failure of known cause, 11 a failure of
unknown cause, 64 wrong command line, 65 unusable input.";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  source <(bringup completions bash)
  bringup completions bash | sudo tee /etc/bash_completion.d/bringup
  bringup completions zsh > \"${fpath[1]}/_bringup\"
  bringup completions fish > ~/.config/fish/completions/bringup.fish";

const MAN_EXAMPLES: &str = "Examples:
  bringup man > bringup.1
  bringup man diagnose | man -l -";

/// Explain why an Azure Kubernetes node did not come up, with the log line that proves it
#[derive(Debug, Parser)]
#[command(name = "bringup", version, term_width = 80, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Explain exit codes, error constants or causes, and how to fix them
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),
    /// Diagnose a failed node from files: logs and Azure API responses
    #[command(after_help = DIAGNOSE_EXAMPLES)]
    Diagnose(DiagnoseArguments),
    /// Explain why a node of a cluster did not come up, even after it was deleted
    #[command(after_help = WHY_EXAMPLES, mut_arg("azure_credential", crate::azure::of_a_person))]
    Why(Box<WhyArguments>),
    /// Print the serial console log of a VM, with secrets redacted
    #[command(
        after_help = crate::boot_log::EXAMPLES,
        mut_arg("azure_credential", crate::azure::of_a_person)
    )]
    BootLog(Box<crate::boot_log::BootLogArguments>),
    /// List the reports in the cluster, one for each node that failed to come up
    #[command(after_help = REPORTS_EXAMPLES)]
    Reports(ReportsArguments),
    /// Show one report
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Run the controller, which diagnoses NodeClaims and Machines without a Node
    #[command(after_help = crate::controller::EXAMPLES)]
    Controller(Box<crate::controller::ControllerArguments>),
    /// Show the VMs that bringup creates, and find or delete their orphaned resources
    #[command(subcommand, after_help = crate::flex::EXAMPLES)]
    Flex(Box<crate::flex::FlexCommand>),
    /// Validate an AKSNodeConfig, and generate CustomData or ARM JSON from it
    #[command(name = "nodeconfig", subcommand, after_help = crate::nodeconfig::EXAMPLES)]
    NodeConfig(crate::nodeconfig::NodeConfigCommand),
    /// Print a MachineHealthCheck that replaces Machines whose failure a new VM can fix
    #[command(after_help = crate::machine_health_check::EXAMPLES)]
    MachineHealthCheck(crate::machine_health_check::MachineHealthCheckArguments),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to complete commands in
        shell: Shell,
    },
    /// Print the manual page of bringup or of one of its commands
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Command whose page is printed; without it, the page of bringup
        command: Option<String>,
    },
    /// Write the documentation pages about causes and codes
    #[command(
        hide = true,
        after_help = "Examples:\n  bringup docs docs\n  bringup docs target/pages"
    )]
    Docs {
        /// Directory to write the pages to
        directory: PathBuf,
    },
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Exit codes, error constants, ARM error codes or causes. With several, the
    /// JSON output is an array
    #[arg(
        value_name = "CODE|CONSTANT|CAUSE",
        required_unless_present = "list",
        conflicts_with = "list",
        allow_negative_numbers = true
    )]
    pub(crate) what: Vec<String>,
    /// List every exit code and every cause
    #[arg(long)]
    pub(crate) list: bool,
    /// Show only the codes of this operating system
    #[arg(long, value_name = "OS")]
    pub(crate) os: Option<TypedOs>,
    /// Version of the node image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_version: Option<ImageVersion>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ExplainForm,
}

/// `diagnose`.
#[derive(Debug, Args)]
pub(crate) struct DiagnoseArguments {
    /// Logs, Azure API responses or stored evidence, all of one node. `-`, or no
    /// file, reads standard input. At most 64 MiB in total
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Platform that the evidence comes from
    #[arg(long, value_name = "PLATFORM", default_value = "auto")]
    pub(crate) platform: TypedPlatform,
    /// Version of the node image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_version: Option<ImageVersion>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: AnswerForm,
    /// Store the evidence in this file, with secrets redacted, to diagnose it again
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence_out: Option<PathBuf>,
    /// Log of the serial console; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) serial_log: Vec<PathBuf>,
    /// Your own signatures: log lines and the causes that they prove, in YAML or
    /// JSON; see docs/why.md
    #[arg(long, value_name = "FILE")]
    pub(crate) signatures: Option<PathBuf>,
}

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypedOs {
    Linux,
    Windows,
}

impl From<TypedOs> for Os {
    fn from(typed: TypedOs) -> Self {
        match typed {
            TypedOs::Linux => Self::Linux,
            TypedOs::Windows => Self::Windows,
        }
    }
}

/// A platform, or the wish that it be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TypedPlatform {
    Auto,
    Linux,
    Windows,
    Arm,
}

/// The forms of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainForm {
    Text,
    Json,
}

/// The forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerForm {
    Text,
    Json,
    Yaml,
}
