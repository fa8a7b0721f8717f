//! What is known of the cluster, by name.

use std::collections::BTreeMap;

use bringup_azure::ProviderId;
use bringup_contract::Cause;
use bringup_objects::condition::{BOOTSTRAP_SUCCEEDED, find, karpenter};
use bringup_objects::flex::machine::{FlexMachineStatus, Phase};
use bringup_objects::flex::{AzureFlexMachine, AzureFlexNodeClass};
use bringup_objects::karpenter::NodeClaim;
use kube::ResourceExt as _;

/// The API group of our classes.
pub(super) const GROUP: &str = "flex.aks.azure.com";
/// Their kind.
pub(super) const KIND: &str = "AzureFlexNodeClass";

/// What is known, by name.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) classes: BTreeMap<String, AzureFlexNodeClass>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) claims: BTreeMap<String, Claim>,
    /// Whether all claims have been listed once: before that, none is missing.
    pub(super) claims_are_listed: bool,
    /// The same of machines.
    pub(super) machines_are_listed: bool,
    /// The same of classes.
    pub(super) classes_are_listed: bool,
}

/// What matters of a machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    pub(super) class: String,
    pub(super) uid: String,
    pub(super) phase: Phase,
    pub(super) claim: Option<(String, String)>,
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
            claim: claim.map(|claim| (claim.name.clone(), claim.uid.clone())),
            provider_id: machine.status.as_ref().and_then(|status| status.provider_id.clone()),
        }
    }
}

/// What matters of a claim of one of our classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) uid: String,
    pub(super) class: String,
    pub(super) is_going: bool,
    pub(super) is_registered: bool,
    /// The machine that it names as its own.
    pub(super) provider_id: Option<String>,
    /// What was found out about its bootstrap.
    pub(super) verdict: Option<Verdict>,
}

/// What was found out about a bootstrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Up,
    /// The bootstrap failed; the report exists.
    Failed {
        /// The reason of the condition.
        cause: String,
        message: String,
    },
    /// No Node came within the time limit of the observer, and nothing says why: it may come yet.
    /// The report exists.
    Open,
}

impl Claim {
    /// The claim, if it is of one of our classes.
    pub(super) fn of(claim: &NodeClaim) -> Option<Self> {
        let class = &claim.spec.node_class_ref;
        if class.group != GROUP || class.kind != KIND {
            return None;
        }
        let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let registered = find(conditions, karpenter::REGISTERED);
        let verdict = find(conditions, BOOTSTRAP_SUCCEEDED);
        Some(Self {
            uid: claim.uid().unwrap_or_default(),
            class: class.name.clone(),
            is_going: claim.metadata.deletion_timestamp.is_some(),
            is_registered: registered.is_some_and(|registered| registered.status == "True"),
            provider_id: claim.status.as_ref().and_then(|status| status.provider_id.clone()),
            verdict: verdict.and_then(|verdict| match verdict.status.as_str() {
                "True" => Some(Verdict::Up),
                "False" if verdict.reason == Cause::Unknown.reason() => Some(Verdict::Open),
                "False" => Some(Verdict::Failed {
                    cause: verdict.reason.clone(),
                    message: verdict.message.clone(),
                }),
                _ => None,
            }),
        })
    }
}

impl Claim {
    /// Whether the claim names a machine as its own, by the provider id that Karpenter has stored.
    pub(super) fn names(&self, machine: &FlexMachineStatus) -> bool {
        let both = self.provider_id.as_deref().zip(machine.provider_id.as_deref());
        both.is_some_and(|(claimed, machine)| same_id(claimed, machine))
    }
}

/// Whether two provider ids are of the same instance; neither is if one is empty.
pub(super) fn same_id(left: &str, right: &str) -> bool {
    match (left.parse::<ProviderId>(), right.parse::<ProviderId>()) {
        (Ok(left), Ok(right)) => left == right,
        _ => !left.is_empty() && left.eq_ignore_ascii_case(right),
    }
}

impl Index {
    /// The machines of a class.
    pub(super) fn of_class(&self, class: &str) -> Vec<String> {
        let of_class = self.machines.iter().filter(|(_, machine)| machine.class == class);
        of_class.map(|(name, _)| name.clone()).collect()
    }

    /// The claim that a machine is for, as far as it is known to be there.
    pub(super) fn claim_of(&self, machine: &Machine) -> Option<&Claim> {
        let (name, uid) = machine.claim.as_ref()?;
        self.claims.get(name).filter(|claim| claim.uid == *uid)
    }

    /// The machines that say they are for a claim; that of the claim's own name first, which is the one
    /// that is made for it. Anyone who may create machines can make another say so.
    pub(super) fn machines_for(&self, claim: &str) -> Vec<&String> {
        let its = |machine: &Machine| machine.claim.as_ref().is_some_and(|(name, _)| name == claim);
        let mut all: Vec<&String> = self
            .machines
            .iter()
            .filter(|(_, machine)| its(machine))
            .map(|(name, _)| name)
            .collect();
        all.sort_by_key(|name| *name != claim);
        all
    }
}
