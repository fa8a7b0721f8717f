//! The state machine. Its input is a moment and a request, its output an answer: no clock, no I/O,
//! no threads.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::activity::Entry;
use crate::event::Event;
use crate::fault::{FaultRule, Faults};
use crate::journal::Journal;
use crate::life::Running;
use crate::operation::{Operation, OperationId};
use crate::resources::disk::Disk;
use crate::resources::machine::Machine;
use crate::resources::nic::Nic;
use crate::resources::public_ip::PublicIp;
use crate::resources::scale_set::ScaleSet;
use crate::resources::subnet::Subnet;
use crate::resources::vm::Vm;
use crate::resources::{Tombstone, tag_map};
use crate::route::{Id, Key};
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::serve::Answered;
use crate::throttle::Throttle;

/// What the client receives, and when.
#[derive(Debug)]
pub struct Answer {
    /// The response, or the part of it that arrives.
    pub delivery: Delivery,
    /// Delay in simulated time.
    pub delay: Duration,
}

/// What arrives at the client.
#[derive(Debug)]
pub enum Delivery {
    /// A whole response.
    Response(Response<Bytes>),
    /// The head and the first bytes of the body; then the connection breaks.
    Cut(Response<Bytes>, usize),
    /// Nothing: the connection breaks.
    Dropped,
}

/// A VM whose kubelet has registered a Node.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinedNode {
    /// The name of the Node, which is the computer name of the VM.
    pub name: String,
    /// `azure://` and the VM's resource id.
    pub provider_id: String,
    /// The first private address.
    pub internal_ip: String,
    /// The VM size.
    pub size: String,
    /// The region of the VM.
    pub region: String,
    /// `None` in a region without zones or for a regional VM.
    pub zone: Option<String>,
    /// The version of the VM image.
    pub image_version: Option<String>,
    /// The tags of the VM.
    pub tags: BTreeMap<String, String>,
    /// When the Node registered.
    pub joined: Timestamp,
}

/// A real program that a VM wants to run as its bootstrap.
#[derive(Debug, Clone)]
pub struct ProgramRun {
    /// Identifies this run when its end is reported.
    pub run: u64,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables added to the inherited ones: `BRINGUP_SIM_VM`,
    /// `BRINGUP_SIM_CUSTOM_DATA` (base64), `BRINGUP_SIM_COMMAND` (the extension's
    /// commandToExecute).
    pub environment: BTreeMap<String, String>,
}

/// How a bootstrap program ended.
#[derive(Debug, Clone)]
pub struct ProgramEnd {
    /// The exit code; -1 when a signal ended the program or it could not be started.
    pub exit_code: i32,
    /// The end of standard output.
    pub stdout: String,
    /// The end of standard error.
    pub stderr: String,
}

/// One resource, as the lists of the control endpoint show it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// The ARM resource id.
    pub id: String,
    /// The ARM type, such as `Microsoft.Compute/virtualMachines`.
    pub kind: &'static str,
    /// The provisioning state.
    pub state: String,
    /// The tags of the resource.
    pub tags: BTreeMap<String, String>,
    /// No other resource uses this resource and none will delete it: a leaked resource, unless its owner
    /// still plans to delete it.
    pub orphan: bool,
}

/// A simulated Azure.
#[derive(Debug)]
pub struct Azure {
    pub(crate) scenario: Scenario,
    pub(crate) seed: Seed,
    pub(crate) began: Timestamp,
    pub(crate) now: Timestamp,
    /// How far the clock of this Azure is ahead of the caller's clock.
    pub(crate) ahead: Duration,
    pub(crate) queue: BTreeMap<(Timestamp, u64), Event>,
    pub(crate) scheduled: u64,
    pub(crate) vms: BTreeMap<Key, Vm>,
    pub(crate) scale_sets: BTreeMap<Key, ScaleSet>,
    pub(crate) nics: BTreeMap<Key, Nic>,
    pub(crate) public_ips: BTreeMap<Key, PublicIp>,
    pub(crate) disks: BTreeMap<Key, Disk>,
    pub(crate) subnets: BTreeMap<Key, Subnet>,
    pub(crate) machines: BTreeMap<Key, Machine>,
    pub(crate) tombstones: BTreeMap<Key, Tombstone>,
    pub(crate) operations: BTreeMap<OperationId, Operation>,
    pub(crate) operations_started: u64,
    pub(crate) activity: Vec<Entry>,
    pub(crate) graph_window: (i64, u32),
    /// The number of VMs that each rule of the scenario has matched.
    pub(crate) rules_met: Vec<u32>,
    pub(crate) programs: Vec<ProgramRun>,
    pub(crate) programs_started: u64,
    pub(crate) running: BTreeMap<u64, Running>,
    pub(crate) throttle: Throttle,
    pub(crate) faults: Faults,
    pub(crate) answered: Answered,
    pub(crate) journal: Journal,
}

