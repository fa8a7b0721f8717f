//! Names and tags of resources in Azure. All of them are derived from the machine, so they are known before
//! the first request, and again after a restart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bringup_objects::flex::machine::ClaimReference;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// The longest name of a VM, so that its Node can have the same name, and its NIC and disk longer ones.
const LONGEST: usize = 54;
/// The number of characters of a longer name that are used.
const KEPT: usize = 43;
/// The number of hexadecimal digits in the suffix of a machine's resources.
const SUFFIX: usize = 8;
/// The longest value of a tag in Azure.
const LONGEST_VALUE: usize = 256;

/// Marks a resource as bringup's.
pub const MANAGED_BY: (&str, &str) = ("bringup-managed-by", "bringup");
/// The cluster that the resource belongs to.
pub const CLUSTER: &str = "bringup-cluster";
/// The machine that the resource was created for.
pub const MACHINE: &str = "bringup-machine";
/// The uid of that machine. A later machine of the same name has another uid.
pub const MACHINE_UID: &str = "bringup-machine-uid";
/// The claim of that machine.
pub const CLAIM: &str = "bringup-nodeclaim";
/// The claim's uid.
pub const CLAIM_UID: &str = "bringup-nodeclaim-uid";
/// The claim's pool.
pub const POOL: &str = "bringup-nodepool";
/// The number of the attempt that created the resource.
pub const ATTEMPT: &str = "bringup-attempt";

/// The suffix of the names of a machine's VM, NIC and disk, which makes them differ from those of every other
/// machine, also of another cluster that shares the resource group. The cluster's uid is that of its
/// namespace kube-system.
pub fn suffix(cluster_uid: &str, machine_uid: &str) -> String {
    digits(&format!("{cluster_uid}{machine_uid}"), SUFFIX)
}

/// The name of the VM of a machine.
pub fn vm(name: &str, suffix: &str) -> String {
    let most = LONGEST - SUFFIX - 1;
    let stem = if is_legal(name) && name.len() <= most { name.to_owned() } else { plain(name) };
    format!("{stem}-{suffix}")
}

/// The name of a pool's machine and class. The pool's ID may have any form.
pub fn pool(id: &str) -> String {
    let lower = id.to_ascii_lowercase();
    // Kubernetes allows no upper case, so IDs that differ only in case get different suffixes.
    if lower == id && is_legal(id) { lower } else { shortened(&lower, id) }
}

fn is_legal(name: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    name.len() <= LONGEST
        && edge(name.chars().next())
        && edge(name.chars().last())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
        // Azure refuses names that consist of digits only.
        && name.chars().any(|letter| !letter.is_ascii_digit())
}

fn shortened(name: &str, uid: &str) -> String {
    format!("{}-{}", plain(name), digits(uid, 10))
}

/// The beginning of a name, reduced to characters that Azure accepts.
fn plain(name: &str) -> String {
    let stem: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .skip_while(|letter| *letter == '-')
        .take(KEPT)
        .collect();
    let stem = if stem.is_empty() { "vm" } else { stem.trim_end_matches('-') };
    stem.to_owned()
}

/// The name of a VM's NIC.
pub fn nic(vm: &str) -> String {
    format!("{vm}-nic")
}

/// The name of a VM's OS disk.
pub fn disk(vm: &str) -> String {
    format!("{vm}-osdisk")
}

/// The first hexadecimal digits of a hash.
fn digits(text: &str, count: usize) -> String {
    let digest = Sha256::digest(text);
    let all = digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    all[..count].to_owned()
}

/// When the creation of the resource was decided: Azure does not report the creation time of a NIC.
pub const CREATED: &str = "bringup-created-at";

/// The owner of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// The machine.
    pub machine: &'a str,
    /// The machine's uid; none if the machine was planned before this tag existed.
    pub machine_uid: Option<&'a str>,
    /// The claim, if the machine is for one.
    pub claim: Option<&'a ClaimReference>,
    /// The claim's pool.
    pub pool: Option<&'a str>,
    /// The number of the attempt.
    pub attempt: u32,
    /// When the creation of the resource was decided.
    pub created: Option<Timestamp>,
}

