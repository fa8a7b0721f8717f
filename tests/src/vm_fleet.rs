//! Many VMs at once. The client that creates them uses many identities: its rate limits are not under test.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bringup_azure::{Arm, Cloud};
use bringup_azure_sim::azure::Delivery;
use bringup_azure_sim::endpoints::{AnyToken, InProcess};
use bringup_azure_sim::journal::Recorded;
use bringup_azure_sim::simulator::Simulator;
use bringup_controller::Controller;
use bringup_observe::Settings;
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::order::Order;
use crate::provider::Provider;
use crate::stage::SimulatedClock;

/// What the observer may read: at once, and in a second.
const AT_ONCE: f64 = 125.0;
const A_SECOND: f64 = 12.0;

/// Orders VMs, each as a principal of its own.
#[derive(Debug, Clone)]
pub struct VmFleet(Simulator);

impl VmFleet {
    /// A fleet in this Azure.
    pub fn new(azure: Simulator) -> Self {
        Self(azure)
    }

    /// Puts a NIC and a VM for a claim.
    pub fn put_vm(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        let name = format!("aks-{claim}");
        let vm = Provider::vm_path(claim);
        let nic =
            vm.replace("Microsoft.Compute/virtualMachines", "Microsoft.Network/networkInterfaces");
        self.send("PUT", claim, &nic, Some(&Order::nic(pool)))?;
        self.send("PUT", claim, &vm, Some(&order.vm(&name, pool, &nic))).map(drop)
    }

    /// Puts the Custom Script extension.
    pub fn start_script(&self, claim: &str, order: &Order) -> Result<()> {
        let extension = format!("{}/extensions/cse-agent-karpenter", Provider::vm_path(claim));
        self.send("PUT", claim, &extension, Some(&order.extension())).map(drop)
    }

    /// Begins to delete a VM, as Karpenter does it.
    pub fn delete_vm(&self, claim: &str) -> Result<()> {
        let vm = format!("{}?forceDeletion=true", Provider::vm_path(claim));
        self.send("DELETE", claim, &vm, None).map(drop)
    }

    fn send(&self, method: &str, principal: &str, path: &str, body: Option<&Value>) -> Result<()> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}{separator}api-version=2024-11-01"))
            .header("host", "management.azure.com")
            .header("authorization", format!("Bearer karpenter-for-{principal}"))
            .body(body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string())))
            .with_context(|| format!("{method} {path}"))?;
        match self.0.answer(&request).delivery {
            Delivery::Response(response) if response.status().is_success() => Ok(()),
            Delivery::Response(response) => {
                let said = String::from_utf8_lossy(response.body()).into_owned();
                bail!("{method} {path}: {} {said}", response.status())
            }
            Delivery::Cut(..) | Delivery::Dropped => bail!("{method} {path}: the connection broke"),
        }
    }
}

/// A controller that looks after all of this, in an Azure whose clock is also its own.
pub fn controller(azure: &Simulator, client: Client, settings: Settings) -> Controller {
    let clock = Arc::new(SimulatedClock(azure.clone()));
    let line = Arc::new(InProcess::new(azure.clone()));
    let arm =
        Arm::new(Cloud::Public.endpoint(), Arc::new(AnyToken("observer")), line, clock.clone());
    Controller::new(settings, client, arm, clock)
}

/// The requests of the observer, which is the only reader of VMs.
#[derive(Debug, Clone)]
pub struct Reads {
    /// Every read of a VM: when, and its path in lower case.
    pub of_vms: Vec<(Timestamp, String)>,
    /// Every read of the activity log.
    pub of_activity: Vec<Timestamp>,
    /// All throttled requests, of any client.
    pub refused: usize,
}

impl Reads {
    /// What was asked so far.
    pub fn of(azure: &Simulator) -> Self {
        azure.with(|azure| {
            let all = azure.journal().requests();
            let is_vm = |read: &&Recorded| read.operation == "GetVm";
            let of_vms = all.iter().filter(is_vm).map(|read| {
                let path = read.path.split('?').next().unwrap_or_default();
                (read.at, path.to_ascii_lowercase())
            });
            Self {
                of_vms: of_vms.collect(),
                of_activity: all
                    .iter()
                    .filter(|read| read.path.contains("eventtypes"))
                    .map(|read| read.at)
                    .collect(),
                refused: all.iter().filter(|read| read.status == Some(429)).count(),
            }
        })
    }

    /// How many reads there were of each VM that was read, by its path in lower case.
    pub fn by_vm(&self) -> HashMap<&str, usize> {
        let mut counts = HashMap::new();
        for (_, path) in &self.of_vms {
            *counts.entry(path.as_str()).or_default() += 1;
        }
        counts
    }

    /// How many reads there were of a claim's VM.
    pub fn of_claim(&self, claim: &str) -> usize {
        let path = Provider::vm_path(claim).to_ascii_lowercase();
        self.of_vms.iter().filter(|(_, read)| *read == path).count()
    }

    /// By how many reads our own budget was exceeded at the worst moment, as they arrived. They
    /// were allowed one by one; a delayed request arrives together with later ones.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a simulation fit a double")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    pub fn beyond_budget(&self) -> usize {
        let of_vms = self.of_vms.iter().map(|(at, _)| *at);
        let mut all: Vec<Timestamp> = of_vms.chain(self.of_activity.iter().copied()).collect();
        all.sort_unstable();
        let (mut tokens, mut lowest) = (AT_ONCE, AT_ONCE);
        let mut last = all.first().copied().unwrap_or_default();
        for at in all {
            let passed = last.duration_until(at).as_millis() as f64 / 1000.0;
            tokens = (tokens + passed * A_SECOND).min(AT_ONCE) - 1.0;
            lowest = lowest.min(tokens);
            last = at;
        }
        (-lowest).max(0.0).ceil() as usize
    }
}
