//! The fields of Machines and infrastructure machines that are stored in memory. All other fields are
//! dropped, because a fleet has thousands of Machines.

use bringup_objects::cluster_api::{
    AnyCondition, AzureMachine, CONTROL_PLANE_LABEL, DEPLOYMENT_LABEL, InfrastructureReference,
    Machine, NODE_BOOTSTRAP_SUCCEEDED, POOL_LABEL, REPLACEMENT_USEFUL, any, is_paused,
};
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, Condition};
use jiff::Timestamp;
use kube::api::ObjectMeta;

use super::shared::POOL;

/// The conditions that bringup writes on a Machine.
const OURS: [&str; 2] = [BOOTSTRAP_SUCCEEDED, REPLACEMENT_USEFUL];

/// The provider's conditions that show a failed VM, scale set or bootstrap.
const TELLING: [&str; 3] = ["VMRunning", "ScaleSetRunning", BOOTSTRAP_SUCCEEDED];
/// The reasons that mean a failure, regardless of the condition's severity.
const FAILED: [&str; 3] = ["VMProvisionFailed", "ScaleSetProvisionFailed", "BootstrapFailed"];

#[derive(Debug, Clone, Copy)]
pub(super) enum BootstrapData {
    /// The data does not exist yet, or the Machine has none of its own.
    Missing,
    /// The data exists, since this time if known.
    There(Option<Timestamp>),
}

/// The fields of a Machine.
#[derive(Debug)]
pub struct MachineRecord {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: Option<i64>,
    pub(super) created: Timestamp,
    pub(super) deleting: Option<Timestamp>,
    pub(super) deployment: Option<String>,
    pub(super) cluster: String,
    pub(super) is_control_plane: bool,
    /// Whether the Machine itself is paused.
    pub(super) is_paused: bool,
    pub(super) infra_ref: InfrastructureReference,
    pub(super) provider_id: Option<String>,
    pub(super) node: Option<String>,
    pub(super) data: BootstrapData,
    /// When the Node was first reported as healthy.
    pub(super) healthy_since: Option<Timestamp>,
    /// When the VM was first reported as provisioned.
    pub(super) ready_since: Option<Timestamp>,
    /// Whether the VM is provisioned.
    pub(super) is_made: bool,
    pub(super) conditions: Vec<Condition>,
    /// The number of conditions from other writers.
    pub(super) others: usize,
}

impl MachineRecord {
    /// The fields of a Machine; none if it has no uid.
    pub(super) fn of(machine: Machine) -> Option<Self> {
        let Machine { metadata, spec, status } = machine;
        let all = &status.conditions;
        let ready = any(all, "InfrastructureReady").filter(|ready| ready.status == "True");
        let data = any(all, "BootstrapConfigReady").or_else(|| any(all, "BootstrapReady"));
        let data = data.filter(|data| data.status == "True");
        let healthy = any(all, "NodeHealthy").or_else(|| any(all, "NodeReady"));
        let healthy = healthy.filter(|healthy| healthy.status == "True");
        let ours = all.iter().filter(|one| OURS.contains(&one.kind.as_str()));
        let conditions: Vec<Condition> = ours.map(AnyCondition::plain).collect();
        let made = status.initialization.as_ref();
        Some(Self {
            is_paused: is_paused(&metadata),
            is_control_plane: metadata
                .labels
                .as_ref()
                .is_some_and(|all| all.contains_key(CONTROL_PLANE_LABEL)),
            created: created(&metadata).unwrap_or(Timestamp::UNIX_EPOCH),
            deleting: metadata.deletion_timestamp.as_ref().map(|at| at.0),
            deployment: metadata.labels.and_then(|mut all| all.remove(DEPLOYMENT_LABEL)),
            uid: metadata.uid?,
            resource_version: metadata.resource_version.unwrap_or_default(),
            generation: metadata.generation,
            cluster: spec.cluster_name,
            infra_ref: spec.infrastructure_ref,
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
            data: match spec.bootstrap.data_secret_name {
                Some(name) if !name.is_empty() => {
                    BootstrapData::There(data.and_then(AnyCondition::since))
                }
                Some(_) | None => BootstrapData::Missing,
            },
            healthy_since: healthy.and_then(AnyCondition::since),
            ready_since: ready.and_then(AnyCondition::since),
            is_made: made.is_some_and(|made| made.infrastructure_provisioned)
                || status.infrastructure_ready
                || ready.is_some(),
            others: all.len() - conditions.len(),
            conditions,
            node: status.node_ref.map(|node| node.name).filter(|name| !name.is_empty()),
        })
    }

