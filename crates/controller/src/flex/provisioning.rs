//! Making machines, put together: who runs them, and who answers those that ask for them.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use bringup_provider::listen::{Address, Door, LARGEST, TlsFiles};
use bringup_provider::plugin::{AgentPoolsService, InstancesService};
use bringup_provider::v1::provider_server::ProviderServer;
use kube::Client;
use tonic::service::Routes;
use tracing::info;

use super::pools::{Cluster, KubePools};
use super::{Flex, Home, JoinSettings, Joining, Service};
use crate::metrics::Metrics;

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
}

/// What is needed to make them.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) client: Client,
    pub(crate) arm: Arm,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) namespace: String,
    pub(crate) identity: String,
    pub(crate) metrics: Metrics,
}

impl Provisioning {
    fn home(&self, means: &Means) -> Home {
        Home {
            cluster: self.cluster.clone(),
            namespace: means.namespace.clone(),
            identity: means.identity.clone(),
        }
    }

    /// Makes machines for ever, as the only one who does.
    pub(crate) async fn run(&self, means: Means) {
        let home = self.home(&means);
        let Means { client, arm, clock, metrics, .. } = means;
        let joining = Joining::new(self.join.clone(), client.clone(), clock.clone());
        let flex = Flex::new(client, arm, clock, &home, joining).with_metrics(&metrics);
        flex.run().await;
    }

    /// Opens the door. Whoever comes in is answered as long as the future runs, and until `stop`.
    pub(crate) async fn open<S>(
        &self,
        means: Means,
        stop: S,
    ) -> Result<impl Future<Output = Result<()>> + use<S>>
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let authority = STANDARD
            .decode(&self.join.certificate_authority_data)
            .context("read certificateAuthorityData of --flex-join")?;
        let door = Door::bind(self.address.clone(), self.tls.clone()).await;
        let door = door.context("open the door for Karpenter")?;
        info!(address = %door.address(), "Karpenter's provider is answered");
        let home = self.home(&means);
        let Means { client, arm, clock, .. } = means;
        let cluster = Cluster { server: self.join.server.clone(), authority };
        let pools = Arc::new(KubePools::new(client.clone(), arm.clone(), cluster));
        let (service, watch) = Service::new(client, arm, clock, &home);
        let service = ProviderServer::new(service).max_decoding_message_size(LARGEST);
        let routes = Routes::new(service)
            .add_service(AgentPoolsService::server(pools.clone()))
            .add_service(InstancesService::server(pools));
        Ok(async move {
            tokio::select! {
                served = door.serve(routes, stop) => served.context("answer Karpenter's provider"),
                () = watch => Ok(()),
            }
        })
    }
}
