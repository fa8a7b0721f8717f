//! Finds the cluster and connects to it.
//!
//! Commands that need no cluster use nothing of this module, so they start quickly.

mod machines;
mod read;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

pub(crate) use read::{ClaimRow, Listing, Pools};
pub(crate) use trouble::Unseen;

use crate::failure::Failure;
use crate::program::Program;

/// The longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The options that select a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// The namespace of Machines and reports; `None` means all namespaces.
    pub(crate) namespace: Option<String>,
}

/// A cluster with a client.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// The address of the API server.
    address: String,
    /// The namespace of Machines and reports; `None` means all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) program: Program,
}

/// Runs the requests to a cluster to their end.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the asynchronous runtime")?.block_on(work)
}

impl Cluster {
    /// Finds the cluster. This function sends no request: a wrong address shows at the first request.
    pub(crate) async fn find(choice: &Choice, program: Program) -> Result<Self, Failure> {
        let mut config = config(choice).await?;
        config.connect_timeout = Some(CONNECT_LIMIT);
        config.read_timeout = Some(ANSWER_LIMIT);
        // No retries: a user at a terminal gets the error at once.
        config.default_retry = false;
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client =
            Client::try_from(config).map_err(|error| trouble::connection(&error, &address))?;
        Ok(Self { client, address, namespace: choice.namespace.clone(), program })
    }

    /// The Kubernetes client.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}

async fn config(choice: &Choice) -> Result<Config, Failure> {
    let read = match &choice.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let options =
        KubeConfigOptions { context: choice.context.clone(), ..KubeConfigOptions::default() };
    let chosen = match read {
        Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
        Err(error) => Err(error),
    };
    chosen.or_else(|error| {
        // In a pod, a kubeconfig neither exists nor is needed.
        let said = choice.kubeconfig.is_some() || choice.context.is_some();
        let inside = if said { None } else { Config::incluster_env().ok() };
        inside.ok_or_else(|| trouble::kubeconfig(&error))
    })
}
