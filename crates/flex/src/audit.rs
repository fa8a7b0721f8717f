//! The result of the last sweep, as `bringup flex status` shows it.

use bringup_azure::id::Name;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::sizes::SIZES;
use crate::sweep::{Kind, Orphan};

/// The most orphans that are listed by name.
const NAMED: usize = 20;

/// The result of the last sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Audit {
    /// The cluster's ID, in the tags of every resource.
    pub cluster: String,
    /// When the sweep ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The number of the cluster's resources.
    pub resources: u64,
    /// The number of orphaned resources.
    pub leftovers: u64,
    /// Some of the orphaned resources.
    pub named: Vec<Leftover>,
    /// Resource groups that could not be swept, and why.
    pub unseen: Vec<String>,
    /// The quotas of the regions.
    pub quotas: Vec<QuotaRow>,
}

/// An orphaned resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// The resource ID.
    pub id: String,
    /// The kind of the resource.
    pub kind: String,
    /// The age of the resource at the sweep.
    pub age_seconds: i64,
}

/// A quota as last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaRow {
    /// The subscription.
    pub subscription: String,
    /// The region.
    pub region: String,
    /// The name of the quota: a family, `cores` or `lowPriorityCores`.
    pub name: String,
    /// The number of vCPUs in use.
    pub used: i64,
    /// The limit on vCPUs.
    pub limit: i64,
}

impl Audit {
    /// Adds the orphans of a resource group.
    pub fn add(&mut self, resources: usize, orphans: &[Orphan]) {
        self.resources += resources as u64;
        self.leftovers += orphans.len() as u64;
        let room = NAMED.saturating_sub(self.named.len());
        self.named.extend(orphans.iter().take(room).map(|orphan| Leftover {
            id: orphan.id.clone(),
            kind: word(orphan.kind).to_owned(),
            age_seconds: orphan.age.as_secs(),
        }));
    }

    /// Adds a resource group that could not be swept.
    pub fn miss(&mut self, group: &Name, why: &str) {
        self.unseen.push(format!("{group}: {why}"));
    }
}

impl Leftover {
    /// The age of the resource at the sweep.
    pub fn age(&self) -> SignedDuration {
        SignedDuration::from_secs(self.age_seconds)
    }
}

/// Whether to show a quota: that of all vCPUs, of spot vCPUs, or of a family that bringup offers.
pub fn is_of_interest(name: &str) -> bool {
    let common = ["cores", "lowPriorityCores"].iter().any(|one| one.eq_ignore_ascii_case(name));
    common || SIZES.iter().any(|size| size.family.eq_ignore_ascii_case(name))
}

/// The name of a kind in the audit.
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
        let orphan = |number: usize| Orphan {
            id: format!("nic-{number}"),
            kind: Kind::Nic,
            machine: None,
            age: SignedDuration::from_mins(6),
        };
        let orphans: Vec<Orphan> = (0..30).map(orphan).collect();
        let mut audit = Audit::default();
        audit.add(40, &orphans);
        audit.add(1, &orphans[..1]);
        assert_eq!((audit.resources, audit.leftovers, audit.named.len()), (41, 31, NAMED));
        assert_eq!(audit.named[0].age(), SignedDuration::from_mins(6));
    }

    #[test]
    fn quotas_of_what_is_offered_are_of_interest() {
        assert!(is_of_interest("Cores") && is_of_interest("standarddsv5family"));
        assert!(!is_of_interest("availabilitySets"));
    }
}
