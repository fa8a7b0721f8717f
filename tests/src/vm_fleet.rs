//! Many VMs at once. The client that creates them uses many identities, because its rate limits are not under
//! test.

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use bringup_azure_sim::azure::{Azure, Delivery};
use bringup_azure_sim::journal::Recorded;
use bringup_azure_sim::simulator::Simulator;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Request;
use jiff::Timestamp;
use serde_json::Value;

use crate::TestBed;
use crate::order::Order;
use crate::stand_in_karpenter::StandInKarpenter;

/// The number of concurrent requests of Karpenter.
const PARALLEL_REQUESTS: usize = 32;
/// The observer's read budget: at once, and per second.
const AT_ONCE: f64 = 125.0;
const A_SECOND: f64 = 12.0;

/// Requests VMs, each as a principal of its own.
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
        let vm = StandInKarpenter::vm_path(claim);
        let nic =
            vm.replace("Microsoft.Compute/virtualMachines", "Microsoft.Network/networkInterfaces");
        self.send("PUT", claim, &nic, Some(&Order::nic(pool)))?;
        self.send("PUT", claim, &vm, Some(&order.vm(&name, pool, &nic))).map(drop)
    }

    /// Puts the Custom Script extension.
    pub fn start_script(&self, claim: &str, order: &Order) -> Result<()> {
        let extension =
            format!("{}/extensions/cse-agent-karpenter", StandInKarpenter::vm_path(claim));
        self.send("PUT", claim, &extension, Some(&order.extension())).map(drop)
    }

    /// Begins to delete a VM, like Karpenter.
    pub fn delete_vm(&self, claim: &str) -> Result<()> {
        let vm = format!("{}?forceDeletion=true", StandInKarpenter::vm_path(claim));
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
                let body = String::from_utf8_lossy(response.body()).into_owned();
                bail!("{method} {path}: {} {body}", response.status())
            }
            Delivery::Cut(..) | Delivery::Dropped => bail!("{method} {path}: the connection broke"),
        }
    }
}

impl TestBed {
    /// Creates `count` claims at the same time: `work` performs all steps for one claim.
    pub async fn for_each_claim<F>(&self, count: usize, work: impl Fn(String) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let all = (0..count).map(|number| work(self.claim_name(number)));
        stream::iter(all).buffer_unordered(PARALLEL_REQUESTS).try_collect().await
    }

    /// Creates a claim, its NIC and its VM, and reports in its status that the VM is accepted.
    pub async fn launch(&self, claim: &str, pool: &str, order: &Order) -> Result<()> {
        self.karpenter.claim(claim, Some(pool)).await?;
        self.vm_fleet().put_vm(claim, pool, order)?;
        let vm = StandInKarpenter::vm_path(claim);
        self.karpenter.accepted(claim, &vm, &order.image()).await
    }

    /// The VMs of this test bed.
    pub fn vm_fleet(&self) -> VmFleet {
        VmFleet::new(self.azure.clone())
    }

    /// Waits until ARM shows `count` VMs in a state.
    pub async fn vms_in_state(&self, state: &str, count: usize) -> Result<()> {
        let in_state = |azure: &mut Azure| {
            let all = azure.resources().into_iter();
            let vms = all.filter(|it| it.state == state && it.id.contains("/virtualMachines/"));
            vms.count()
        };
        let what = format!("{count} VMs that are {state}");
        self.azure_when(&what, in_state, |found| *found >= count).await.map(drop)
    }

    /// Waits until ARM shows the VM of a claim in a state.
    pub async fn vm_in_state(&self, claim: &str, state: &str) -> Result<()> {
        let path = StandInKarpenter::vm_path(claim);
        let state_of = |azure: &mut Azure| {
            azure.resources().into_iter().find(|it| it.id == path).map(|it| it.state)
        };
        let is_it = |found: &Option<String>| found.as_deref() == Some(state);
        self.azure_when(&format!("{path} that is {state}"), state_of, is_it).await.map(drop)
    }
}

/// The requests of the observer, which is the only reader of VMs.
#[derive(Debug, Clone)]
pub struct Reads {
    /// Every read of a VM: its time, and its path in lower case.
    pub of_vms: Vec<(Timestamp, String)>,
    /// Every read of the activity log.
    pub of_activity: Vec<Timestamp>,
    /// All throttled requests, of any client.
    pub refused: usize,
}

impl Reads {
    /// The requests so far.
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

    /// The number of reads of each VM, by its path in lower case.
    pub fn by_vm(&self) -> HashMap<&str, usize> {
        let mut counts = HashMap::new();
        for (_, path) in &self.of_vms {
            *counts.entry(path.as_str()).or_default() += 1;
        }
        counts
    }

    /// The number of reads of a claim's VM.
    pub fn of_claim(&self, claim: &str) -> usize {
        let path = StandInKarpenter::vm_path(claim).to_ascii_lowercase();
        self.of_vms.iter().filter(|(_, read)| *read == path).count()
    }

    /// The largest number of reads by which the observer exceeded its own budget, by time of arrival. The
    /// budget allowed the reads one by one; a delayed request arrives together with later ones.
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
