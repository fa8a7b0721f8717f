//! Endpoints with which other processes reach the simulated Azure, and the runner for programs of VMs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_azure_sim::endpoints::{ControlServer, HttpsServer, ProgramRunner};
use bringup_azure_sim::simulator::Simulator;

/// The file name of the certificate that signs the endpoint's.
pub(super) const CA_FILE: &str = "azure-ca.pem";

/// Serves until this value is dropped.
pub(super) struct Endpoints {
    https: HttpsServer,
    control: ControlServer,
    _programs: ProgramRunner,
}

impl Endpoints {
    /// Serves on free ports of loopback.
    pub(super) async fn start(azure: &Simulator, directory: &Path) -> Result<Self> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let https = HttpsServer::start(azure.clone(), any, &directory.join(CA_FILE)).await;
        let control = ControlServer::start(azure.clone(), any).await;
        Ok(Self {
            https: https.context("start the simulator's HTTPS endpoint")?,
            control: control.context("start the simulator's control endpoint")?,
            _programs: ProgramRunner::start(azure.clone()),
        })
    }

    pub(super) fn azure(&self) -> String {
        self.https.endpoint()
    }

    pub(super) fn control(&self) -> String {
        self.control.endpoint()
    }
}