    /// Keeps the earliest time at which the VM was reported as provisioned, even if the provider withdraws
    /// and repeats that report.
    pub(super) fn known_as(mut self, before: Option<&Self>) -> Self {
        let first = before.filter(|before| before.uid == self.uid).and_then(|it| it.ready_since);
        self.ready_since = match (first, self.ready_since) {
            (Some(first), Some(now)) => Some(first.min(now)),
            (first, now) => first.or(now),
        };
        self
    }

    /// Whether our conditions fit on the Machine if it may have `most` conditions. Our own existing
    /// conditions do not count.
    pub(super) fn has_room(&self, most: Option<usize>) -> bool {
        most.is_none_or(|most| self.others + OURS.len() <= most)
    }

    /// Whether the Machine refers to this infrastructure machine.
    pub(super) fn has_infra_machine(&self, kind: &str, name: &str) -> bool {
        self.infra_ref.kind == kind && self.infra_ref.name == name
    }
}

/// The fields of an AzureMachine or AzureMachinePoolMachine.
#[derive(Debug)]
pub struct InfraRecord {
    pub(super) created: Option<Timestamp>,
    pub(super) provider_id: Option<String>,
    pub(super) size: Option<String>,
    pub(super) zone: Option<String>,
    /// The operating system, in lower case.
    pub(super) os: Option<String>,
    /// The pool, if the machine is an instance of one.
    pub(super) pool: Option<String>,
    /// Whether the infrastructure machine itself is paused.
    pub(super) is_paused: bool,
    pub(super) condition: Option<AnyCondition>,
    /// The time of the failure that the provider reports.
    pub(super) failed_since: Option<Timestamp>,
}

impl InfraRecord {
    pub(super) fn of(object: AzureMachine) -> Self {
        let AzureMachine { metadata, spec, status } = object;
        let is_ours = |one: &AnyCondition| one.kind == NODE_BOOTSTRAP_SUCCEEDED;
        Self {
            failed_since: failed_since(&status.conditions),
            created: created(&metadata),
            is_paused: is_paused(&metadata),
            pool: pool(metadata),
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
            size: spec.vm_size,
            zone: spec.failure_domain,
            os: spec.os_disk.os_type.map(|os| os.to_lowercase()),
            condition: status.conditions.into_iter().find(is_ours),
        }
    }
}

/// The pool of an instance: its owner, or else the pool in its label.
fn pool(metadata: ObjectMeta) -> Option<String> {
    let owners = metadata.owner_references.into_iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.kind == POOL).map(|owner| owner.name);
    owner.or_else(|| metadata.labels.and_then(|mut all| all.remove(POOL_LABEL)))
}

/// The time of the latest failure that the provider reports.
pub(super) fn failed_since(conditions: &[AnyCondition]) -> Option<Timestamp> {
    let failed = conditions.iter().filter(|one| is_failure(one));
    failed.filter_map(AnyCondition::since).max()
}

/// Whether a condition reports a failed VM or bootstrap. Conditions that report progress do not count as
/// failures.
fn is_failure(condition: &AnyCondition) -> bool {
    let is_named = condition.reason.as_deref().is_some_and(|reason| FAILED.contains(&reason));
    let is_error = match condition.severity.as_deref() {
        Some(severity) => severity == "Error" || is_named,
        None => condition.kind == BOOTSTRAP_SUCCEEDED || is_named,
    };
    TELLING.contains(&condition.kind.as_str()) && condition.status == "False" && is_error
}

fn created(metadata: &ObjectMeta) -> Option<Timestamp> {
    metadata.creation_timestamp.as_ref().map(|at| at.0)
}
