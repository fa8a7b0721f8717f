//! Making machines, put together: the reconciler that runs them, and the servers for the clients
//! that ask for them.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::clock::Clock;
use bringup_azure::{Arm, Scopes};
use bringup_runtime::health::Health;
use kube::Client;
use tonic::service::Routes;
use tracing::{info, warn};

use crate::grpc::listen::{Address, AllowedClients, Door, LARGEST, Restricted, TlsFiles};
use crate::grpc::plugin::{AgentPoolsService, InstancesService};
use crate::grpc::v1::provider_server::ProviderServer;
use crate::joining::{JoinSettings, Joining};
use crate::policy;
use crate::pools::{Cluster, KubePools};
use crate::reconciler::{Flex, FlexMetrics, Home};
use crate::service::Service;

/// How machines are made.
#[derive(Debug, Clone)]
pub struct Provisioning {
    /// The cluster's id, in the tags of everything in Azure.
    pub cluster: String,
    /// What machines are told so that they join.
    pub join: JoinSettings,
    /// Where Karpenter's provider asks, and aks-flex.
    pub address: Address,
    /// The certificates of a port.
    pub tls: Option<TlsFiles>,
    /// The clients that may use the provider service over a port.
    pub clients: AllowedClients,
    /// The plugin of aks-flex, if it is served.
    pub plugin: Option<Plugin>,
    /// Whether to make machines where no admission policy limits which Secrets we may write.
    pub without_policy: bool,
}

/// How the plugin of aks-flex is served.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The clients that may use it over a port.
    pub clients: AllowedClients,
    /// Where its pools may be.
    pub scopes: Scopes,
}

/// What is needed to make them.
#[derive(Clone)]
pub struct Means {
    /// The API server.
    pub client: Client,
    /// Azure.
    pub arm: Arm,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The namespace of the ledger.
    pub namespace: String,
    /// The name of this replica.
    pub identity: String,
    /// Where machines are counted.
    pub metrics: FlexMetrics,
    /// Where failures are reported.
    pub health: Health,
}

impl Provisioning {
    fn home(&self, means: &Means) -> Home {
        Home {
            cluster: self.cluster.clone(),
            namespace: means.namespace.clone(),
            identity: means.identity.clone(),
        }
    }

    fn all_clients(&self) -> AllowedClients {
        let plugin = self.plugin.as_ref().map(|plugin| plugin.clients.clone()).unwrap_or_default();
        self.clients.union(&plugin)
    }

    /// An empty list is safe and almost never meant.
    fn warn_of_empty_lists(&self) {
        if matches!(self.address, Address::Tcp { .. }) {
            if self.clients.is_empty() {
                warn!("no client may use the provider service: --flex-client is empty");
            }
            if self.plugin.as_ref().is_some_and(|plugin| plugin.clients.is_empty()) {
                warn!("no client may use the plugin service: --flex-plugin-client is empty");
            }
        }
        if self.plugin.as_ref().is_some_and(|plugin| plugin.scopes.is_empty()) {
            warn!("the plugin can make no pool: --flex-plugin-scope is empty");
        }
    }

    /// Returns when machines may be made.
    async fn permitted(&self, means: &Means) {
        if self.without_policy {
            warn!("making machines without an admission policy: --flex-without-policy is set");
        } else {
            policy::wait(&means.client, &means.health).await;
        }
    }

    /// Makes machines for ever, as the only replica that does.
    pub async fn run(&self, means: Means) {
        self.permitted(&means).await;
        let home = self.home(&means);
        let Means { client, arm, clock, metrics, .. } = means;
        let joining = Joining::new(self.join.clone(), client.clone(), clock.clone());
        let flex = Flex::new(client, arm, clock, &home, joining).with_metrics(metrics);
        flex.run().await;
    }

    /// Serves Karpenter's provider, and aks-flex if that is asked for, until `stop`.
    pub async fn serve<S>(&self, means: Means, stop: S) -> Result<()>
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let authority = STANDARD
            .decode(&self.join.certificate_authority_data)
            .context("read certificateAuthorityData of --flex-join")?;
        let door = Door::bind(self.address.clone(), self.tls.clone()).await;
        let door = door.context("open the door for Karpenter")?.allowing(self.all_clients());
        self.warn_of_empty_lists();
        self.permitted(&means).await;
        info!(address = %door.address(), "gRPC provider listening");
        let home = self.home(&means);
        let Means { client, arm, clock, .. } = means;
        let cluster = Cluster { server: self.join.server.clone(), authority };
        let (service, watch) = Service::new(client.clone(), arm.clone(), clock, &home);
        let service = ProviderServer::new(service).max_decoding_message_size(LARGEST);
        let mut routes = Routes::new(Restricted::new(service, self.clients.clone()));
        if let Some(Plugin { clients, scopes }) = &self.plugin {
            let pools = Arc::new(KubePools::new(client, arm, cluster, scopes.clone()));
            let agent_pools = AgentPoolsService::server(pools.clone());
            let instances = InstancesService::server(pools);
            routes = routes
                .add_service(Restricted::new(agent_pools, clients.clone()))
                .add_service(Restricted::new(instances, clients.clone()));
        }
        tokio::select! {
            served = door.serve(routes, stop) => served.context("answer Karpenter's provider"),
            () = watch => Ok(()),
        }
    }
}
