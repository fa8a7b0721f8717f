//! `bringup controller`: observes the cluster and reports on each NodeClaim and Machine why its node does not
//! come up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bringup_azure::Scope;
use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_controller::Controller;
use bringup_diagnosis::Signatures;
use bringup_observe::Settings;
use bringup_observe::claims::{NodeClassKind, default_classes};
use bringup_provision::JoinSettings;
use bringup_provision::grpc::listen::{Address, ClientName, TlsFiles};
use bringup_provision::{Plugin, Provisioning};
use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};

use crate::azure::AzureArguments;
use crate::failure::{Exit, Failure};

/// Examples of use.
pub(crate) const EXAMPLES: &str = "Examples:
  bringup controller --azure-credential workload-identity
  bringup controller --dry-run --azure-credential azure-cli \\
    --kubeconfig ~/.kube/config --log-format text
  bringup controller --machines --azure-scope SUBSCRIPTION/GROUP
  bringup controller --flex --flex-cluster prod-1 \\
    --flex-join /etc/bringup/join.json

Each option can also be set with the environment variable shown beside it. The
controller serves /healthz, /readyz and /metrics on --listen. The Helm chart in
charts/bringup sets these options; see docs/install.md.";

/// `controller`.
#[derive(Debug, Args)]
pub(crate) struct ControllerArguments {
    /// Path to the kubeconfig; default: KUBECONFIG, `~/.kube/config`, then the
    /// service account of the pod
    #[arg(long, value_name = "FILE", env = "BRINGUP_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the lease and of reports about NodeClaims
    #[arg(long, value_name = "NAME", env = "BRINGUP_NAMESPACE", default_value = "bringup-system")]
    namespace: String,
    #[command(flatten)]
    azure: AzureArguments,
    /// NodeClass kind whose NodeClaims are diagnosed; can be repeated. Default:
    /// AKSNodeClass of Karpenter and AzureFlexNodeClass
    #[arg(
        long = "node-class",
        value_name = "GROUP/KIND",
        env = "BRINGUP_NODE_CLASS",
        value_delimiter = ','
    )]
    node_classes: Vec<NodeClassKind>,
    /// Diagnose Cluster API Machines too; their reports are stored in their namespaces
    #[arg(long, env = "BRINGUP_MACHINES")]
    machines: bool,
    /// Time from the creation of its VM after which a Machine without a Node is diagnosed; must be
    /// less than the nodeStartupTimeout of its MachineHealthCheck
    #[arg(
        long,
        value_name = "TIME",
        env = "BRINGUP_MACHINE_DEADLINE",
        default_value = "10m",
        value_parser = length_of_time
    )]
    machine_deadline: SignedDuration,
    /// Subscription or resource group whose VMs the controller may read; can be repeated. The resource
    /// groups of this cluster's own Nodes are always included. Workload clusters of Cluster API need
    /// this option
    #[arg(
        long = "azure-scope",
        value_name = "SUBSCRIPTION[/GROUP]",
        env = "BRINGUP_AZURE_SCOPE",
        value_delimiter = ','
    )]
    azure_scopes: Vec<Scope>,
    /// Address and port for health checks and metrics
    #[arg(long, value_name = "ADDRESS", env = "BRINGUP_LISTEN", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// File with a token that clients of /metrics must send as `Authorization: Bearer TOKEN`; the file
    /// is read for each request. Without it, /metrics needs no authentication
    #[arg(long, value_name = "FILE", env = "BRINGUP_METRICS_TOKEN_FILE")]
    metrics_token_file: Option<PathBuf>,
    /// Retention of a report after its NodeClaim or Machine is deleted
    #[arg(
        long,
        value_name = "TIME",
        env = "BRINGUP_REPORT_TTL",
        default_value = "7d",
        value_parser = length_of_time
    )]
    report_ttl: SignedDuration,
    /// Number of reports to keep for each pool after their NodeClaims or Machines are deleted
    #[arg(long, value_name = "COUNT", env = "BRINGUP_REPORTS_PER_PARENT", default_value_t = 20)]
    reports_per_parent: usize,
    /// Maximum rate of ARM read requests; ARM allows one identity 25 per second
    #[arg(long, value_name = "COUNT", env = "BRINGUP_READS_PER_SECOND", default_value_t = 12,
          value_parser = clap::value_parser!(u32).range(1..=25))]
    reads_per_second: u32,
    /// Your own signatures, in YAML or JSON, read once at startup; see docs/why.md
    #[arg(long, value_name = "FILE", env = "BRINGUP_SIGNATURES")]
    signatures: Option<PathBuf>,
    /// Diagnose and log, but write nothing to the cluster
    #[arg(long, env = "BRINGUP_DRY_RUN")]
    dry_run: bool,
    #[command(flatten)]
    flex: FlexArguments,
    /// Log format
    #[arg(long, value_name = "FORMAT", env = "BRINGUP_LOG_FORMAT", default_value = "json")]
    log_format: LogForm,
    /// Log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "BRINGUP_LOG_LEVEL", default_value = "info")]
    log_level: tracing::Level,
    /// Name of this replica in the lease; default: the host name
    #[arg(long, value_name = "NAME", env = "BRINGUP_IDENTITY")]
    identity: Option<String>,
}

