//! Whether a resource in Azure is ours, decided from its body as just read.
//!
//! A name proves nothing: any client that may write to the resource group can create a VM, a NIC or a disk
//! under any name. Tags prove ownership, and for a VM also its vmId, which Azure assigns and never reuses.

use serde_json::Value;

use crate::names::{self, CLUSTER, MACHINE, MACHINE_UID, MANAGED_BY};
use crate::sweep::Kind;

/// The machine that a resource must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The cluster's ID.
    pub cluster: &'a str,
    /// The machine's name.
    pub machine: &'a str,
    /// The machine's uid; none if the machine was planned before resources had that tag.
    pub uid: Option<&'a str>,
    /// The vmId that Azure returned for the VM's creation; none if not known yet.
    pub vm_id: Option<&'a str>,
}

/// Whether a resource may be written to and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The resource has our tags, and a VM has the stored vmId.
    Ours,
    /// The resource is not ours, for this reason.
    Foreign(String),
}

/// Decides whether a resource is ours, from its body in ARM's answer.
pub fn owns(kind: Kind, resource: &Value, identity: &Identity<'_>) -> Ownership {
    let wanted = [
        (MANAGED_BY.0, Some(MANAGED_BY.1)),
        (CLUSTER, Some(identity.cluster)),
        (MACHINE, Some(identity.machine)),
        // A resource from before this tag existed does not have it. A resource with another uid belongs to
        // another machine.
        (MACHINE_UID, identity.uid),
    ];
    for (name, value) in wanted {
        let found = tag(resource, name);
        if found != value.map_or(Tag::Absent, Tag::Is) {
            return Ownership::Foreign(format!("its tag {name} {found}"));
        }
    }
    match (kind, identity.vm_id) {
        (Kind::Vm, Some(stored)) => {
            let found = vm_id(resource).unwrap_or_default();
            if found.eq_ignore_ascii_case(stored) {
                return Ownership::Ours;
            }
            Ownership::Foreign(format!("its vmId is `{found}`, and this machine's is `{stored}`"))
        }
        (Kind::Vm, None) | (Kind::Nic | Kind::Disk, _) => Ownership::Ours,
    }
}

/// The vmId of a VM.
pub fn vm_id(vm: &Value) -> Option<&str> {
    vm.pointer("/properties/vmId").and_then(Value::as_str)
}

/// The value of a resource's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag<'a> {
    Absent,
    Is(&'a str),
    /// Several tags whose names differ only in case, which proves nothing.
    Ambiguous,
}

impl std::fmt::Display for Tag<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => formatter.write_str("is missing"),
            Self::Is(value) => {
                let value: String = value.chars().take(64).collect();
                write!(formatter, "is `{value}`")
            }
            Self::Ambiguous => formatter.write_str("exists twice"),
        }
    }
}

/// Azure ignores case in the names of tags, but not in their values.
fn tag<'a>(resource: &'a Value, name: &str) -> Tag<'a> {
    let tags = resource.get("tags").and_then(Value::as_object).into_iter().flatten();
    let mut same = tags.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    match (same.next().map(|(_, value)| value.as_str()), same.next()) {
        (None, _) => Tag::Absent,
        (Some(Some(value)), None) => Tag::Is(value),
        (Some(_), _) => Tag::Ambiguous,
    }
}

/// A resource that Azure deletes together with a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// The resource's kind.
    pub kind: Kind,
    /// The resource ID.
    pub id: String,
    /// Whether this is the disk that was created with the VM, under the name that bringup chose.
    pub is_own_disk: bool,
}

/// All resources that Azure would delete together with a VM: those attached with `deleteOption: Delete`.
pub fn companions(vm: &Value) -> Vec<Companion> {
    let id = vm["id"].as_str().unwrap_or_default();
    let (group, name) = id
        .split_once("/providers/")
        .map_or(("", ""), |(group, rest)| (group, rest.rsplit('/').next().unwrap_or_default()));
    let is_deleted_with_vm = |options: &Value| {
        let option = options["deleteOption"].as_str();
        option.is_some_and(|option| option.eq_ignore_ascii_case("delete"))
    };
    let list = |path: &str| vm.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let nics = list("/properties/networkProfile/networkInterfaces")
        .filter(|nic| is_deleted_with_vm(&nic["properties"]))
        .map(|nic| {
            let id = nic["id"].as_str().unwrap_or_default().to_owned();
            Companion { kind: Kind::Nic, id, is_own_disk: false }
        });
    let disk = |disk: &Value, is_os: bool| {
        let named = disk["name"].as_str().unwrap_or_default();
        let beside = || format!("{group}/providers/Microsoft.Compute/disks/{named}");
        let id = disk.pointer("/managedDisk/id").and_then(Value::as_str);
        let is_own_disk = is_os && named.eq_ignore_ascii_case(&names::disk(name));
        Companion { kind: Kind::Disk, id: id.map_or_else(beside, str::to_owned), is_own_disk }
    };
    let os =
        vm.pointer("/properties/storageProfile/osDisk").filter(|disk| is_deleted_with_vm(disk));
    let data = list("/properties/storageProfile/dataDisks").filter(|disk| is_deleted_with_vm(disk));
    nics.chain(os.map(|one| disk(one, true))).chain(data.map(|one| disk(one, false))).collect()
}

