//! What the last sweep found: for people who ask whether anything is left.

use bringup_azure::id::Name;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::sizes::SIZES;
use crate::sweep::{Kind, Leak};

/// So many leftovers are named.
const NAMED: usize = 20;

/// What the last sweep found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Audit {
    /// The cluster's id, in the tags of everything.
    pub cluster: String,
    /// When it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How many resources of the cluster there were.
    pub resources: u64,
    /// How many of them were orphaned.
    pub leftovers: u64,
    /// Some of those.
    pub named: Vec<Leftover>,
    /// Groups that could not be looked at, and why.
    pub unseen: Vec<String>,
    /// What the quotas of the regions leave.
    pub quotas: Vec<QuotaRow>,
}

/// An orphaned resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: String,
    /// How old it was.
    pub age_seconds: i64,
}

/// A quota, as it was last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaRow {
    /// The subscription.
    pub subscription: String,
    /// The region.
    pub region: String,
    /// What it is of.
    pub name: String,
    /// How many processors are used.
    pub used: i64,
    /// How many there may be.
    pub limit: i64,
}

impl Audit {
    /// Adds what was found in a group.
    pub fn add(&mut self, resources: usize, leaks: &[Leak]) {
        self.resources += resources as u64;
        self.leftovers += leaks.len() as u64;
        let room = NAMED.saturating_sub(self.named.len());
        self.named.extend(leaks.iter().take(room).map(|leak| Leftover {
            id: leak.id.clone(),
            kind: word(leak.kind).to_owned(),
            age_seconds: leak.age.as_secs(),
        }));
    }

    /// Adds a group that could not be looked at.
    pub fn miss(&mut self, group: &Name, why: &str) {
        self.unseen.push(format!("{group}: {why}"));
    }
}

impl Leftover {
    /// How old it was.
    pub fn age(&self) -> SignedDuration {
        SignedDuration::from_secs(self.age_seconds)
    }
}

/// Whether a quota is of interest: of all processors, of spot, or of a family that is offered.
pub fn is_of_interest(name: &str) -> bool {
    let common = ["cores", "lowPriorityCores"].iter().any(|one| one.eq_ignore_ascii_case(name));
    common || SIZES.iter().any(|size| size.family.eq_ignore_ascii_case(name))
}

/// The word for a kind.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Vm => "VM",
        Kind::Nic => "NIC",
        Kind::Disk => "disk",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leftovers_are_counted_and_some_are_named() {
        let leak = |number: usize| Leak {
            id: format!("nic-{number}"),
            kind: Kind::Nic,
            machine: None,
            age: SignedDuration::from_mins(6),
        };
        let leaks: Vec<Leak> = (0..30).map(leak).collect();
        let mut audit = Audit::default();
        audit.add(40, &leaks);
        audit.add(1, &leaks[..1]);
        assert_eq!((audit.resources, audit.leftovers, audit.named.len()), (41, 31, NAMED));
        assert_eq!(audit.named[0].age(), SignedDuration::from_mins(6));
    }

    #[test]
    fn quotas_of_what_is_offered_are_of_interest() {
        assert!(is_of_interest("Cores") && is_of_interest("standarddsv5family"));
        assert!(!is_of_interest("availabilitySets"));
    }
}
