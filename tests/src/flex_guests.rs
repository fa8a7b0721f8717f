//! Flex machines with simulated insides: VMs that boot by running the real `bringup-node join`.

mod downloads;
mod guests;
mod nodes;
mod registration;

use std::ops::Deref;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bringup_testbed::requirement::{missing_program, skip};
use bringup_testbed::{ControlPlane, CrdSet};
use serde_json::Value;

pub use guests::{Guests, NO_MODULES};
pub use registration::Registration;

use self::nodes::Kubelets;
use crate::TestBed;
use crate::guest::can_boot;
use crate::process::built;

/// Whether such VMs can run here. Otherwise prints why the test of `requirement` is skipped.
pub fn can_run(requirement: &str) -> bool {
    if let Some(program) = missing_program(&["go", "curl", "setpriv"]) {
        skip(requirement, &format!("{program} is not installed"));
        return false;
    }
    can_boot(requirement)
}

/// A test bed whose VMs join with the real agent. Kubernetes' controllers and scheduler run.
pub struct GuestsBed {
    bed: TestBed,
    /// The simulated insides of the VMs.
    pub guests: Arc<Guests>,
    authority: Vec<u8>,
    _kubelets: Kubelets,
}

impl Deref for GuestsBed {
    type Target = TestBed;

    fn deref(&self) -> &TestBed {
        &self.bed
    }
}

impl GuestsBed {
    /// Starts the test bed. `scenario` returns the scenario of Azure, given the ways in which VMs can boot.
    pub async fn start(scenario: impl FnOnce(&Guests) -> String) -> Result<Self> {
        let control_plane = ControlPlane::builder()
            .with_controller_manager()
            .with_scheduler()
            // Karpenter's own definitions of the resources in both sets; the class of the Azure set.
            .crds([CrdSet::KarpenterAzure, CrdSet::Karpenter])
            .start()
            .await
            .context("start the control plane")?;
        let version = control_plane.client().apiserver_version().await;
        let version = version.context("read the version of the cluster")?.git_version;
        let folder = control_plane.directory().join("guests");
        let agent = built("BRINGUP_NODE", "bringup-node")?;
        let guests = Guests::prepare(&folder, &agent, &version).await;
        let guests = Arc::new(guests.context("prepare the insides of machines")?);
        let authority = std::fs::read(control_plane.directory().join("authority.crt"))
            .context("read the authority of the API server")?;
        let bed = TestBed::builder()
            .on(control_plane)
            .flex()
            .scenario(&scenario(&guests))
            .without_nodes()
            .endpoints()
            .start()
            .await?;
        let kubelets = Kubelets::start(bed.azure.clone(), bed.client.clone(), guests.clone());
        Ok(Self { bed, guests, authority, _kubelets: kubelets })
    }

    /// The content of the `--flex-join` file: how machines join this cluster.
    pub fn join_settings(&self) -> Value {
        self.guests.join_settings(self.control_plane().url(), &self.authority)
    }
}