/// Decides whether a companion of one of our VMs may be deleted with the VM. The disk that was created with
/// the VM is part of it, even if Azure did not copy the VM's tags to the disk.
pub fn may_be_deleted_with(
    vm: &Value,
    companion: &Companion,
    resource: &Value,
    identity: &Identity<'_>,
) -> Ownership {
    let is_bare = [MANAGED_BY.0, CLUSTER, MACHINE, MACHINE_UID]
        .iter()
        .all(|name| tag(resource, name) == Tag::Absent);
    let holder = resource["managedBy"].as_str().unwrap_or_default();
    let is_held = holder.eq_ignore_ascii_case(vm["id"].as_str().unwrap_or("?"));
    if companion.is_own_disk && is_bare && is_held {
        return Ownership::Ours;
    }
    owns(companion.kind, resource, identity)
}

/// The ID of the VM that uses a NIC or a disk.
pub fn holder(kind: Kind, resource: &Value) -> Option<&str> {
    match kind {
        Kind::Vm => None,
        Kind::Nic => resource.pointer("/properties/virtualMachine/id").and_then(Value::as_str),
        Kind::Disk => resource["managedBy"].as_str(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WE: Identity<'_> =
        Identity { cluster: "c", machine: "m", uid: Some("u"), vm_id: Some("1-2") };

    fn vm() -> Value {
        json!({
            "tags": {
                "bringup-managed-by": "bringup", "bringup-cluster": "c", "bringup-machine": "m",
                "bringup-machine-uid": "u", "team": "blue",
            },
            "properties": { "vmId": "1-2" },
        })
    }

    fn is_ours(resource: &Value, identity: &Identity<'_>) -> bool {
        owns(Kind::Vm, resource, identity) == Ownership::Ours
    }

    #[test]
    fn a_vm_with_our_tags_and_our_vm_id_is_ours_and_every_single_difference_makes_it_foreign() {
        assert!(is_ours(&vm(), &WE));
        for name in [MANAGED_BY.0, CLUSTER, MACHINE, MACHINE_UID] {
            for value in [json!("other"), json!(null), json!(1), json!("")] {
                let mut other = vm();
                other["tags"][name] = value;
                assert!(!is_ours(&other, &WE), "{other}");
            }
            let mut without = vm();
            without["tags"].as_object_mut().unwrap().remove(name);
            assert!(!is_ours(&without, &WE), "{name}");
        }
        for id in [json!("3-4"), json!(null), json!("")] {
            let mut other = vm();
            other["properties"]["vmId"] = id;
            assert!(!is_ours(&other, &WE), "{other}");
        }
        assert!(!is_ours(&json!({}), &WE) && !is_ours(&json!({ "tags": [] }), &WE));
    }

    #[test]
    fn the_names_of_tags_have_no_case_and_their_values_do() {
        let mut renamed = vm();
        let tags = renamed["tags"].as_object_mut().unwrap();
        tags.remove(CLUSTER);
        tags.insert("Bringup-Cluster".to_owned(), json!("c"));
        assert!(is_ours(&renamed, &WE));
        renamed["tags"]["Bringup-Cluster"] = json!("C");
        assert!(!is_ours(&renamed, &WE));
        // The tag exists twice, with different case in its name: that proves nothing.
        let mut twice = vm();
        twice["tags"]["BRINGUP-CLUSTER"] = json!("other");
        assert!(!is_ours(&twice, &WE));
    }

    #[test]
    fn a_machine_from_before_the_uid_tag_owns_by_its_tags_and_vm_id_and_nothing_that_has_a_uid() {
        let old = Identity { uid: None, ..WE };
        let mut made_before = vm();
        made_before["tags"].as_object_mut().unwrap().remove(MACHINE_UID);
        assert!(is_ours(&made_before, &old));
        assert!(!is_ours(&vm(), &old), "that of a later machine of the same name");
        made_before["properties"]["vmId"] = json!("another");
        assert!(!is_ours(&made_before, &old));
    }

    #[test]
    fn what_may_be_deleted_with_a_vm_is_found_and_the_disk_made_with_it_is_part_of_it() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v";
        let vm = json!({ "id": id, "properties": {
            "networkProfile": { "networkInterfaces": [
                { "id": "/nic-1", "properties": { "deleteOption": "Delete" } },
                { "id": "/nic-2", "properties": { "deleteOption": "Detach" } },
            ] },
            "storageProfile": {
                "osDisk": { "name": "v-osdisk", "deleteOption": "Delete" },
                "dataDisks": [
                    { "name": "d1", "deleteOption": "delete", "managedDisk": { "id": "/d1" } },
                    { "name": "d2", "deleteOption": "Detach" }, { "name": "d3" },
                ],
            },
        } });
        let found = companions(&vm);
        let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
        let own = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/v-osdisk";
        assert_eq!(ids, ["/nic-1", own, "/d1"]);
        assert_eq!(found.iter().filter(|one| one.is_own_disk).count(), 1);
        let bare = json!({ "managedBy": id });
        assert_eq!(may_be_deleted_with(&vm, &found[1], &bare, &WE), Ownership::Ours);
        for foreign in [
            json!({}),
            json!({ "managedBy": "/another" }),
            json!({ "managedBy": id, "tags": { "bringup-cluster": "other" } }),
        ] {
            assert_ne!(
                may_be_deleted_with(&vm, &found[1], &foreign, &WE),
                Ownership::Ours,
                "{foreign}"
            );
        }
        assert_ne!(may_be_deleted_with(&vm, &found[2], &bare, &WE), Ownership::Ours, "a data disk");
    }
}
