//! The objects that the watches have delivered, by name.

use std::collections::BTreeMap;

use bringup_flex::claim::Claim;
use bringup_objects::flex::machine::Phase;
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) classes: BTreeMap<String, AzureFlexNodeClass>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) claims: BTreeMap<String, Claim>,
    /// Whether all claims have been listed once. Until then, an unknown claim may exist.
    pub(super) claims_are_listed: bool,
    /// Whether all machines have been listed once.
    pub(super) machines_are_listed: bool,
    /// Whether all classes have been listed once.
    pub(super) classes_are_listed: bool,
}

/// The fields of a machine that the index stores.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    pub(super) class: String,
    pub(super) uid: String,
    pub(super) phase: Phase,
    /// The name of the claim that it refers to.
    pub(super) claim: Option<String>,
    pub(super) provider_id: Option<String>,
    /// The subscription and resource group of its VM, in lower case.
    pub(super) group: Option<(String, String)>,
}

impl Machine {
    pub(super) fn of(machine: &AzureFlexMachine) -> Self {
        let claim = machine.spec.claim_ref.as_ref();
        let place = machine.status.as_ref().and_then(|status| status.place.as_ref());
        Self {
            group: place.map(|place| {
                let lower = str::to_ascii_lowercase;
                (lower(&place.subscription_id), lower(&place.resource_group))
            }),
            class: machine.spec.node_class.clone(),
            phase: machine.status.as_ref().map_or(Phase::Planned, |status| status.phase),
            uid: machine.metadata.uid.clone().unwrap_or_default(),
            claim: claim.map(|claim| claim.name.clone()),
            provider_id: machine.status.as_ref().and_then(|status| status.provider_id.clone()),
        }
    }
}

impl Index {
    pub(super) fn of_class(&self, class: &str) -> Vec<String> {
        let of_class = self.machines.iter().filter(|(_, machine)| machine.class == class);
        of_class.map(|(name, _)| name.clone()).collect()
    }

    /// The claim that a machine refers to, if the watch has delivered the claim; and whether all claims have
    /// been listed.
    pub(super) fn claim_of(&self, machine: &AzureFlexMachine) -> (Option<Claim>, bool) {
        let reference = machine.spec.claim_ref.as_ref();
        let claim = reference.and_then(|reference| {
            self.claims.get(&reference.name).filter(|claim| claim.uid == reference.uid)
        });
        (claim.cloned(), self.claims_are_listed)
    }

    /// The machines that refer to a claim. The machine with the claim's own name is first: it was created for
    /// the claim, while any client that may create machines can make another one refer to the claim.
    pub(super) fn machines_for(&self, claim: &str) -> Vec<&String> {
        let refers = |machine: &Machine| machine.claim.as_deref() == Some(claim);
        let mut all: Vec<&String> = self
            .machines
            .iter()
            .filter(|(_, machine)| refers(machine))
            .map(|(name, _)| name)
            .collect();
        all.sort_by_key(|name| *name != claim);
        all
    }
}
