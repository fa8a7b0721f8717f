//! A process was killed for lack of memory.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::OutOfMemory,
    title: "a process was killed for lack of memory",
    looks_like: "`Out of memory: Killed process`, `signal: killed`, exit 137.",
    misleads: "The victim's parent reports a generic failure, often 1 or -1.",
    remedy: "On the node, `dmesg -T | grep -iE \"killed process|out of memory\"` names the victim and `free -m` what is left; if it is lost, `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM` has the same lines. Use a size with more memory; `az vm list-skus -l REGION --size SIZE --query \"[].capabilities[?name=='MemoryGB'].value\"` shows how much it has. Or take less: fewer agents and parallel downloads in the bootstrap, smaller memory requests of DaemonSets and reserved pods.",
    signs: &[
        Sign::new(13, &["out of memory: kill"]),
        Sign::new(13, &["oom-kill:"]),
        Sign::new(13, &["invoked oom-killer"]),
        Sign::new(13, &["memory cgroup out of memory"]),
        Sign::new(14, &["cannot allocate memory"]).fair(),
        Sign::new(15, &["signal: killed"]).fair(),
        Sign::new(14, &["oomkilled"]).fair(),
        Sign::new(16, &["killed", "exit status 137"]).weak(),
        Sign::new(13, &["runtime: out of memory"]),
        Sign::new(13, &["oom_kill_process"]),
        Sign::new(14, &["outofmemoryexception"]),
        Sign::new(14, &["killed process", "total-vm"]),
    ],
    subject: None,
};

examples! {
    finds: "[  212.440118] Out of memory: Killed process 1804 (kubeadm) total-vm:1288340kB",
    leaves: "oom_score_adj set to -999 for kubelet",
}
