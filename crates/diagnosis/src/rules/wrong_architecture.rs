//! Made for another processor architecture or VM generation.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::WrongArchitecture,
    title: "made for another processor architecture or VM generation",
    looks_like: "`exec format error`, `cannot execute binary file`, `no match for platform in manifest`, a hypervisor generation that the size does not support.",
    misleads: "A service that does not start reports its own code, such as 34 for kubelet.",
    remedy: "Use an image, program or size of the same architecture and generation: `az vm list-skus -l REGION --size SIZE --query \"[].capabilities[?name=='CpuArchitectureType' || name=='HyperVGenerations']\"` shows what the size supports, `az sig image-definition show` what the image is made for. On the node: `uname -m`, `file PROGRAM`.",
    signs: &[
        Sign::new(29, &["elf: not found"]).fair(),
        Sign::new(29, &["syntax error: word unexpected"]),
        Sign::new(29, &["exec format error"]),
        Sign::new(29, &["cannot execute binary file"]),
        Sign::new(29, &["status=203/exec", "format"]),
        Sign::new(29, &["no match for platform in manifest"]),
        Sign::new(29, &["no matching manifest for"]),
        Sign::new(29, &["does not match the specified platform"]).fair(),
        Sign::new(29, &["does not match the detected host platform"]),
        Sign::new(29, &["does not match system", "architecture"]),
        Sign::new(29, &["wrong architecture"]),
        Sign::new(29, &["elf class"]).fair(),
        Sign::new(29, &["is not a valid win32 application"]),
        Sign::new(29, &["not a valid application for this os platform"])
            .unless(&["plugin", "handler"]),
        Sign::new(29, &["not compatible with the version of windows"]),
        Sign::new(22, &["cannot boot hypervisor generation"]),
        Sign::new(22, &["hypervisor generation", "does not"]),
        Sign::new(22, &["extensionnotfoundforcpuarchitecture"]),
        Sign::new(22, &["cpu architecture", "not"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "/usr/local/bin/kubelet: cannot execute binary file: Exec format error",
    leaves: "kubelet: command not found",
}
