//! The state machine. It is given a moment and a request, and gives an answer: no clock, no
//! I/O, no threads.

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

/// What the client gets to see, and when.
#[derive(Debug)]
pub struct Answer {
    /// What arrives.
    pub delivery: Delivery,
    /// How much later, in simulated time.
    pub delay: Duration,
}

/// What arrives at the client.
#[derive(Debug)]
pub enum Delivery {
    /// A whole response.
    Response(Response<Bytes>),
    /// The head and so many bytes of the body; then the connection breaks.
    Cut(Response<Bytes>, usize),
    /// Nothing: the connection breaks.
    Dropped,
}

/// A machine that has come up far enough to be a Node.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinedNode {
    /// The Node's name.
    pub name: String,
    /// `azure://` and the VM's resource id.
    pub provider_id: String,
    /// Its first private address.
    pub internal_ip: String,
    /// The VM's size.
    pub size: String,
    /// The VM's region.
    pub region: String,
    /// The VM's zone, if it has one.
    pub zone: Option<String>,
    /// The version of the VM's image.
    pub image_version: Option<String>,
    /// The VM's tags.
    pub tags: BTreeMap<String, String>,
    /// When it joined.
    pub joined: Timestamp,
}

/// A real program that a VM wants to run as its bootstrap.
#[derive(Debug, Clone)]
pub struct ProgramRun {
    /// Names this run when its end is reported.
    pub run: u64,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables for it, beside the inherited ones: `BRINGUP_SIM_VM`, `BRINGUP_SIM_CUSTOM_DATA`
    /// (base64), `BRINGUP_SIM_COMMAND` (the extension's commandToExecute).
    pub environment: BTreeMap<String, String>,
}

/// How such a program ended.
#[derive(Debug, Clone)]
pub struct ProgramEnd {
    /// Its exit code; -1 when a signal ended it or it could not be started.
    pub exit_code: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// One resource, as far as a reader of lists wants to know.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// The resource's id.
    pub id: String,
    /// Its type, such as `Microsoft.Compute/virtualMachines`.
    pub kind: &'static str,
    /// Its provisioning state.
    pub state: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Nothing uses it and nothing will remove it: a leak, unless somebody still plans to.
    pub orphan: bool,
}

/// A simulated Azure.
#[derive(Debug)]
pub struct Azure {
    pub(crate) scenario: Scenario,
    pub(crate) seed: Seed,
    pub(crate) began: Timestamp,
    pub(crate) now: Timestamp,
    /// How far this Azure's clock is ahead of the caller's.
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
    /// How many VMs each rule of the scenario has met.
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

    /// Programs that VMs want started; each is handed out once.
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

    /// Puts one more fault in force and gives its number.
    pub fn arm_fault(&mut self, rule: FaultRule) -> u64 {
        self.faults.arm(rule)
    }

    /// Takes a fault back; false when there is none of that number.
    pub fn disarm_fault(&mut self, id: u64) -> bool {
        self.faults.disarm(id)
    }

    /// From now on a region can hold any number of VMs of a size, whatever the scenario says.
    pub fn lift_capacity_limit(&mut self, region: &str, size: &str) {
        self.scenario.capacity.retain(|capacity| {
            !(capacity.region.eq_ignore_ascii_case(region)
                && capacity.size.eq_ignore_ascii_case(size))
        });
    }

    /// The faults in force, each with how often it struck.
    pub fn faults(&self) -> impl Iterator<Item = (u64, &FaultRule, u32)> {
        self.faults.list()
    }

    /// What happened so far.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}
