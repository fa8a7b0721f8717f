//! `bringup nodeconfig`: reads a node's configuration and makes the inputs of a VM from it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use bringup_contract::node_config::{
    Components, ContainerdSchema, Environment, Form, Host, NodeBootstrapping, NodeConfig,
    node_bootstrapping, scale_set,
};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

use crate::failure::{Exit, Failure};
use crate::output;

/// Examples of use.
pub(crate) const EXAMPLES: &str = "Examples:
  bringup nodeconfig validate config.json
  bringup nodeconfig env config.json --output json
  bringup nodeconfig custom-data config.json > custom-data.txt
  bringup nodeconfig custom-data config.json --format cloud-config
  bringup nodeconfig scale-set config.json --capacity 3

An invalid configuration ends the command with exit code 65 and an error that
names line, column and field. Unknown fields and values are noted on standard
error and tolerated. See docs/node-config.md.";

const VALIDATE_EXAMPLES: &str = "Examples:
  bringup nodeconfig validate config.json
  bringup nodeconfig validate - < config.json";

const ENV_EXAMPLES: &str = "Examples:
  bringup nodeconfig env config.json
  bringup nodeconfig env config.json --containerd-version 2.1.4
  bringup nodeconfig env config.json --output json";

const CUSTOM_DATA_EXAMPLES: &str = "Examples:
  bringup nodeconfig custom-data config.json > custom-data.txt
  bringup nodeconfig custom-data config.json --format cloud-config";

const IGNITION_EXAMPLES: &str = "Examples:
  bringup nodeconfig ignition config.json > custom-data.txt
  bringup nodeconfig ignition - < config.json";

const CSE_EXAMPLES: &str = "Examples:
  bringup nodeconfig cse config.json
  bringup nodeconfig cse - < config.json";

const SCALE_SET_EXAMPLES: &str = "Examples:
  bringup nodeconfig scale-set config.json > scale-set.json
  bringup nodeconfig scale-set config.json --capacity 3 --format cloud-config";

/// The largest file that is read; every configuration is far smaller.
const MOST: u64 = 64 * 1024 * 1024;

/// `nodeconfig`.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeConfigCommand {
    /// Validate a configuration; fail if a required field is missing
    #[command(after_help = VALIDATE_EXAMPLES)]
    Validate(FileArgument),
    /// Print the environment of the bootstrap scripts, including secrets
    #[command(after_help = ENV_EXAMPLES)]
    Env(EnvironmentArguments),
    /// Print CustomData, in base64 for `osProfile.customData`
    #[command(after_help = CUSTOM_DATA_EXAMPLES)]
    CustomData(CustomDataArguments),
    /// Print CustomData for Flatcar and Azure Container Linux
    #[command(after_help = IGNITION_EXAMPLES)]
    Ignition(FileArgument),
    /// Print the command of the VM extension (CSE)
    #[command(after_help = CSE_EXAMPLES)]
    Cse(FileArgument),
    /// Print the ARM JSON of a scale set with CustomData and extension
    #[command(after_help = SCALE_SET_EXAMPLES)]
    ScaleSet(ScaleSetArguments),
}

/// A configuration.
#[derive(Debug, Args)]
pub(crate) struct FileArgument {
    /// AKSNodeConfig in JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// `env`.
#[derive(Debug, Args)]
pub(crate) struct EnvironmentArguments {
    #[command(flatten)]
    config: FileArgument,
    /// Version of containerd on the node, or the output of `containerd --version`
    #[arg(long, value_name = "VERSION")]
    containerd_version: Option<String>,
    /// File with the component list of the image; needed for GPU drivers
    #[arg(long, value_name = "FILE")]
    components: Option<PathBuf>,
    /// Registry that replaces mcr.microsoft.com in a sovereign cloud
    #[arg(long, value_name = "REGISTRY")]
    mcr_repository_base: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: EnvironmentForm,
}

/// `custom-data`.
#[derive(Debug, Args)]
pub(crate) struct CustomDataArguments {
    #[command(flatten)]
    config: FileArgument,
    /// Format of CustomData; images before March 2026 need cloud-config
    #[arg(long, value_name = "FORMAT", default_value = "boothook")]
    format: CustomDataFormat,
}

/// `scale-set`.
#[derive(Debug, Args)]
pub(crate) struct ScaleSetArguments {
    #[command(flatten)]
    data: CustomDataArguments,
    /// Number of VMs
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    capacity: u32,
}

/// The forms of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvironmentForm {
    Text,
    Json,
}

/// The forms of CustomData.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CustomDataFormat {
    Boothook,
    CloudConfig,
}