/// Making machines.
#[derive(Debug, Args)]
struct FlexArguments {
    /// Create VMs too: reconcile every `AzureFlexMachine`, and serve the gRPC provider for Karpenter
    #[arg(
        long,
        env = "BRINGUP_FLEX",
        requires_all = ["flex_cluster", "flex_join"],
        conflicts_with = "dry_run"
    )]
    flex: bool,
    /// Cluster ID for the tags of Azure resources; unique for each cluster
    #[arg(long, value_name = "ID", env = "BRINGUP_FLEX_CLUSTER")]
    flex_cluster: Option<String>,
    /// JSON file with the settings that VMs need to join the cluster; see docs/flex.md
    #[arg(long, value_name = "FILE", env = "BRINGUP_FLEX_JOIN")]
    flex_join: Option<PathBuf>,
    /// Address of the gRPC provider: `unix:///PATH`, or `HOST:PORT`, which requires the certificate, key
    /// and client CA files
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "BRINGUP_FLEX_LISTEN",
        default_value = "unix:///run/bringup/provider.sock"
    )]
    flex_listen: Address,
    /// Server certificate of the gRPC provider, in PEM; read for each connection
    #[arg(long, value_name = "FILE", env = "BRINGUP_FLEX_CERT_FILE")]
    flex_cert_file: Option<PathBuf>,
    /// Private key of the server certificate, in PEM; read for each connection
    #[arg(long, value_name = "FILE", env = "BRINGUP_FLEX_KEY_FILE")]
    flex_key_file: Option<PathBuf>,
    /// Certificate authority that signs client certificates, in PEM
    #[arg(long, value_name = "FILE", env = "BRINGUP_FLEX_CLIENT_CA_FILE")]
    flex_client_ca_file: Option<PathBuf>,
    /// Client that may use the gRPC provider over TLS: an exact DNS name or URI in the subject
    /// alternative names of its certificate; can be repeated. Default: no client
    #[arg(long, value_name = "NAME", env = "BRINGUP_FLEX_CLIENT", value_delimiter = ',')]
    flex_client: Vec<ClientName>,
    /// Serve the aks-flex plugin API too
    #[arg(long, env = "BRINGUP_FLEX_PLUGIN")]
    flex_plugin: bool,
    /// Client that may use the plugin API over TLS, as in --flex-client; can be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "BRINGUP_FLEX_PLUGIN_CLIENT",
        value_delimiter = ',',
        requires = "flex_plugin"
    )]
    flex_plugin_client: Vec<ClientName>,
    /// Subscription or resource group in which the plugin may use VMs, subnets and images; can be
    /// repeated. Default: none, so that the plugin cannot create VMs
    #[arg(
        long,
        value_name = "SUBSCRIPTION[/GROUP]",
        env = "BRINGUP_FLEX_PLUGIN_SCOPE",
        value_delimiter = ',',
        requires = "flex_plugin"
    )]
    flex_plugin_scope: Vec<Scope>,
    /// Create VMs even if no admission policy limits which Secrets bringup may write in kube-system;
    /// without the policy, this permission is equivalent to cluster-admin
    #[arg(long, env = "BRINGUP_FLEX_WITHOUT_POLICY")]
    flex_without_policy: bool,
}

