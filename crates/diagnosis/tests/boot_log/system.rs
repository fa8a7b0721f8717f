//! The kernel, the disk, systemd and cloud-init.

use bringup_contract::Cause;

use super::{Refined, Signature};

/// What must be found.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "kernel.panic",
        lines: &[
            "[    3.218844] VFS: Cannot open root device \"PARTUUID=4f1a\" or unknown-block(0,0): error -6",
            "[    3.219001] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(8,1)",
        ],
        cause: Cause::OsProvisioningFailure,
        proof: "Kernel panic - not syncing",
        near_miss: "[    3.219001] Kernel panic timeout set to 10 seconds, kdump armed",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kernel.oom",
        lines: &[
            "[  212.440118] Out of memory: Killed process 1804 (kubeadm) total-vm:1288340kB, anon-rss:402118kB",
        ],
        cause: Cause::OutOfMemory,
        proof: "Out of memory: Killed process 1804 (kubeadm)",
        near_miss: "[  212.440118] systemd-oomd[540]: Watching for memory pressure on /system.slice",
        instead: Cause::Unknown,
    },
    Signature {
        id: "systemd.emergency",
        lines: &[
            "[\u{1b}[0;1;31m TIME \u{1b}[0m] Timed out waiting for device dev-disk-azure-scsi1-lun0.device.",
            "[\u{1b}[0;1;33mDEPEND\u{1b}[0m] Dependency failed for /var/lib/etcddisk.",
            "You are in emergency mode. After logging in, type \"journalctl -xb\" to view system logs.",
        ],
        cause: Cause::DiskUnsupported,
        proof: "Dependency failed for /var/lib/etcddisk",
        near_miss: "[\u{1b}[0;1;33mDEPEND\u{1b}[0m] Dependency failed for snapd.seeded.service - Wait for snaps.",
        instead: Cause::Unknown,
    },
    Signature {
        id: "disk.full",
        lines: &[
            "[   58.220145] cloud-init[1045]: tar: opt/cni/bin/bridge: Cannot write: No space left on device",
        ],
        cause: Cause::DiskFull,
        proof: "No space left on device",
        near_miss: "[   58.220145] cloud-init[1045]: /dev/sda1        30G   28G  2.0G  94% /",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cloudinit.azure.report",
        lines: &[
            "[   41.000912] cloud-init[611]: 2026-03-02 14:31:12,004 - azure.py[ERROR]: result=error|reason=failure to obtain DHCP lease|agent=Cloud-Init/25.1|vm_id=5b1f",
        ],
        cause: Cause::OsProvisioningFailure,
        proof: "result=error|reason=failure to obtain DHCP lease",
        near_miss: "[   41.000912] cloud-init[611]: 2026-03-02 14:31:12,004 - azure.py[DEBUG]: result=success|agent=Cloud-Init/25.1|vm_id=5b1f",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cloudinit.fallback_ds",
        lines: &[
            "[   19.120446] cloud-init[1045]: 2026-03-02 14:30:51,119 - cc_final_message.py[WARNING]: Used fallback datasource",
        ],
        cause: Cause::OsProvisioningFailure,
        proof: "Used fallback datasource",
        near_miss: "[   19.120446] cloud-init[611]: 2026-03-02 14:30:51,119 - __init__.py[DEBUG]: Searching for a fallback datasource is off",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cloudinit.yaml",
        lines: &[
            "[    7.904210] cloud-init[704]: 2026-03-02 14:30:39,774 - util.py[WARNING]: Failed loading yaml blob. Invalid format at line 14 column 3",
        ],
        cause: Cause::UserDataInvalid,
        proof: "Failed loading yaml blob",
        near_miss: "[    7.904210] cloud-init[704]: 2026-03-02 14:30:39,774 - util.py[DEBUG]: loaded yaml blob of 812 bytes",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cloudinit.scripts_user",
        lines: &[
            "[   71.904001] cloud-init[1045]: 2026-03-02 14:31:42,301 - cc_scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in /var/lib/cloud/instance/scripts)",
        ],
        cause: Cause::UserDataInvalid,
        proof: "Failed to run module scripts_user",
        near_miss: "[   71.904001] cloud-init[1045]: 2026-03-02 14:31:42,301 - modules.py[DEBUG]: Running module scripts_user (<module 'cloudinit.config.cc_scripts_user'>) with frequency once-per-instance",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cloudinit.module",
        lines: &[
            "[   16.330018] cloud-init[1045]: 2026-03-02 14:30:47,551 - log_util.py[WARNING]: Running module disk_setup (<module 'cloudinit.config.cc_disk_setup'>) failed",
        ],
        cause: Cause::UserDataInvalid,
        proof: "Running module disk_setup",
        near_miss: "[   16.330018] cloud-init[1045]: 2026-03-02 14:30:47,551 - modules.py[INFO]: Skipping modules 'ntp' because no applicable config is provided",
        instead: Cause::Unknown,
    },
    Signature {
        id: "sentinel.write",
        lines: &[
            "[   70.190034] cloud-init[1045]: /var/lib/cloud/instance/scripts/runcmd: 14: cannot create /run/cluster-api/bootstrap-success.complete: Directory nonexistent",
        ],
        cause: Cause::PermissionDenied,
        proof: "bootstrap-success.complete: Directory nonexistent",
        near_miss: "[   70.190034] cloud-init[1045]: + echo success > /run/cluster-api/bootstrap-success.complete",
        instead: Cause::Unknown,
    },
    Signature {
        id: "systemd.unit",
        lines: &[
            "[\u{1b}[0;1;31mFAILED\u{1b}[0m] Failed to start \u{1b}[0;1;39mwalinuxagent.service\u{1b}[0m - Azure Linux Agent.",
        ],
        cause: Cause::Unknown,
        proof: "Failed to start walinuxagent.service",
        near_miss: "[\u{1b}[0;1;31mFAILED\u{1b}[0m] Failed to start containerd.service - containerd container runtime.",
        instead: Cause::ContainerRuntimeFailure,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "systemd.emergency, no mount is named",
        lines: &["You are in emergency mode. After logging in, type \"journalctl -xb\"."],
        cause: Cause::OsProvisioningFailure,
    },
    Refined {
        id: "systemd.emergency, a unit of a mount",
        lines: &["[DEPEND] Dependency failed for mnt-data.mount - /mnt/data."],
        cause: Cause::DiskUnsupported,
    },
    Refined {
        id: "cloudinit.azure.report, the metadata service",
        lines: &[
            "[   41.000912] cloud-init[611]: 2026-03-02 14:31:12,004 - azure.py[ERROR]: result=error|reason=failure to query IMDS for metadata: connection timeout|agent=Cloud-Init/25.1",
        ],
        cause: Cause::ImdsUnreachable,
    },
    Refined {
        id: "cloudinit.azure.report, the wire server",
        lines: &[
            "[   41.000912] cloud-init[611]: 2026-03-02 14:31:12,004 - azure.py[ERROR]: result=error|reason=failed to fetch goal state from wireserver|agent=Cloud-Init/25.1",
        ],
        cause: Cause::WireServerUnreachable,
    },
    Refined {
        id: "cloudinit.yaml, a part that is no user data",
        lines: &[
            "[    7.904210] cloud-init[704]: 2026-03-02 14:30:39,774 - __init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: 'b'#!cloud'...'",
        ],
        cause: Cause::UserDataInvalid,
    },
    Refined {
        id: "cloudinit.yaml, a part that cannot be merged",
        lines: &[
            "[    7.904210] cloud-init[704]: 2026-03-02 14:30:39,774 - util.py[WARNING]: Failed at merging in cloud config part from part-002",
        ],
        cause: Cause::UserDataInvalid,
    },
    Refined {
        id: "cloudinit.scripts_user, counted",
        lines: &[
            "[   71.904001] cloud-init[1045]: 2026-03-02 14:31:42,301 - subp.py[WARNING]: Runparts: 1 failures (runcmd) in 1 attempted commands",
        ],
        cause: Cause::UserDataInvalid,
    },
    Refined {
        id: "sentinel.write, a read-only file system",
        lines: &[
            "[   70.190034] cloud-init[1045]: runcmd: 14: cannot create /run/cluster-api/bootstrap-success.complete: Read-only file system",
        ],
        cause: Cause::PermissionDenied,
    },
    Refined {
        id: "sentinel.write, no directory",
        lines: &[
            "[   70.190034] cloud-init[1045]: bash: line 14: /run/cluster-api/bootstrap-success.complete: No such file or directory",
        ],
        cause: Cause::PermissionDenied,
    },
    Refined {
        id: "systemd.unit, the kubelet",
        lines: &["[FAILED] Failed to start kubelet.service - kubelet: The Kubernetes Node Agent."],
        cause: Cause::KubeletFailure,
    },
    Refined {
        id: "systemd.unit, the container runtime",
        lines: &["[FAILED] Failed to start docker.service - Docker Application Container Engine."],
        cause: Cause::ContainerRuntimeFailure,
    },
];
