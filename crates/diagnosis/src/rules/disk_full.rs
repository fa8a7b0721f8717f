//! No space is left on the disk.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::DiskFull,
    title: "no space is left on the disk",
    looks_like: "`No space left on device`, `curl: (23)`, a tar or base64 that cannot write.",
    misleads: "The step that could not write reports its own code: a download ends with 31 or 41 (\"timeout\"), a configuration with 6.",
    remedy: "See what fills the disk: `df -h`, `df -i` (inodes) and `du -xhd2 / | sort -h | tail`, from outside `az vm run-command invoke -g NODE_GROUP -n VM --command-id RunShellScript --scripts \"df -h; df -i\"`. Give new nodes a larger OS disk: `az aks nodepool add -g GROUP --cluster-name CLUSTER -n POOL --node-osdisk-size 128`; in Karpenter `osDiskSizeGB` of a new AKSNodeClass (changing one that is in use replaces all its nodes). Or remove what fills it from the image or the bootstrap.",
    signs: &[
        Sign::new(10, &["no space left on device"])
            .unless(&["/dev/shm", "inotify", "watch", "cgroup", "bpf"]),
        Sign::new(10, &["disk quota exceeded"]),
        Sign::new(10, &["not enough free disk space"]),
        Sign::new(10, &["you don't have enough free space"]),
        Sign::new(10, &["insufficient disk space"]),
        Sign::new(10, &["no inodes left"]),
        Sign::new(11, &["curl: (23)"]),
        Sign::new(11, &["failure writing output to destination"]),
        Sign::new(11, &["failed writing body"]).fair(),
        Sign::new(11, &["tar: ", "cannot write"]),
        Sign::new(11, &["base64: write error"]),
        Sign::new(11, &["write error: no space"]),
        Sign::new(12, &["diskpressure", "true"]).fair(),
        Sign::new(11, &["enospc"]),
        Sign::new(12, &["there is not enough space"]),
        Sign::new(11, &["wrote only", "bytes"]),
        Sign::new(12, &["100% /"]).fair(),
        Sign::new(12, &["unexpected end of json input"]).near(&["provision.json"]).fair(),
        Sign::new(10, &["disk is full"]),
        Sign::new(12, &["system.io.ioexception", "space"]),
    ],
    subject: None,
};

examples! {
    finds: "tar: kubernetes/node/bin/kubelet: Cannot write: No space left on device",
    leaves: "df: 41 GB of 128 GB left on /dev/sda1",
}
