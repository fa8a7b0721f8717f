//! Orphaned resources: resources of this cluster in Azure that no machine or claim owns.
//!
//! Azure is listed first, then the machines: the machine of a resource that is created in between is in the
//! second list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::machine::RESERVATION;
use crate::names::{self, CLAIM_UID, CLUSTER, MACHINE, MACHINE_UID, MANAGED_BY};

/// The youngest age at which a resource counts as orphaned.
const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// The kind of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A virtual machine. VMs are deleted first, because they use the others.
    Vm,
    /// A network interface.
    Nic,
    /// A disk.
    Disk,
}

/// A resource in Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The resource ID.
    pub id: String,
    /// The resource's kind.
    pub kind: Kind,
    /// The resource's tags.
    pub tags: BTreeMap<String, String>,
    /// When the resource was created, if Azure reports that; else when it was first seen.
    pub since: Timestamp,
    /// Whether another resource uses it.
    pub used: bool,
    /// The vmId of a VM, to check before the deletion that the VM is still the listed one.
    pub vm_id: Option<String>,
}

/// The objects that own resources.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    /// The names of the machines that exist.
    pub machines: BTreeSet<String>,
    /// The uids of the claims that exist. If only the machine object is lost, the VM of an existing claim is
    /// not deleted.
    pub claims: BTreeSet<String>,
    /// The uid of the namespace kube-system; none if not known. The names of this cluster's resources depend
    /// on this uid, so that two clusters with the same cluster ID by mistake do not delete each other's
    /// resources.
    pub cluster_uid: Option<String>,
}

impl Owners {
    fn own(&self, resource: &Resource) -> bool {
        let of = |name: &str, all: &BTreeSet<String>| {
            resource.tags.get(name).is_some_and(|value| all.contains(value))
        };
        of(MACHINE, &self.machines) || of(CLAIM_UID, &self.claims)
    }

    /// Whether this cluster gave a resource its name. A resource from before names had a suffix has no uid in
    /// its tags, and is recognised by its tags alone.
    fn have_named(&self, resource: &Resource) -> bool {
        let name = resource.id.rsplit('/').next().unwrap_or_default();
        match (&self.cluster_uid, resource.tags.get(MACHINE_UID)) {
            (Some(cluster), Some(machine)) => {
                let suffix = format!("-{}", names::suffix(cluster, machine));
                let stem = name.strip_suffix("-nic").or_else(|| name.strip_suffix("-osdisk"));
                stem.unwrap_or(name).ends_with(&suffix)
            }
            _ => true,
        }
    }
}

/// An orphaned resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// The resource ID.
    pub id: String,
    /// The resource's kind.
    pub kind: Kind,
    /// The machine that the resource was created for.
    pub machine: Option<String>,
    /// The age of the resource.
    pub age: SignedDuration,
}

/// Whether a resource has the tags of a cluster and of one of its machines.
pub fn is_ours(resource: &Resource, cluster: &str) -> bool {
    let tag = |name: &str| resource.tags.get(name).map(String::as_str);
    tag(MANAGED_BY.0) == Some(MANAGED_BY.1)
        && tag(CLUSTER) == Some(cluster)
        && tag(MACHINE).is_some_and(|machine| !machine.is_empty())
}

/// The orphans to delete, VMs first: of this cluster, without an owner, old enough, and not in use.
/// A resource without our tags is never among them.
pub fn plan(resources: &[Resource], owners: &Owners, cluster: &str, now: Timestamp) -> Vec<Orphan> {
    let mut orphans: Vec<Orphan> = resources
        .iter()
        .filter(|resource| is_ours(resource, cluster) && !owners.own(resource))
        .filter(|resource| owners.have_named(resource))
        .filter_map(|resource| {
            let machine = resource.tags.get(MACHINE);
            let age = resource.since.duration_until(now);
            let free = match resource.kind {
                Kind::Vm => true,
                // Azure reserves the NIC for a VM that it refused to create.
                Kind::Nic => !resource.used && age > RESERVATION,
                Kind::Disk => !resource.used,
            };
            (free && age > GRACE).then(|| Orphan {
                id: resource.id.clone(),
                kind: resource.kind,
                machine: machine.cloned(),
                age,
            })
        })
        .collect();
    orphans.sort_by(|left, right| (left.kind, &left.id).cmp(&(right.kind, &right.id)));
    orphans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn resource(id: &str, kind: Kind, cluster: &str, machine: &str) -> Resource {
        let tags = [(MANAGED_BY.0, MANAGED_BY.1), (CLUSTER, cluster), (MACHINE, machine)];
        Resource {
            id: id.to_owned(),
            kind,
            tags: tags.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            since: at(0),
            used: false,
            vm_id: None,
        }
    }

    fn swept(resources: &[Resource], seconds: i64) -> Vec<String> {
        let machines = BTreeSet::from(["wanted".to_owned()]);
        let claims = BTreeSet::from(["uid-that-lives".to_owned()]);
        let cluster_uid = Some("k".to_owned());
        plan(resources, &Owners { machines, claims, cluster_uid }, "c", at(seconds))
            .into_iter()
            .map(|orphan| orphan.id)
            .collect()
    }

    #[test]
    fn case_10_orphans_are_deleted_vm_first() {
        let all = [
            resource("disk", Kind::Disk, "c", "gone"),
            resource("nic", Kind::Nic, "c", "gone"),
            resource("vm", Kind::Vm, "c", "gone"),
            resource("kept", Kind::Vm, "c", "wanted"),
        ];
        assert_eq!(swept(&all, 301), ["vm", "nic", "disk"]);
        assert!(swept(&all, 299).is_empty(), "nothing young is deleted");
    }

    #[test]
    fn a_resource_whose_claim_exists_stays_even_where_its_machine_is_lost() {
        let of_claim = |id: &str, uid: &str| {
            let mut vm = resource(id, Kind::Vm, "c", "lost");
            vm.tags.insert(CLAIM_UID.to_owned(), uid.to_owned());
            vm
        };
        let all = [of_claim("runs", "uid-that-lives"), of_claim("left", "uid-that-is-gone")];
        assert_eq!(swept(&all, 100_000), ["left"]);
    }

    #[test]
    fn nothing_foreign_and_nothing_used_is_ever_touched() {
        let mut untagged = resource("a", Kind::Nic, "c", "gone");
        untagged.tags.remove(MANAGED_BY.0);
        let mut used = resource("b", Kind::Nic, "c", "gone");
        used.used = true;
        let other = resource("d", Kind::Vm, "another", "gone");
        let mut of_no_machine = resource("e", Kind::Vm, "c", "gone");
        of_no_machine.tags.remove(MACHINE);
        assert!(swept(&[untagged, used, other, of_no_machine], 100_000).is_empty());
    }

    #[test]
    fn resources_of_a_second_cluster_with_the_same_id_are_left_alone() {
        let made_by = |cluster_uid: &str, end: &str| {
            let id = format!("/x/gone-{}{end}", names::suffix(cluster_uid, "u"));
            let mut made = resource(&id, Kind::Nic, "c", "gone");
            made.tags.insert(MACHINE_UID.to_owned(), "u".to_owned());
            made
        };
        let ours = ["", "-nic", "-osdisk"].map(|end| made_by("k", end));
        assert_eq!(swept(&ours, 100_000).len(), 3);
        let theirs = ["", "-nic", "-osdisk"].map(|end| made_by("another", end));
        assert!(swept(&theirs, 100_000).is_empty());
    }
}