/// The tags of a machine's resources. Other tags cannot override ours.
pub fn tags(owner: Owner<'_>, others: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags = others.clone();
    tags.retain(|name, _| !name.to_ascii_lowercase().starts_with("bringup-"));
    let mut ours = |name: &str, value: &str| {
        tags.insert(name.to_owned(), value.chars().take(LONGEST_VALUE).collect());
    };
    ours(MANAGED_BY.0, MANAGED_BY.1);
    ours(CLUSTER, owner.cluster);
    ours(MACHINE, owner.machine);
    if let Some(uid) = owner.machine_uid {
        ours(MACHINE_UID, uid);
    }
    ours(ATTEMPT, &owner.attempt.to_string());
    if let Some(created) = owner.created {
        ours(CREATED, &created.to_string());
    }
    if let Some(claim) = owner.claim {
        ours(CLAIM, &claim.name);
        ours(CLAIM_UID, &claim.uid);
    }
    if let Some(pool) = owner.pool {
        ours(POOL, pool);
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_machine_carry_eight_digits_of_its_cluster_and_its_uid() {
        assert_eq!(suffix("uid-1", "uid-2"), "3112402a");
        assert_eq!(vm("default-x7k2p", &suffix("uid-1", "uid-2")), "default-x7k2p-3112402a");
        assert_ne!(suffix("uid-1", "uid-2"), suffix("uid-1", "uid-3"), "of another machine");
        assert_ne!(suffix("uid-1", "uid-2"), suffix("uid-4", "uid-2"), "of another cluster");
        assert_eq!(vm(&"a".repeat(45), "01234567"), format!("{}-01234567", "a".repeat(45)));
    }

    #[test]
    fn case_16_a_long_or_illegal_name_is_cut_and_stays_the_same() {
        for name in [&"a".repeat(55), "team.pool-1", "-x", "x-", "1234", "ümlaut", "..."] {
            let made = vm(name, "01234567");
            assert_eq!(made, vm(name, "01234567"));
            assert_ne!(made, vm(name, "76543210"), "{name}");
            assert!(made.len() <= LONGEST && made.is_ascii(), "{made}");
            assert!(made.starts_with(|first: char| first.is_ascii_alphanumeric()), "{made}");
            assert!(!made.contains("--"), "{made}");
        }
    }

    #[test]
    fn an_id_of_any_form_has_a_name_of_its_own() {
        assert_eq!(pool("default-x7k2p"), "default-x7k2p");
        let ids = ["Default-x7k2p", "default.x7k2p", "default_x7k2p", "1234", "a/0", "", "é"];
        let names: std::collections::BTreeSet<String> = ids.iter().map(|id| pool(id)).collect();
        assert_eq!(names.len(), ids.len(), "{names:?}");
        for name in names {
            assert_eq!(name, name.to_ascii_lowercase());
            assert!(vm(&name, "01234567").starts_with(&name[..name.len().min(KEPT)]));
        }
    }

    #[test]
    fn other_tags_do_not_override_ours() {
        let others =
            [("Bringup-cluster".to_owned(), "other".to_owned()), ("a".to_owned(), "b".to_owned())];
        let owner = Owner {
            cluster: "c",
            machine: "m",
            machine_uid: Some("u"),
            claim: None,
            pool: Some("p"),
            attempt: 2,
            created: None,
        };
        let tags = tags(owner, &others.into());
        assert_eq!((tags[CLUSTER].as_str(), tags[MACHINE_UID].as_str()), ("c", "u"));
        assert_eq!(
            (tags["a"].as_str(), tags[ATTEMPT].as_str(), tags[POOL].as_str()),
            ("b", "2", "p")
        );
        assert!(!tags.contains_key("Bringup-cluster"));
    }
}
