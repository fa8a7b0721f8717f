//! The simulator as a program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use bringup_azure_sim::Simulator;
use bringup_azure_sim::azure::ResourceSummary;
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{ControlServer, HttpsServer, ProgramRunner, ServeError};
use bringup_azure_sim::scenario::{self, Scenario, ScenarioError};
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

const EXAMPLES: &str = "\
Examples:
  bringup-azure-sim
      A healthy Azure that runs with the wall clock.
  bringup-azure-sim --scenario oras-missing.yaml --clock x60
      One that does what the file says, an hour in a minute.
  bringup-azure-sim --clock manual --port 8443 --control-port 8001
      One at known addresses, where time stands still until
      curl -d '{\"advance\": \"15m\"}' http://127.0.0.1:8001/clock

Ctrl-C ends it and lists the resources that were left behind.
Exit codes: 0 ended, 64 wrong arguments, 65 a scenario that cannot be used, 1 anything else.";

/// A simulated Azure on loopback, with its own clock and injected faults.
#[derive(Debug, Parser)]
#[command(name = "bringup-azure-sim", version, after_help = EXAMPLES)]
struct Arguments {
    /// What Azure is made of, what its VMs do and what goes wrong; without it all is well
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// How time moves: manual (only when told to), real, or xN (N times faster)
    #[arg(long, default_value = "real", value_name = "manual|real|xN")]
    clock: Pace,
    /// Port of the HTTPS endpoint; 0 is any free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Port of the control endpoint; 0 is any free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    control_port: u16,
    /// Where to write the CA certificate; without it, to a directory that is removed at the end
    #[arg(long, value_name = "PATH")]
    ca_file: Option<PathBuf>,
    /// Where all randomness comes from, instead of the scenario's own seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// For people, or one JSON line at the start and one at the end
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
    /// Ends when standard input is closed, so that a test that is killed leaves nothing running
    #[arg(long)]
    exit_with_stdin: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Why the program exits early.
#[derive(Debug)]
enum Failure {
    Usage(clap::Error),
    Scenario(ScenarioError),
    Other(anyhow::Error),
}

impl Failure {
    /// The codes of sysexits.h, if there is a matching one.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Scenario(ScenarioError::Parse { .. }) => 65,
            Self::Scenario(ScenarioError::Read { .. }) | Self::Other(_) => 1,
        }
    }

    fn into_line(self) -> String {
        match self {
            Self::Usage(error) => {
                let text = error.to_string();
                let line = text.lines().next().unwrap_or_default();
                format!("{} (try --help)", line.trim_start_matches("error: "))
            }
            Self::Scenario(error) => format!("{:#}", anyhow::Error::from(error)),
            Self::Other(error) => format!("{error:#}"),
        }
    }
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| arguments.map_or(Ok(()), |arguments| run(&arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.exit_code();
            print_error(&failure.into_line());
            ExitCode::from(code)
        }
    }
}