impl Azure {
    /// An empty Azure at the moment `start`.
    pub fn new(scenario: Scenario, start: Timestamp) -> Self {
        let mut faults = Faults::default();
        for rule in &scenario.faults {
            faults.arm(rule.clone());
        }
        Self {
            seed: Seed::new(scenario.seed),
            began: start,
            now: start,
            ahead: Duration::ZERO,
            queue: BTreeMap::new(),
            scheduled: 0,
            vms: BTreeMap::new(),
            scale_sets: BTreeMap::new(),
            nics: BTreeMap::new(),
            public_ips: BTreeMap::new(),
            disks: BTreeMap::new(),
            subnets: BTreeMap::new(),
            machines: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            operations: BTreeMap::new(),
            operations_started: 0,
            activity: Vec::new(),
            graph_window: (0, 0),
            rules_met: vec![0; scenario.rules.len()],
            programs: Vec::new(),
            programs_started: 0,
            running: BTreeMap::new(),
            throttle: Throttle::default(),
            faults,
            answered: Answered::default(),
            journal: Journal::default(),
            scenario,
        }
    }

    /// Programs to start as the bootstrap of a VM. Each is returned once.
    pub fn programs_to_start(&mut self) -> Vec<ProgramRun> {
        std::mem::take(&mut self.programs)
    }

    /// Everything that exists.
    pub fn resources(&self) -> Vec<ResourceSummary> {
        let summary = |id: &Id, kind, state: &str, tags: &Value, orphan| ResourceSummary {
            id: id.to_string(),
            kind,
            state: state.to_owned(),
            tags: tag_map(tags),
            orphan,
        };
        let vms = self.vms.values().map(|vm| {
            summary(&vm.id, "Microsoft.Compute/virtualMachines", vm.state.word(), &vm.tags, false)
        });
        let nics = self.nics.values().map(|nic| {
            summary(
                &nic.id,
                "Microsoft.Network/networkInterfaces",
                "Succeeded",
                &nic.tags,
                nic.vm.is_none(),
            )
        });
        let disks = self.disks.values().map(|disk| {
            summary(&disk.id, "Microsoft.Compute/disks", "Succeeded", &disk.tags, disk.vm.is_none())
        });
        let addresses = self.public_ips.values().map(|ip| {
            summary(
                &ip.id,
                "Microsoft.Network/publicIPAddresses",
                "Succeeded",
                &ip.tags,
                ip.nic.is_none(),
            )
        });
        vms.chain(nics).chain(disks).chain(addresses).collect()
    }

    /// Adds a fault and returns its id.
    pub fn arm_fault(&mut self, rule: FaultRule) -> u64 {
        self.faults.arm(rule)
    }

    /// Removes a fault; false when no fault has that id.
    pub fn disarm_fault(&mut self, id: u64) -> bool {
        self.faults.disarm(id)
    }

    /// Removes the capacity limit of a size in a region, whatever the scenario defines.
    pub fn lift_capacity_limit(&mut self, region: &str, size: &str) {
        self.scenario.capacity.retain(|capacity| {
            !(capacity.region.eq_ignore_ascii_case(region)
                && capacity.size.eq_ignore_ascii_case(size))
        });
    }

    /// The active faults, each with how often it was injected.
    pub fn faults(&self) -> impl Iterator<Item = (u64, &FaultRule, u32)> {
        self.faults.list()
    }

    /// The record of requests and state changes.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}
