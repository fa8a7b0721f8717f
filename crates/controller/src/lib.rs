//! `bringup controller`: the observer and the provisioner in one process. Both run while this replica
//! holds the lease; health, metrics and the gRPC service always run.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))] // see contract/src/bounds.rs

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use bringup_observe::{Observer, ObserverMetrics, Settings};
use bringup_provision::{Dependencies, FlexMetrics, Provisioning};
use bringup_runtime::effect_hook::EffectHook;
use bringup_runtime::health::{Health, advice};
use bringup_runtime::metrics::Metrics;
use bringup_runtime::{http, rights};
use futures::future::Either;
use k8s_controller::LeaderElection;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// The pause between two checks of our rights.
const RIGHTS_EACH: Duration = Duration::from_mins(5);

/// The observer and the provisioner of one replica.
pub struct Controller {
    settings: Settings,
    client: Client,
    arm: Arm,
    clock: Arc<dyn Clock>,
    hook: EffectHook,
    health: Health,
    metrics: Metrics,
    observer_metrics: ObserverMetrics,
    provisioning: Option<(Provisioning, FlexMetrics)>,
}

impl Controller {
    /// A controller that reads Azure with `arm` and takes the time from `clock`.
    pub fn new(settings: Settings, client: Client, arm: Arm, clock: Arc<dyn Clock>) -> Self {
        let (health, metrics) = (Health::default(), Metrics::default());
        metrics.watch(arm.clone(), health.clone());
        Self {
            observer_metrics: ObserverMetrics::registered(&metrics),
            settings,
            client,
            arm,
            clock,
            hook: EffectHook::default(),
            health,
            metrics,
            provisioning: None,
        }
    }

    /// Enables provisioning.
    #[must_use]
    pub fn with_provisioning(mut self, provisioning: Provisioning) -> Self {
        let metrics = FlexMetrics::registered(&self.metrics);
        self.provisioning = Some((provisioning, metrics));
        self
    }

    /// Calls a hook after each effect.
    #[must_use]
    pub fn with_effect_hook(mut self, hook: EffectHook) -> Self {
        self.hook = hook;
        self
    }

    /// The health of this process.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The metrics of this process.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Checks whether bringup has all rights that it needs. Missing rights appear in the log, on `/readyz`
    /// and in a metric.
    pub async fn check_rights(&self) {
        let needed = rights::needed(self.provisioning.is_some(), self.settings.machines);
        match rights::missing(&self.client, &self.settings.namespace, &needed).await {
            Ok(missing) => self.health.lacks(missing),
            Err(error) => warn!(error = %advice(&error), "cannot check RBAC permissions"),
        }
    }

    async fn watch_rights(&self) {
        loop {
            self.check_rights().await;
            tokio::time::sleep(RIGHTS_EACH).await;
        }
    }

    /// Observes until the returned future is dropped, which cancels all work. Only one replica at a time may
    /// run this.
    pub async fn observe(&self) {
        let observer = Observer::new(
            self.settings.clone(),
            self.client.clone(),
            self.arm.clone(),
            self.clock.clone(),
            self.health.clone(),
            self.hook.clone(),
            self.observer_metrics.clone(),
        );
        Box::pin(observer.run()).await;
    }

    fn dependencies(&self, metrics: &FlexMetrics) -> Dependencies {
        Dependencies {
            client: self.client.clone(),
            arm: self.arm.clone(),
            clock: self.clock.clone(),
            namespace: self.settings.namespace.clone(),
            identity: self.settings.identity.clone(),
            metrics: metrics.clone(),
            health: self.health.clone(),
        }
    }

    /// Creates machines until the returned future is dropped, if provisioning is enabled.
    async fn provision(&self) {
        if let Some((provisioning, metrics)) = &self.provisioning {
            provisioning.run(self.dependencies(metrics)).await;
        }
    }

    /// Observes while this replica holds the lease, until `stop` completes; then releases the lease.
    pub async fn lead(&self, stop: impl Future<Output = ()>) {
        let election = LeaderElection::new(
            self.client.clone(),
            &self.settings.namespace,
            rights::LEASE,
            &self.settings.identity,
        );
        let lead = async {
            loop {
                info!(identity = self.settings.identity, "waiting for the leader lease");
                election
                    .with_lease(Box::pin(async {
                        info!(identity = self.settings.identity, "leader lease acquired: leading");
                        tokio::join!(self.observe(), self.provision());
                    }))
                    .await;
                info!(identity = self.settings.identity, "leader lease lost");
            }
        };
        tokio::select! {
            () = lead => {}
            () = self.watch_rights() => {}
            () = stop => {}
        }
        election.release().await;
    }

    /// The routes `/healthz`, `/readyz` and `/metrics`.
    pub fn router(&self) -> Router {
        http::router(&self.health, &self.metrics, self.settings.metrics_token_file.clone())
    }

    /// Runs all parts of the controller until `stop` completes.
    pub async fn run(
        &self,
        listen: SocketAddr,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("listen on {listen} for health and metrics"))?;
        info!(address = %listener.local_addr().unwrap_or(listen), "serving health and metrics: listening");
        let (stopping, stopped) = watch::channel(false);
        let told = |mut stopped: watch::Receiver<bool>| async move {
            // An error means that the sender was dropped, which is a stop too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let provider = match &self.provisioning {
            Some((provisioning, metrics)) => {
                let served = provisioning.serve(self.dependencies(metrics), told(stopped.clone()));
                Either::Left(Box::pin(served))
            }
            None => Either::Right(std::future::pending()),
        };
        // A separate task, so that the server answers even while this task is busy.
        let mut serve = JoinSet::new();
        serve.spawn(axum::serve(listener, self.router()).into_future());
        let lead = async {
            self.lead(told(stopped.clone())).await;
        };
        tokio::spawn(async move {
            stop.await;
            stopping.send_replace(true);
        });
        tokio::select! {
            served = serve.join_next() => match served {
                Some(Ok(served)) => served.context("serve health and metrics"),
                Some(Err(error)) => Err(error).context("serve health and metrics"),
                None => Ok(()),
            },
            served = provider => served,
            () = lead => Ok(()),
        }
    }
}