/// The parsed arguments; `None` after the help text was printed.
fn arguments() -> Result<Option<Arguments>, Failure> {
    match Arguments::try_parse() {
        Ok(arguments) => Ok(Some(arguments)),
        Err(error) if error.use_stderr() => Err(Failure::Usage(error)),
        Err(help) => {
            print(&help.to_string());
            Ok(None)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut scenario = match &arguments.scenario {
        Some(path) => scenario::load(path).map_err(Failure::Scenario)?,
        None => Scenario::default(),
    };
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    let simulator = Simulator::new(scenario, arguments.clock, Timestamp::now());
    let runtime = tokio::runtime::Runtime::new()
        .context("cannot start the runtime")
        .map_err(Failure::Other)?;
    runtime.block_on(serve(arguments, &simulator)).map_err(Failure::Other)?;
    // Dropping the runtime ends connections and programs, so that nothing changes while the leaked
    // resources are printed.
    drop(runtime);
    let leaked: Vec<ResourceSummary> = simulator
        .with(|azure| azure.resources().into_iter().filter(|resource| resource.orphan).collect());
    print(&shutdown_message(arguments.output, &leaked));
    Ok(())
}

/// Starts both endpoints, prints their addresses, and serves until the program is asked to exit.
async fn serve(arguments: &Arguments, simulator: &Simulator) -> anyhow::Result<()> {
    // Keeps a temporary directory alive until the program exits.
    let (ca_file, _directory) = ca_file(arguments.ca_file.as_deref())?;
    let ended = Shutdown::new(arguments.exit_with_stdin)?;
    let https = HttpsServer::start(simulator.clone(), loopback(arguments.port), &ca_file)
        .await
        .map_err(|error| with_hint(error, "--port"))?;
    let control = ControlServer::start(simulator.clone(), loopback(arguments.control_port))
        .await
        .map_err(|error| with_hint(error, "--control-port"))?;
    let _programs = ProgramRunner::start(simulator.clone());
    print(&startup_message(
        arguments.output,
        simulator,
        &https.endpoint(),
        &control.endpoint(),
        &ca_file,
    ));
    ended.wait().await;
    Ok(())
}

/// The path of the CA certificate, and the temporary directory created for it, which is removed
/// when dropped.
fn ca_file(wanted: Option<&Path>) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    if let Some(path) = wanted {
        let path = std::path::absolute(path).context("cannot tell the current directory")?;
        return Ok((path, None));
    }
    let directory = tempfile::Builder::new()
        .prefix("bringup-azure-sim-")
        .tempdir()
        .context("cannot make a temporary directory for the CA certificate")?;
    Ok((directory.path().join("ca.pem"), Some(directory)))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn with_hint(error: ServeError, option: &str) -> anyhow::Error {
    match error {
        ServeError::Listen { ref source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{:#}; choose another with {option}", anyhow::Error::from(error))
        }
        other => other.into(),
    }
}

/// The events that make the program exit. They are set up before the addresses are printed, so that a signal
/// after the output is not lost.
struct Shutdown {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    stdin: Option<oneshot::Receiver<()>>,
}

impl Shutdown {
    fn new(with_stdin: bool) -> anyhow::Result<Self> {
        #[cfg(unix)]
        let signal = |kind| tokio::signal::unix::signal(kind).context("cannot listen for signals");
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(tokio::signal::unix::SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(tokio::signal::unix::SignalKind::interrupt())?,
            stdin: with_stdin.then(closed_stdin),
        })
    }

    #[cfg_attr(not(unix), allow(unused_mut, reason = "signals need it"))]
    async fn wait(mut self) {
        let stdin = async {
            match self.stdin {
                Some(closed) => drop(closed.await),
                None => std::future::pending().await,
            }
        };
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = stdin => {}
        }
        #[cfg(not(unix))]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = stdin => {}
        }
    }
}

/// Resolves when standard input is closed. The thread that reads it ends with the process.
fn closed_stdin() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut ignored = [0; 1024];
        while let Ok(1..) = input.read(&mut ignored) {}
        let _ = sender.send(());
    });
    receiver
}

fn startup_message(
    output: Output,
    simulator: &Simulator,
    endpoint: &str,
    control: &str,
    ca_file: &Path,
) -> String {
    let ca_file = ca_file.display();
    let clock = simulator.clock();
    match output {
        Output::Json => json!({
            "endpoint": endpoint,
            "tokenAuthority": endpoint,
            "caFile": ca_file.to_string(),
            "control": control,
            "clock": clock.pace().to_string(),
            "now": clock.now(),
        })
        .to_string(),
        Output::Text => format!(
            "\
Azure    {endpoint}
CA       {ca_file}
Tokens   {endpoint} (AZURE_AUTHORITY_HOST; any tenant, client and secret)
Control  {control}
Clock    {}, now {}

curl --cacert '{ca_file}' -H 'Authorization: Bearer me' \\
  '{endpoint}/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Compute/virtualMachines?api-version=2024-11-01'
curl -d '{{\"advance\": \"15m\"}}' {control}/clock

Ctrl-C ends it.",
            clock.pace(),
            clock.now(),
        ),
    }
}

fn shutdown_message(output: Output, leaked: &[ResourceSummary]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for resource in leaked {
        *counts.entry(resource.kind).or_default() += 1;
    }
    match output {
        Output::Json => json!({ "leaked": leaked, "counts": counts }).to_string(),
        Output::Text if leaked.is_empty() => "nothing leaked".to_owned(),
        Output::Text => {
            let counts: Vec<String> =
                counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let mut text = format!("leaked: {}", counts.join(", "));
            for resource in leaked {
                let _ = write!(text, "\n  {} ({})", resource.id, resource.state);
            }
            text
        }
    }
}

/// The only function that writes to standard output. A closed pipe is not an error.
fn print(text: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{}", text.trim_end());
    let _ = output.flush();
}

/// The only function that writes to standard error.
fn print_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "bringup-azure-sim: {line}");
}
