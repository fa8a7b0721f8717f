//! The disk choice does not fit the VM size.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::DiskUnsupported,
    title: "the disk choice does not fit the VM size",
    looks_like: "`OS disk of Ephemeral VM with size greater than .. is not allowed`, a data disk that does not mount.",
    misleads: "The cleanup that follows (NicReservedForAnotherVm) hides it.",
    remedy: "See what the size can do: `az vm list-skus -l REGION --size SIZE --query \"[].capabilities\" -o json`; look at `EphemeralOSDiskSupported`, `CachedDiskBytes`, `MaxResourceVolumeMB`, `PremiumIO`. Choose an OS disk that fits the cache or temporary disk (`--node-osdisk-size`), a managed one (`--node-osdisk-type Managed`), or a size with more of it. For a data disk that does not mount, look on the node at `lsblk -f` and /etc/fstab: mount by UUID, with `nofail`.",
    signs: &[
        Sign::new(24, &["os disk of ephemeral vm"]),
        Sign::new(24, &["ephemeral", "not supported"]),
        Sign::new(24, &["ephemeral os disk"]),
        Sign::new(24, &["ephemeral disk"]).fair(),
        Sign::new(24, &["vmcannotfitephemeralosdisk"]),
        Sign::new(24, &["encryptionathost", "not"]).fair(),
        Sign::new(24, &["ultrassd", "not"]).fair(),
        Sign::new(24, &["disk size", "not supported"]).fair(),
        Sign::new(25, &["dependency failed for", ".mount"]).fair(),
        Sign::new(25, &["dependency failed for /"]).fair(),
        Sign::new(25, &["emergency mode"])
            .near(&["dependency failed for", "timed out waiting for device"])
            .fair(),
        Sign::new(25, &["storage account type", "not supported"]),
        Sign::new(24, &["disk type", "is not supported"]).fair(),
        Sign::new(24, &["premium", "storage", "not supported"]),
        Sign::new(24, &["disk", "resizing"]).fair(),
        Sign::new(25, &["mkfs", "failed"]).fair(),
        Sign::new(25, &["wrong fs type, bad option, bad superblock"]),
        Sign::new(24, &["osdisk.disksizegb"]).fair(),
        Sign::new(24, &["cachesizetoosmall"]),
        Sign::new(24, &["ephemeral os"]),
        Sign::new(24, &["exceeds the cache"]).fair(),
        Sign::new(24, &["os disk size", "cache"]).fair(),
        Sign::new(24, &["does not support premium"]),
        Sign::new(24, &["diffdisk"]).fair(),
        Sign::new(25, &["failed to mount"]).unless(&["configmap", "volume"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "OS disk of Ephemeral VM with size greater than 75 GB is not allowed for VM size Standard_D2s_v4",
    leaves: "EXT4-fs (sda1): mounted filesystem with ordered data mode",
}
