//! systemd's results of units, and the kernel's refusals of modules.

use crate::fault::Fault::{KernelPart, UnitFailed};
use crate::fault::{Fault, Idiom};

const fn of(fault: Fault, all: &'static [&'static str]) -> Idiom {
    Idiom::new(fault, all)
}

pub(super) static IDIOMS: &[Idiom] = &[
    of(UnitFailed, &[".service: failed with result"]),
    of(UnitFailed, &[".service: main process exited, code=exited, status="])
        .unless(&["status=0/success"]),
    of(UnitFailed, &[".service: control process exited"]),
    of(UnitFailed, &[".service: start request repeated too quickly"]),
    of(UnitFailed, &["job for ", ".service failed"]),
    of(UnitFailed, &["unit ", "entered failed state"]),
    of(UnitFailed, &[".service: unit entered failed state"]),
    of(UnitFailed, &[".service' failed"]),
    of(UnitFailed, &[".service is in a failed state"]),
    of(KernelPart, &["modprobe: fatal: module"]),
    of(KernelPart, &["modprobe: error: could not insert"])
        .unless(&["key was rejected", "required key"]),
    of(KernelPart, &["failed to load module"]),
    of(KernelPart, &["failed to find module", "overlay"]),
    of(KernelPart, &["failed to find module", "br_netfilter"]),
    of(KernelPart, &["failed to find module", "nf_conntrack"]),
    of(KernelPart, &["failed to find module", "ip_tables"]),
    of(KernelPart, &["failed to find module", "ip_vs"]),
    of(KernelPart, &["unknown symbol in module"]),
    of(KernelPart, &["disagrees about version of symbol"]),
    of(KernelPart, &["invalid module format"]),
    of(KernelPart, &["sysctl: cannot stat /proc/sys"]),
    of(KernelPart, &["/proc/sys/net/bridge/bridge-nf-call-iptables", "not exist"]),
    of(KernelPart, &["cgroup controller", "not found"]),
    of(KernelPart, &["cgroups v1 is deprecated"]),
    of(KernelPart, &["missing required cgroups"]),
    of(KernelPart, &["mountpoint for", "cgroup", "not found"]),
    of(KernelPart, &["cgroup", "not mounted"]),
];
