//! Combines the reconciler of machines and the gRPC services that create machines.

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

use crate::grpc::listen::{Address, AllowedClients, GrpcListener, LARGEST, Restricted, TlsFiles};
use crate::grpc::plugin::{AgentPoolsService, InstancesService};
use crate::grpc::v1::provider_server::ProviderServer;
use crate::joining::{JoinSettings, Joining};
use crate::policy;
use crate::pools::{Cluster, KubePools};
use crate::reconciler::{Flex, FlexMetrics, Replica};
use crate::service::Service;

/// The options of provisioning.
#[derive(Debug, Clone)]
pub struct Provisioning {
    /// The cluster's ID, in the tags of every resource in Azure.
    pub cluster: String,
    /// The settings with which machines join.
    pub join: JoinSettings,
    /// The address for Karpenter's provider and aks-flex.
    pub address: Address,
    /// The TLS certificates, for an address with a port.
    pub tls: Option<TlsFiles>,
    /// The clients that may use the provider service over TLS.
    pub clients: AllowedClients,
    /// The settings of the aks-flex plugin, if it is enabled.
    pub plugin: Option<Plugin>,
    /// Whether to create machines if no admission policy limits the Secrets that bringup may write.
    pub without_policy: bool,
}

/// The settings of the aks-flex plugin.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The clients that may use the plugin over TLS.
    pub clients: AllowedClients,
    /// The scopes that pools may use.
    pub scopes: Scopes,
}

/// The clients and settings that provisioning shares with the process.
#[derive(Clone)]
pub struct Dependencies {
    /// The client of the API server.
    pub client: Client,
    /// The client of ARM.
    pub arm: Arm,
    /// The source of the present time.
    pub clock: Arc<dyn Clock>,
    /// The namespace of the ledger.
    pub namespace: String,
    /// The name of this replica.
    pub identity: String,
    /// The metrics of machines.
    pub metrics: FlexMetrics,
    /// Receives problems.
    pub health: Health,
}

impl Provisioning {
    fn replica(&self, dependencies: &Dependencies) -> Replica {
        Replica {
            cluster: self.cluster.clone(),
            namespace: dependencies.namespace.clone(),
            identity: dependencies.identity.clone(),
        }
    }

    fn all_clients(&self) -> AllowedClients {
        let plugin = self.plugin.as_ref().map(|plugin| plugin.clients.clone()).unwrap_or_default();
        self.clients.union(&plugin)
    }

    /// Warns of empty lists, which allow nothing and are rarely intended.
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
            warn!("the plugin can create no pool: --flex-plugin-scope is empty");
        }
    }

    /// Waits until bringup may create machines.
    async fn permitted(&self, dependencies: &Dependencies) {
        if self.without_policy {
            warn!("creating machines without an admission policy: --flex-without-policy is set");
        } else {
            policy::wait(&dependencies.client, &dependencies.health).await;
        }
    }

    /// Reconciles machines until the returned future is dropped. Only one replica at a time may run this.
    pub async fn run(&self, dependencies: Dependencies) {
        self.permitted(&dependencies).await;
        let replica = self.replica(&dependencies);
        let Dependencies { client, arm, clock, metrics, .. } = dependencies;
        let joining = Joining::new(self.join.clone(), client.clone(), clock.clone());
        let flex = Flex::new(client, arm, clock, &replica, joining).with_metrics(metrics);
        flex.run().await;
    }

    /// Serves Karpenter's provider, and aks-flex if the plugin is enabled, until `stop` completes.
    pub async fn serve<S>(&self, dependencies: Dependencies, stop: S) -> Result<()>
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let authority = STANDARD
            .decode(&self.join.certificate_authority_data)
            .context("read certificateAuthorityData of --flex-join")?;
        let listener = GrpcListener::bind(self.address.clone(), self.tls.clone()).await;
        let listener = listener.context("listen for gRPC clients")?.allowing(self.all_clients());
        self.warn_of_empty_lists();
        self.permitted(&dependencies).await;
        info!(address = %listener.address(), "gRPC provider listening");
        let replica = self.replica(&dependencies);
        let Dependencies { client, arm, clock, .. } = dependencies;
        let cluster = Cluster { server: self.join.server.clone(), authority };
        let (service, watch) = Service::new(client.clone(), arm.clone(), clock, &replica);
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
            served = listener.serve(routes, stop) => served.context("serve gRPC clients"),
            () = watch => Ok(()),
        }
    }
}
