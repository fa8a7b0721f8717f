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
  0   nothing failed
  10  a failure, and its cause is known
  11  a failure or an open question, and the cause is not known
  64  the command line is wrong
  65  the input cannot be used
  1   any other error";

const EXPLAIN_EXAMPLES: &str = "Examples:
  bringup explain 211
  bringup explain ERR_ORAS_PULL_NETWORK_TIMEOUT
  bringup explain 231 --image-version 202601.27.0
  bringup explain 50 --os windows
  bringup explain BinaryMissing
  bringup explain --list --os linux";

const DIAGNOSE_EXAMPLES: &str = "Examples:
  bringup diagnose cluster-provision.log
  az vm get-instance-view -g GROUP -n VM -o json | bringup diagnose
  bringup diagnose extension.json provision.json --serial-log boot.log
  bringup diagnose extension.json --evidence-out evidence.json
  bringup diagnose evidence.json --output json

The exit code says how it ended: 0 nothing failed, 10 a failure whose cause is
known, 11 a cause that is not known, 64 wrong usage, 65 unusable input.";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  bringup completions bash > /etc/bash_completion.d/bringup
  bringup completions zsh > \"${fpath[1]}/_bringup\"";

const MAN_EXAMPLES: &str = "Examples:
  bringup man > bringup.1
  bringup man diagnose | man -l -";

/// Says why an Azure Kubernetes node did not come up, with the line that proves it
#[derive(Debug, Parser)]
#[command(name = "bringup", version, term_width = 80, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Says what an exit code, a constant or a cause means, and what to do
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),
    /// Says from logs and answers of Azure why a node did not come up
    #[command(after_help = DIAGNOSE_EXAMPLES)]
    Diagnose(DiagnoseArguments),
    /// Says why a node of the cluster did not come up, also after it is gone
    #[command(after_help = WHY_EXAMPLES, mut_arg("azure_credential", crate::azure::of_a_person))]
    Why(Box<WhyArguments>),
    /// Prints what a VM wrote to its serial console, without secrets
    #[command(
        after_help = crate::boot_log::EXAMPLES,
        mut_arg("azure_credential", crate::azure::of_a_person)
    )]
    BootLog(Box<crate::boot_log::BootLogArguments>),
    /// Lists the failures that the cluster keeps
    #[command(after_help = REPORTS_EXAMPLES)]
    Reports(ReportsArguments),
    /// Shows one failure that the cluster keeps
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Observes a cluster, and says on each NodeClaim why its node does not come up
    #[command(after_help = crate::controller::EXAMPLES)]
    Controller(Box<crate::controller::ControllerArguments>),
    /// Shows machines that bringup makes, and what is left of them in Azure
    #[command(subcommand, after_help = crate::flex::EXAMPLES)]
    Flex(Box<crate::flex::FlexCommand>),
    /// Checks a node's configuration, and makes of it what a VM needs
    #[command(name = "nodeconfig", subcommand, after_help = crate::nodeconfig::EXAMPLES)]
    NodeConfig(crate::nodeconfig::NodeConfigCommand),
    /// Prints the MachineHealthCheck that replaces machines by bringup's verdict
    #[command(after_help = crate::machine_health_check::EXAMPLES)]
    MachineHealthCheck(crate::machine_health_check::MachineHealthCheckArguments),
    /// Prints a script that completes commands in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Prints the manual page of bringup or of one of its commands
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The command
        command: Option<String>,
    },
    /// Writes the pages about causes and codes
    #[command(hide = true, after_help = "Examples:\n  bringup docs docs")]
    Docs {
        /// Where the pages go
        directory: PathBuf,
        /// Where the rules' sources are
        #[arg(long, default_value = "crates/diagnosis/src/rules")]
        rules: PathBuf,
    },
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// An exit code, a constant or a cause
    #[arg(
        value_name = "CODE|CONSTANT|CAUSE",
        required_unless_present = "list",
        conflicts_with = "list",
        allow_negative_numbers = true
    )]
    pub(crate) what: Option<String>,
    /// Lists every code and every cause
    #[arg(long)]
    pub(crate) list: bool,
    /// Only the codes of this system
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) os: Option<TypedOs>,
    /// The version of the node's image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_version: Option<ImageVersion>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ExplainForm,
}

/// `diagnose`.
#[derive(Debug, Args)]
pub(crate) struct DiagnoseArguments {
    /// Logs, answers of Azure, or stored evidence, all of one node; `-` or
    /// nothing is the standard input. 64 MiB at most, together
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What the evidence is about
    #[arg(long, value_name = "PLATFORM", default_value = "auto")]
    pub(crate) platform: TypedPlatform,
    /// The version of the node's image, such as 202601.27.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) image_version: Option<ImageVersion>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: AnswerForm,
    /// Stores the evidence, without secrets, to be diagnosed again
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence_out: Option<PathBuf>,
    /// The log of the serial console
    #[arg(long, value_name = "FILE")]
    pub(crate) serial_log: Vec<PathBuf>,
    /// Lines that only you know and what they mean, in YAML or JSON
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
