//! Everything started together, and stopped together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{ControlServer, HttpsServer, ProgramRunner};
use bringup_azure_sim::scenario::Scenario;
use bringup_azure_sim::simulator::Simulator;
use bringup_testbed::{ControlPlane, CrdSet};
use jiff::Timestamp;
use tempfile::TempDir;

use crate::arm::Arm;
use crate::nodes::NodeFollower;

/// A control plane and an Azure that know of each other: a VM that joins is a Node.
///
/// # Guarantees
/// Dropping it ends all processes and removes all files.
#[derive(Debug)]
pub struct World {
    /// The real control plane.
    pub control_plane: ControlPlane,
    /// The simulated Azure.
    pub azure: Simulator,
    https: HttpsServer,
    control: ControlServer,
    directory: TempDir,
    _programs: ProgramRunner,
    _nodes: NodeFollower,
}

impl World {
    /// Starts a world whose Azure follows `scenario`, on free loopback ports.
    ///
    /// The clock is the wall's plus what is jumped, because the API server has no other.
    pub async fn start(scenario: Scenario, definitions: &[CrdSet]) -> Result<Self> {
        Self::start_at(scenario, definitions, Timestamp::now()).await
    }

    /// The same with a clock that shows `start` now: one that is behind can be jumped to the
    /// present.
    pub async fn start_at(
        scenario: Scenario,
        definitions: &[CrdSet],
        start: Timestamp,
    ) -> Result<Self> {
        let control_plane = ControlPlane::builder()
            .crds(definitions.iter().copied())
            .start()
            .await
            .context("start the control plane")?;
        let azure = Simulator::new(scenario, Pace::Real, start);
        let directory = tempfile::tempdir().context("make a directory for the CA certificate")?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let https = HttpsServer::start(azure.clone(), any, &directory.path().join("azure-ca.pem"))
            .await
            .context("start the simulator's HTTPS endpoint")?;
        let control = ControlServer::start(azure.clone(), any)
            .await
            .context("start the simulator's control endpoint")?;
        Ok(Self {
            _programs: ProgramRunner::start(azure.clone()),
            _nodes: NodeFollower::start(azure.clone(), control_plane.client(), ""),
            control_plane,
            azure,
            https,
            control,
            directory,
        })
    }

    /// Where ARM and the token endpoints are.
    pub fn azure_endpoint(&self) -> String {
        self.https.endpoint()
    }

    /// The certificate that signs the endpoint's.
    pub fn azure_ca_file(&self) -> PathBuf {
        self.directory.path().join("azure-ca.pem")
    }

    /// A directory that is removed in the end.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the clock is advanced and faults are injected.
    pub fn control_endpoint(&self) -> String {
        self.control.endpoint()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane.kubeconfig_path()
    }

    /// Calls ARM in process.
    pub fn arm(&self) -> Arm {
        Arm::new(self.azure.clone())
    }

    /// The present moment by the one clock that everything here goes by.
    pub fn now(&self) -> Timestamp {
        self.azure.clock().now()
    }
}
