//! The GPU itself is bad.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::GpuHardwareFault,
    title: "the GPU itself is bad",
    looks_like: "`infoROM is corrupted`, `Xid`, `has fallen off the bus`.",
    misleads: "84 and 87 blame the driver.",
    remedy: "Prove it on the node: `nvidia-smi -q` fails or lists errors, and `dmesg | grep -i xid` shows a hardware code such as 48, 64, 74, 79 or 95. Replace the VM so that it gets another host: delete the Machine or NodeClaim, or for a single VM `az vm deallocate -g NODE_GROUP -n VM`, then `az vm start -g NODE_GROUP -n VM`. If the fault follows, open a support case with `az vm show -g NODE_GROUP -n VM --query vmId` and the output of `nvidia-bug-report.sh`: Azure has to take the host out of service.",
    signs: &[
        Sign::new(45, &["inforom is corrupted"]),
        Sign::new(45, &["nvrm: xid"]),
        Sign::new(45, &["fallen off the bus"]),
        Sign::new(45, &["unable to determine the device handle for gpu"]),
        Sign::new(46, &["uncorrectable ecc"]),
        Sign::new(46, &["no devices were found"]).near(&["nvidia-smi"]).fair(),
        Sign::new(46, &["gpu is lost"]),
        Sign::new(46, &["rminitadapter failed"]),
        Sign::new(46, &["row remap"]).fair(),
        Sign::new(46, &["gpu has fallen"]),
        Sign::new(46, &["double bit ecc"]),
    ],
    subject: None,
};

examples! {
    finds: "NVRM: Xid (PCI:0001:00:00): 79, GPU has fallen off the bus.",
    leaves: "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
}
