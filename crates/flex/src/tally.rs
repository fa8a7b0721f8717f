//! The receipt: counts of machines, which are stored after the machines are deleted.

use std::collections::{BTreeMap, VecDeque};

use bringup_objects::flex::AzureFlexMachine;
use serde::{Deserialize, Serialize};

/// The number of recently counted machines that are remembered, so that none is counted twice.
const REMEMBERED: usize = 128;

/// Counts of machines and of their deleted resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tally {
    /// The number of machines.
    pub machines: u64,
    /// The number of VMs that ran.
    pub ran: u64,
    /// How often a VM was refused or failed, by cause.
    pub failed: BTreeMap<String, u64>,
    /// How many VMs were deleted.
    pub vms_removed: u64,
    /// How many NICs were deleted.
    pub nics_removed: u64,
    /// How many disks were deleted.
    pub disks_removed: u64,
    /// How many orphaned resources were deleted.
    pub swept: u64,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    counted: VecDeque<String>,
}

impl Tally {
    /// Counts a machine whose resources in Azure are all deleted. Returns false if the machine was already
    /// counted.
    pub fn count(&mut self, machine: &AzureFlexMachine) -> bool {
        let uid = machine.metadata.uid.clone().unwrap_or_default();
        if self.counted.contains(&uid) {
            return false;
        }
        self.counted.push_back(uid);
        if self.counted.len() > REMEMBERED {
            self.counted.pop_front();
        }
        self.add(machine);
        true
    }

    /// Adds a machine according to its status. Each attempt had a NIC; attempts whose VM ran also had a VM
    /// and a disk. Every attempt before the last must have failed.
    pub fn add(&mut self, machine: &AzureFlexMachine) {
        let status = machine.status.clone().unwrap_or_default();
        let attempts = u64::from(status.attempt);
        let ran = u64::from(status.completed_at.is_some());
        self.machines = self.machines.saturating_add(1);
        self.ran = self.ran.saturating_add(ran);
        let failures = match &status.failure {
            Some(_) => attempts.max(1),
            None => attempts.saturating_sub(1),
        };
        if failures > 0 {
            let cause = status
                .failure
                .map_or_else(|| "Unknown".to_owned(), |failure| failure.cause.to_string());
            let known = self.failed.entry(cause).or_default();
            *known = known.saturating_add(failures);
        }
        if status.phase.is_cleaning() {
            let nics = if status.place.is_some() { attempts } else { 0 };
            self.nics_removed = self.nics_removed.saturating_add(nics);
            let vms = u64::from(status.accepted_at.is_some());
            self.vms_removed = self.vms_removed.saturating_add(vms);
            self.disks_removed = self.disks_removed.saturating_add(vms);
        }
    }

    /// The sum of all failures.
    pub fn failures(&self) -> u64 {
        self.failed.values().fold(0, |sum, one| sum.saturating_add(*one))
    }
}

#[cfg(test)]
mod tests {
    use bringup_contract::Open;
    use bringup_objects::flex::machine::{Failure, FlexMachineStatus, Phase, Place};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn machine(uid: &str, ran: bool, cause: Option<&str>) -> AzureFlexMachine {
        let mut machine = AzureFlexMachine::default();
        machine.metadata.uid = Some(uid.to_owned());
        let time = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        machine.status = Some(FlexMachineStatus {
            phase: Phase::Gone,
            attempt: 1,
            place: Some(Place::default()),
            completed_at: time.clone().filter(|_| ran),
            accepted_at: time.filter(|_| ran),
            failure: cause.map(|cause| Failure { cause: Open::parse(cause), ..Failure::default() }),
            ..FlexMachineStatus::default()
        });
        machine
    }

    #[test]
    fn a_receipt_counts_each_machine_once() {
        let mut tally = Tally::default();
        for number in 0..200 {
            let refused = machine(&format!("q{number}"), false, Some("QuotaExceeded"));
            assert!(tally.count(&refused));
            assert!(!tally.count(&refused), "the same machine, after a crash");
        }
        tally.count(&machine("fine", true, None));
        assert_eq!(tally.failed, BTreeMap::from([("QuotaExceeded".to_owned(), 200)]));
        assert_eq!((tally.nics_removed, tally.vms_removed, tally.disks_removed), (201, 1, 1));
        assert_eq!((tally.machines, tally.ran, tally.failures()), (201, 1, 200));
        let text = serde_json::to_string(&tally).unwrap();
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
    }
}