impl FlexArguments {
    /// The settings for creating VMs, if enabled.
    fn provisioning(self) -> anyhow::Result<Option<Provisioning>> {
        if !self.flex {
            return Ok(None);
        }
        let path = self.flex_join.context("--flex needs --flex-join")?;
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the file of --flex-join, {}", path.display()))?;
        let join: JoinSettings = serde_json::from_str(&text)
            .with_context(|| format!("cannot parse the file of --flex-join, {}", path.display()))?;
        let tls = match (self.flex_cert_file, self.flex_key_file, self.flex_client_ca_file) {
            (Some(certificate), Some(key), Some(authority)) => {
                Some(TlsFiles { certificate, key, authority })
            }
            (None, None, None) => None,
            _ => anyhow::bail!(
                "--flex-cert-file, --flex-key-file and --flex-client-ca-file must be set together"
            ),
        };
        let cluster = self.flex_cluster.context("--flex needs --flex-cluster")?;
        let plugin = self.flex_plugin.then(|| Plugin {
            clients: self.flex_plugin_client.into_iter().collect(),
            scopes: self.flex_plugin_scope.into_iter().collect(),
        });
        Ok(Some(Provisioning {
            cluster,
            join,
            address: self.flex_listen,
            tls,
            clients: self.flex_client.into_iter().collect(),
            plugin,
            without_policy: self.flex_without_policy,
        }))
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogForm {
    Json,
    Text,
}

/// Runs until the process is stopped.
pub(crate) fn run(arguments: ControllerArguments) -> Result<Exit, Failure> {
    log(arguments.log_format, arguments.log_level);
    let signatures = crate::signatures::read(arguments.signatures.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()
        .context("cannot start the asynchronous runtime")?;
    runtime.block_on(control(arguments, signatures))?;
    Ok(Exit::Fine)
}

async fn control(arguments: ControllerArguments, signatures: Signatures) -> anyhow::Result<()> {
    // Invalid options are reported before the first request to the cluster or to Azure.
    let provisioning = arguments.flex.provisioning()?;
    let client = client(arguments.kubeconfig.as_deref()).await?;
    let clock = Arc::new(WallClock);
    let limits = Limits { reads_per_second: arguments.reads_per_second, ..Limits::default() };
    let arm = arguments.azure.arm(limits, clock.clone())?;
    let identity = arguments.identity.unwrap_or_else(host_name);
    let classes =
        if arguments.node_classes.is_empty() { default_classes() } else { arguments.node_classes };
    let settings = Settings {
        classes,
        report_ttl: arguments.report_ttl,
        reports_per_parent: arguments.reports_per_parent,
        dry_run: arguments.dry_run,
        machines: arguments.machines,
        machine_deadline: arguments.machine_deadline,
        scopes: arguments.azure_scopes.into_iter().collect(),
        signatures,
        metrics_token_file: arguments.metrics_token_file,
        ..Settings::new(&arguments.namespace, &identity)
    };
    let mut controller = Controller::new(settings, client, arm, clock);
    if let Some(provisioning) = provisioning {
        controller = controller.with_provisioning(provisioning);
    }
    Box::pin(controller.run(arguments.listen, stopped())).await
}

async fn client(kubeconfig: Option<&std::path::Path>) -> anyhow::Result<Client> {
    let config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        None => Config::infer().await.context(
            "no cluster found: no kubeconfig exists, and the process does not run in a pod; set --kubeconfig",
        )?,
    };
    Client::try_from(config).context("cannot create the Kubernetes client")
}

/// Completes when the process receives a signal to stop.
async fn stopped() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn log(form: LogForm, level: tracing::Level) {
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match form {
        LogForm::Json => builder.json().flatten_event(true).init(),
        LogForm::Text => builder.init(),
    }
}

/// A name that no other replica has: the host name of the pod, or a name with the process ID.
fn host_name() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("bringup-{}", std::process::id()))
}

/// Parses `90s`, `15m`, `2h` or `7d`.
pub(crate) fn length_of_time(text: &str) -> Result<SignedDuration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration: expected a number with a unit, such as 90s, 15m, 2h or 7d"
        )
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    Ok(SignedDuration::from_secs(i64::from(count) * seconds))
}
