//! The cluster that is asked: found, and connected to.
//!
//! Nothing of this is made for commands that need no cluster, which start in no time.

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

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Which cluster is meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// The namespace whose Machines and reports count; all, where none is named.
    pub(crate) namespace: Option<String>,
}

/// A cluster that can be asked.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// Where its API server is.
    address: String,
    /// The namespace whose Machines and reports count; all, where none is named.
    pub(crate) namespace: Option<String>,
    pub(crate) program: Program,
}

/// Does what has to wait for a cluster.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the asynchronous runtime")?.block_on(work)
}

impl Cluster {
    /// Finds the cluster. Whether it answers shows when it is asked.
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

    /// The Kubernetes client, for other callers.
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
        // In a pod there is no kubeconfig, and none is needed.
        let said = choice.kubeconfig.is_some() || choice.context.is_some();
        let inside = if said { None } else { Config::incluster_env().ok() };
        inside.ok_or_else(|| trouble::kubeconfig(&error))
    })
}
