//! The controller put together: observing while it leads, health and metrics always.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use bringup_azure::Arm;
use bringup_azure::clock::Clock;
use futures::future::Either;
use k8s_controller::LeaderElection;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::agenda::Agenda;
use crate::cluster::Cluster;
use crate::collect::Collect;
use crate::flex::{Means, Provisioning};
use crate::health::{Health, advice};
use crate::kinds::Kinds;
use crate::machines::Land;
use crate::metrics::Metrics;
use crate::metrics_access;
use crate::observer::Observer;
use crate::reach::Reach;
use crate::rights;
use crate::settings::Settings;
use crate::watch::Watches;
use crate::witness::Witness;
use crate::writer::Writer;

/// The name of the lease for which replicas compete.
pub(crate) const LEASE: &str = "bringup-controller";
/// How often our rights are checked.
const RIGHTS_EACH: Duration = Duration::from_mins(5);

/// The controller.
pub struct Controller {
    settings: Settings,
    client: Client,
    arm: Arm,
    clock: Arc<dyn Clock>,
    witness: Witness,
    health: Health,
    metrics: Metrics,
    provisioning: Option<Provisioning>,
}

impl Controller {
    /// A controller that reads Azure with `arm` and goes by `clock`.
    pub fn new(settings: Settings, client: Client, arm: Arm, clock: Arc<dyn Clock>) -> Self {
        let (health, metrics) = (Health::default(), Metrics::default());
        metrics.watch(arm.clone(), health.clone());
        let (witness, provisioning) = (Witness::default(), None);
        Self { settings, client, arm, clock, witness, health, metrics, provisioning }
    }

    /// The same, making machines too.
    #[must_use]
    pub fn with_provisioning(mut self, provisioning: Provisioning) -> Self {
        self.provisioning = Some(provisioning);
        self
    }

    /// The same with a witness of its effects.
    #[must_use]
    pub fn with_witness(mut self, witness: Witness) -> Self {
        self.witness = witness;
        self
    }

    /// What is wrong with it.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Asks whether we are allowed what we need; what is missing is in the log, on `/readyz` and
    /// in a metric.
    pub async fn check_rights(&self) {
        let needed = rights::needed(self.provisioning.is_some(), self.settings.machines);
        match rights::missing(&self.client, &self.settings.namespace, &needed).await {
            Ok(missing) => self.health.lacks(missing),
            Err(error) => warn!(error = %advice(&error), "cannot ask for our rights"),
        }
    }

    async fn watch_rights(&self) {
        loop {
            self.check_rights().await;
            tokio::time::sleep(RIGHTS_EACH).await;
        }
    }

    /// Observes for ever, as the only one who does. Dropped, everything it does is dropped.
    pub async fn observe(&self) {
        let cluster = Arc::new(Cluster::default());
        let land = Land::new(self.settings.machine_deadline);
        let kinds = Kinds::new(self.settings.classes.clone(), land);
        let agenda = Arc::new(Agenda::new(self.clock.clone()));
        let _leading = self.metrics.lead(cluster.clone());
        let watches = Watches {
            client: self.client.clone(),
            namespace: self.settings.namespace.clone(),
            kinds,
            machines: self.settings.machines,
            only_namespace: self.settings.only_namespace.clone(),
            cluster,
            agenda,
            health: self.health.clone(),
            clock: self.clock.clone(),
            ready: Arc::new(watch::Sender::default()),
        };
        let reach = Reach::limited(
            self.settings.scopes.clone(),
            watches.cluster.clone(),
            self.client.clone(),
            self.clock.clone(),
        );
        let collect = Collect::new(
            self.arm.clone(),
            self.client.clone(),
            self.clock.clone(),
            self.health.clone(),
            self.witness.clone(),
        )
        .with_signatures(self.settings.signatures.clone())
        .with_reach(reach);
        let writer = Writer::new(
            self.client.clone(),
            &self.settings.namespace,
            self.health.clone(),
            self.witness.clone(),
            self.metrics.clone(),
            self.clock.clone(),
            self.settings.dry_run,
        );
        let observer = Observer::new(
            self.settings.clone(),
            watches,
            collect,
            writer,
            self.clock.clone(),
            self.metrics.clone(),
        );
        Box::pin(observer.run()).await;
    }

