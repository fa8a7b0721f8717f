//! The GPU driver could not be installed, loaded or matched.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::GpuDriverFailure,
    title: "the GPU driver could not be installed, loaded or matched",
    looks_like: "`Driver/library version mismatch`, `No CUDA package found for kernel`, `Module nvidia not found`.",
    misleads: "10 and 84 have other causes too: metadata that was not there, containerd that was not ready.",
    remedy: "On the node, run `nvidia-smi`, `uname -r`, `lsmod | grep nvidia` and `dmesg | grep -iE \"nvrm|nvidia\"`. Match driver and kernel with a newer image: `az aks nodepool upgrade -g GROUP --cluster-name CLUSTER -n POOL --node-image-only`. Or install the driver with the NVIDIA GPU operator instead, on a pool that was added with `--gpu-driver none`. `Driver/library version mismatch` after an update only needs a reboot.",
    signs: &[
        Sign::new(97, &["driver/library version mismatch"]),
        Sign::new(97, &["couldn't communicate with the nvidia driver"]),
        Sign::new(97, &["no cuda package found"]),
        Sign::new(97, &["no nvidia-vgpu-guest-driver package"]),
        Sign::new(97, &["modprobe: fatal: module nvidia"]),
        Sign::new(97, &["gpu driver installation failed"]),
        Sign::new(97, &["error installing nvidia"]),
        Sign::new(98, &["nvidia", "failed"]).unless(&["nvidia-smi is"]).fair(),
        Sign::new(98, &["failed to initialize nvml"]),
        Sign::new(98, &["nvidia", "could not be started"]),
        Sign::new(98, &["dcgm", "conflicts"]).fair(),
        Sign::new(98, &["nvidia-installer", "error"]),
        Sign::new(98, &["amdgpu", "failed"]).fair(),
        Sign::new(98, &["nouveau", "unload"]).fair(),
        Sign::new(98, &["gpu_driver_installation_failed"]).fair(),
        Sign::new(98, &["nvidia", "could not be"]),
        Sign::new(98, &["nvidia-smi has failed"]),
        Sign::new(98, &["version magic"]).fair(),
        Sign::new(98, &["unable to load the nvidia"]),
        Sign::new(98, &["nvidia driver", "not"]).fair(),
        Sign::new(98, &["could not insert 'nvidia"]),
        Sign::new(98, &["gpu driver", "fail"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Failed to initialize NVML: Driver/library version mismatch",
    leaves: "nvidia-smi: 8 GPUs found",
}