impl From<CustomDataFormat> for Form {
    fn from(typed: CustomDataFormat) -> Self {
        match typed {
            CustomDataFormat::Boothook => Self::Boothook,
            CustomDataFormat::CloudConfig => Self::CloudConfig,
        }
    }
}

/// Runs the command.
pub(crate) fn run(command: &NodeConfigCommand) -> Result<Exit, Failure> {
    match command {
        NodeConfigCommand::Validate(typed) => validate(&typed.file),
        NodeConfigCommand::Env(typed) => environment(typed),
        NodeConfigCommand::CustomData(typed) => {
            let config = read(&typed.config.file)?;
            print(&made(&config, typed.format.into())?.custom_data)
        }
        NodeConfigCommand::Ignition(typed) => {
            print(&made(&read(&typed.file)?, Form::Ignition)?.custom_data)
        }
        NodeConfigCommand::Cse(typed) => print(made(&read(&typed.file)?, Form::Boothook)?.cse),
        NodeConfigCommand::ScaleSet(typed) => {
            let config = read(&typed.data.config.file)?;
            let made = made(&config, typed.data.format.into())?;
            print(&format!("{:#}", scale_set(&config.configuration, &made, typed.capacity)))
        }
    }
}

/// Prints a note to standard error. If printing fails, the answer is still complete.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "note: {text}");
}

fn print(answer: &str) -> Result<Exit, Failure> {
    output::answer(&format!("{answer}\n"))?;
    Ok(Exit::Fine)
}

fn validate(file: &Path) -> Result<Exit, Failure> {
    let config = parse(file)?;
    let mut text = String::new();
    for notice in &config.notices {
        let _ = writeln!(text, "note: {notice}");
    }
    let missing = config.configuration.missing_required();
    if missing.is_empty() {
        let _ = writeln!(text, "{}: valid", file.display());
        output::answer(&text)?;
        return Ok(Exit::Fine);
    }
    output::answer(&text)?;
    Err(Failure::input(format!("{}: required fields are missing", file.display()))
        .detail(missing.join(", "))
        .hint("see docs/node-config.md for these fields"))
}

fn environment(typed: &EnvironmentArguments) -> Result<Exit, Failure> {
    let config = read(&typed.config.file)?;
    let mut host =
        Host { mcr_repository_base: typed.mcr_repository_base.clone(), ..Host::default() };
    if let Some(version) = &typed.containerd_version {
        let spoken = ContainerdSchema::of_version_output(version);
        let bare = || ContainerdSchema::of_version_output(&format!("containerd - {version}"));
        host.containerd = spoken.or_else(bare).ok_or_else(|| {
            Failure::usage(format!("`{version}` is not a version of containerd"))
                .hint("use three numbers, such as 2.1.4")
        })?;
    }
    if let Some(path) = &typed.components {
        host.components = Components::parse(&bytes(path)?)
            .map_err(|error| format!("parse {}: {error}", path.display()));
    }
    let made = Environment::of(&config.configuration, &host)
        .map_err(|error| Failure::input(error.to_string()))?;
    match typed.output {
        EnvironmentForm::Text => {
            let lines = made.iter().map(|(name, value)| format!("{name}={value}"));
            print(&lines.collect::<Vec<_>>().join("\n"))
        }
        EnvironmentForm::Json => {
            let all = made.iter().map(|(name, value)| (name.to_owned(), value.into()));
            print(&format!("{:#}", Value::Object(all.collect::<Map<_, _>>())))
        }
    }
}

fn made(config: &NodeConfig, form: Form) -> Result<NodeBootstrapping, Failure> {
    let made = node_bootstrapping(config, form).map_err(|error| {
        Failure::input(error.to_string())
            .hint("shorten the configuration, for example by moving certificates out of it")
    })?;
    for name in &made.dropped_features {
        note(&format!(
            "enabled_features.{name}: left out: its name or value cannot be passed to the scripts"
        ));
    }
    Ok(made)
}

/// Reads a configuration, and prints notices about tolerated contents.
fn read(path: &Path) -> Result<NodeConfig, Failure> {
    let config = parse(path)?;
    for notice in &config.notices {
        note(&notice.to_string());
    }
    Ok(config)
}

fn parse(path: &Path) -> Result<NodeConfig, Failure> {
    NodeConfig::parse(&bytes(path)?)
        .map_err(|error| Failure::input(format!("config {}: {error}", path.display())))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let refused = |error: std::io::Error| {
        Failure::input(format!("cannot read `{}`", path.display())).detail(error.to_string())
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(MOST).read_to_end(&mut bytes).map_err(refused)?;
    } else {
        let file = File::open(path).map_err(refused)?;
        file.take(MOST).read_to_end(&mut bytes).map_err(refused)?;
    }
    Ok(bytes)
}