    fn means(&self) -> Means {
        Means {
            client: self.client.clone(),
            arm: self.arm.clone(),
            clock: self.clock.clone(),
            namespace: self.settings.namespace.clone(),
            identity: self.settings.identity.clone(),
            metrics: self.metrics.clone(),
            health: self.health.clone(),
        }
    }

    /// Makes machines for ever, if that is asked for.
    async fn provision(&self) {
        if let Some(provisioning) = &self.provisioning {
            provisioning.run(self.means()).await;
        }
    }

    /// Observes whenever it holds the lease, until `stop`; then gives the lease back.
    pub async fn lead(&self, stop: impl Future<Output = ()>) {
        let election = LeaderElection::new(
            self.client.clone(),
            &self.settings.namespace,
            LEASE,
            &self.settings.identity,
        );
        let lead = async {
            loop {
                info!(identity = self.settings.identity, "waiting for the lease");
                election
                    .with_lease(Box::pin(async {
                        info!(identity = self.settings.identity, "leading");
                        tokio::join!(self.observe(), self.provision());
                    }))
                    .await;
                info!(identity = self.settings.identity, "not leading any more");
            }
        };
        tokio::select! {
            () = lead => {}
            () = self.watch_rights() => {}
            () = stop => {}
        }
        election.release().await;
    }

    /// Answers on `/healthz`, `/readyz` and `/metrics`.
    pub fn router(&self) -> Router {
        let (alive, health) = (self.health.clone(), self.health.clone());
        let metrics = self.metrics.clone();
        let token_file = self.settings.metrics_token_file.clone();
        Router::new()
            .route(
                "/healthz",
                get(move || async move {
                    match alive.stuck(Instant::now()) {
                        None => (StatusCode::OK, "ok\n".to_owned()),
                        Some(silent) => {
                            let seconds = silent.as_secs();
                            let why = format!("the observer has not moved for {seconds} s\n");
                            (StatusCode::SERVICE_UNAVAILABLE, why)
                        }
                    }
                }),
            )
            .route(
                "/readyz",
                get(move || async move {
                    let troubles = health.not_ready();
                    if troubles.is_empty() {
                        let waiting = health.waiting();
                        (StatusCode::OK, format!("ok\n{}", lines(&waiting)))
                    } else {
                        (StatusCode::SERVICE_UNAVAILABLE, lines(&troubles))
                    }
                }),
            )
            .route(
                "/metrics",
                get(move |headers: HeaderMap| async move {
                    if !metrics_access::allowed(token_file.as_deref(), &headers) {
                        return StatusCode::UNAUTHORIZED.into_response();
                    }
                    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                    ([("content-type", kind)], metrics.text()).into_response()
                }),
            )
    }

    /// Does everything until `stop`.
    pub async fn run(
        &self,
        listen: SocketAddr,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("listen on {listen} for health and metrics"))?;
        info!(address = %listener.local_addr().unwrap_or(listen), "listening");
        let (stopping, stopped) = watch::channel(false);
        let told = |mut stopped: watch::Receiver<bool>| async move {
            // Whoever could tell is gone: that is an end too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let provider = match &self.provisioning {
            Some(provisioning) => {
                Either::Left(Box::pin(provisioning.serve(self.means(), told(stopped.clone()))))
            }
            None => Either::Right(std::future::pending()),
        };
        // On a thread of the runtime, so that it answers whatever this task does.
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

fn lines(texts: &[String]) -> String {
    texts.iter().fold(String::new(), |all, text| all + text + "\n")
}
