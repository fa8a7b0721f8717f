//! `bringup machine-health-check`: prints a MachineHealthCheck, with which Cluster API replaces machines
//! according to our verdict.

use bringup_objects::cluster_api::{CONTROL_PLANE_LABEL, DEPLOYMENT_LABEL, REPLACEMENT_USEFUL};
use clap::Args;
use jiff::SignedDuration;

use crate::controller::length_of_time;
use crate::failure::{Exit, Failure};
use crate::output;

/// Examples of use.
pub(crate) const EXAMPLES: &str = "Examples:
  bringup machine-health-check --cluster prod
  bringup machine-health-check --cluster prod -n fleet | kubectl apply -f -
  bringup machine-health-check --cluster prod --machine-deployment prod-md-0
  bringup machine-health-check --cluster prod --startup-timeout 0s
  bringup machine-health-check --cluster prod --control-plane

The check requires Cluster API 1.12 or newer and a controller with --machines.
The command only prints the check, and changes nothing in a cluster. See
docs/cluster-api.md.";

/// The time from the verdict to the deletion of the machine, in which the evidence is stored.
const SETTLED: u32 = 30;
/// The shortest timeout that Cluster API accepts.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);

/// `machine-health-check`.
#[derive(Debug, Args)]
pub(crate) struct MachineHealthCheckArguments {
    /// Name of the Cluster
    #[arg(long, value_name = "NAME", value_parser = name)]
    cluster: String,
    /// Namespace of the Cluster; default: the namespace that `kubectl apply` uses
    #[arg(short, long, value_name = "NAMESPACE", value_parser = name)]
    namespace: Option<String>,
    /// Check only Machines of this MachineDeployment; default: of all MachineDeployments
    #[arg(long, value_name = "NAME", value_parser = name)]
    machine_deployment: Option<String>,
    /// Check Machines of the control plane instead of MachineDeployments
    #[arg(long, conflicts_with = "machine_deployment")]
    control_plane: bool,
    /// Replace a Machine without a Node after this time, whatever the cause. Must
    /// be more than the --machine-deadline of the controller; 0s disables it
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = startup_timeout)]
    startup_timeout: u32,
    /// Maximum number or percentage of Machines without a Node; if more have
    /// none, no Machine is replaced
    #[arg(long, value_name = "COUNT", default_value = "40%", value_parser = count)]
    max_unhealthy: String,
}

pub(crate) fn run(arguments: &MachineHealthCheckArguments) -> Result<Exit, Failure> {
    output::answer(&manifest(arguments)).map_err(|error| Failure::error(format!("{error:#}")))?;
    Ok(Exit::Fine)
}

fn manifest(arguments: &MachineHealthCheckArguments) -> String {
    let MachineHealthCheckArguments { cluster, startup_timeout, max_unhealthy, .. } = arguments;
    let (name, whose, selector) = match &arguments.machine_deployment {
        Some(deployment) => (
            deployment.clone(),
            format!("of the MachineDeployment {deployment}"),
            format!("matchLabels:\n      {DEPLOYMENT_LABEL}: {}", scalar(deployment)),
        ),
        None if arguments.control_plane => (
            format!("{cluster}-control-plane"),
            format!("of the control plane of {cluster}"),
            exists(CONTROL_PLANE_LABEL),
        ),
        None => (
            cluster.clone(),
            format!("of all MachineDeployments of {cluster}"),
            exists(DEPLOYMENT_LABEL),
        ),
    };
    let namespace = arguments.namespace.as_ref();
    let namespace =
        namespace.map_or_else(String::new, |name| format!("\n  namespace: {}", scalar(name)));
    let blind = match startup_timeout {
        0 => "# Off: only the condition below counts.",
        _ => "# After this time without a Node, whatever the cause.",
    };
    let named = scalar(cluster);
    format!(
        "\
# Replaces machines {whose} that did not become
# Nodes, as soon as bringup has said that a new machine may help. Where it can
# not, the machine stays, and so does what can be seen on it.
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata:
  name: {name}-bringup{namespace}
spec:
  clusterName: {named}
  selector:
    {selector}
  checks:
    {blind}
    nodeStartupTimeoutSeconds: {startup_timeout}
    unhealthyMachineConditions:
    - type: {REPLACEMENT_USEFUL}
      status: \"True\"
      timeoutSeconds: {SETTLED}
  remediation:
    triggerIf:
      # With more machines without a Node than this, none is replaced.
      unhealthyLessThanOrEqualTo: {max_unhealthy}
"
    )
}

fn exists(label: &str) -> String {
    format!("matchExpressions:\n    - key: {label}\n      operator: Exists")
}

/// A name as a YAML scalar; names that YAML would read as numbers or truth values are quoted.
fn scalar(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if name.starts_with(|first: char| first.is_ascii_digit()) || WORDS.contains(&name) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

/// Validates a name of a Kubernetes object, which is also used as the value of a label.
fn name(text: &str) -> Result<String, String> {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_edge(byte) || byte == b'-' || byte == b'.';
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last()).is_some_and(|(a, b)| is_edge(*a) && is_edge(*b));
    if ends && bytes.len() <= 63 && bytes.iter().all(|byte| is_inner(*byte)) {
        Ok(text.to_owned())
    } else {
        Err("a name has at most 63 lowercase letters, digits, `-` and `.`, and begins and ends with a letter or digit".to_owned())
    }
}

fn startup_timeout(text: &str) -> Result<u32, String> {
    let time = length_of_time(text)?;
    if time < SHORTEST && !time.is_zero() {
        return Err("Cluster API requires at least 30s; use 0s to disable the timeout".to_owned());
    }
    let seconds = i32::try_from(time.as_secs()).ok().and_then(|it| u32::try_from(it).ok());
    seconds.ok_or_else(|| "the timeout is longer than Cluster API allows".to_owned())
}

fn count(text: &str) -> Result<String, String> {
    let number: Option<u32> = text.strip_suffix('%').unwrap_or(text).parse().ok();
    match number {
        Some(number) if !text.ends_with('%') || number <= 100 => Ok(text.to_owned()),
        _ => Err("expected a number or a percentage, such as 3 or 40%".to_owned()),
    }
}
