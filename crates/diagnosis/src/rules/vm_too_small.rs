//! The VM size has too few cores or too little memory.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::VmTooSmall,
    title: "the VM size has too few cores or too little memory",
    looks_like: "kubeadm preflight: `[ERROR NumCPU]`, `[ERROR Mem]`.",
    misleads: "It is a preflight error among others.",
    remedy: "Choose a larger VM size: kubeadm wants 2 cores and 1700 MB for a control-plane machine. See what the size has: `az vm list-skus -l REGION --size SIZE --query \"[].capabilities[?name=='vCPUs' || name=='MemoryGB']\" -o json`. In Cluster API, make a new AzureMachineTemplate with a larger `vmSize` and name it in the KubeadmControlPlane; on AKS, add a pool with `--node-vm-size`. `--ignore-preflight-errors=NumCPU,Mem` is for tests only.",
    signs: &[
        Sign::new(28, &["[error numcpu]"]),
        Sign::new(28, &["[error mem]"]),
        Sign::new(28, &["is less than the required", "cpu"]),
        Sign::new(28, &["the system ram", "is less than the minimum"]),
        Sign::new(29, &["the number of available cpus"]),
        Sign::new(29, &["insufficient memory"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
    leaves: "MemTotal: 32886340 kB",
}
