//! What kubeadm checks before it starts.

use bringup_contract::Cause;

use super::{Refined, Signature};

/// What must be found. `kubeadm.preflight.port` and `.rejoin` mean an image that was not made
/// clean only in a machine's first boot; here is a second one.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "kubeadm.preflight.cri_unimplemented",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR CRI]: could not connect to the container runtime: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService",
        ],
        cause: Cause::ContainerRuntimeFailure,
        proof: "unknown service runtime.v1.RuntimeService",
        near_miss: "[   61.118203] containerd[890]: time=\"2026-03-02T14:31:31Z\" level=info msg=\"Registered service runtime.v1.RuntimeService\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.cri_down",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR CRI]: container runtime is not running: output: dial unix /run/containerd/containerd.sock: connect: no such file or directory",
        ],
        cause: Cause::ContainerRuntimeFailure,
        proof: "[ERROR CRI]: container runtime is not running",
        near_miss: "[   61.118203] cloud-init[1045]: \t[WARNING CRI]: the container runtime answers slowly",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.kubelet_newer",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR KubeletVersion]: the kubelet version is higher than the control plane version. This is not a supported version skew and may lead to a malfunctional cluster. Kubelet version: \"1.35.1\" Control plane version: \"1.34.4\"",
        ],
        cause: Cause::VersionSkew,
        proof: "the kubelet version is higher than the control plane version",
        near_miss: "[   61.118203] cloud-init[1045]: Kubelet version: \"1.34.4\" Control plane version: \"1.34.4\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.kubelet_older",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR KubeletVersion]: Kubelet version \"1.30.9\" is lower than kubeadm can support. Please upgrade kubelet",
        ],
        cause: Cause::VersionSkew,
        proof: "is lower than kubeadm can support",
        near_miss: "[   61.118203] cloud-init[1045]: I0302 14:31:31 checks.go:1] kubelet version 1.34.4 is what kubeadm supports",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.kernel",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: /proc/sys/net/ipv4/ip_forward contents are not set to 1",
        ],
        cause: Cause::KernelMismatch,
        proof: "[ERROR FileContent--proc-sys-net-ipv4-ip_forward]",
        near_miss: "[   20.118203] cloud-init[1045]: net.ipv4.ip_forward = 1",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.missing_binary",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR FileExisting-conntrack]: conntrack not found in system path",
        ],
        cause: Cause::BinaryMissing,
        proof: "[ERROR FileExisting-conntrack]",
        near_miss: "[   61.118203] cloud-init[1045]: \t[WARNING FileExisting-tc]: tc is old, see its manual",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.port",
        lines: &["[   61.118203] cloud-init[1045]: \t[ERROR Port-10250]: Port 10250 is in use"],
        cause: Cause::RebootInterrupted,
        proof: "[ERROR Port-10250]: Port 10250 is in use",
        near_miss: "[   61.118203] kubelet[2044]: I0302 14:31:31 server.go:1] \"Starting to listen\" address=\"0.0.0.0\" port=10250",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.rejoin",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists",
        ],
        cause: Cause::RebootInterrupted,
        proof: "/etc/kubernetes/kubelet.conf already exists",
        near_miss: "[   20.118203] cloud-init[1045]: mkdir: /etc/kubernetes/manifests already exists, left alone",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.imagepull",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/pause:3.10: dial tcp 192.0.2.10:443: i/o timeout",
        ],
        cause: Cause::RegistryUnreachable,
        proof: "[ERROR ImagePull]: failed to pull image",
        near_miss: "[   61.118203] cloud-init[1045]: [config/images] Pulled registry.contoso.example/pause:3.10",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.resources",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
        ],
        cause: Cause::VmTooSmall,
        proof: "[ERROR NumCPU]",
        near_miss: "[    0.118203] smp: Brought up 1 node, 1 CPU",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.preflight.any",
        lines: &[
            "[   61.118203] cloud-init[1045]: error execution phase preflight: [preflight] Some fatal errors occurred:",
            "[   61.118204] cloud-init[1045]: \t[ERROR IsPrivilegedUser]: user is not running as root",
        ],
        cause: Cause::Unknown,
        proof: "[ERROR IsPrivilegedUser]: user is not running as root",
        near_miss: "[   61.118203] cloud-init[1045]: \t[ERROR Mem]: the system RAM (1024 MB) is less than the minimum 1700 MB",
        instead: Cause::VmTooSmall,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "kubeadm.preflight.cri_unimplemented, the older service",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR CRI]: container runtime is not running: rpc error: code = Unimplemented desc = unknown service runtime.v1alpha2.RuntimeService",
        ],
        cause: Cause::ContainerRuntimeFailure,
    },
    Refined {
        id: "kubeadm.preflight.kernel, cgroups",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR SystemVerification]: missing required cgroups: memory",
        ],
        cause: Cause::KernelMismatch,
    },
    Refined {
        id: "kubeadm.preflight.port, of a control plane",
        lines: &["[   61.118203] cloud-init[1045]: \t[ERROR Port-6443]: Port 6443 is in use"],
        cause: Cause::RebootInterrupted,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, no such image",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: registry.contoso.example/etcd:3.9.9: not found",
        ],
        cause: Cause::ArtifactMissing,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, no such manifest",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: manifest unknown",
        ],
        cause: Cause::ArtifactMissing,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, who are you",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: unexpected status: 401 Unauthorized",
        ],
        cause: Cause::RegistryUnauthorized,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, not for you",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: unexpected status: 403 Forbidden",
        ],
        cause: Cause::RegistryUnauthorized,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, denied",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: access denied for this repository",
        ],
        cause: Cause::RegistryUnauthorized,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, no such name",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: dial tcp: lookup registry.contoso.example: no such host",
        ],
        cause: Cause::DnsFailure,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, refused",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: dial tcp 192.0.2.10:443: connect: connection refused",
        ],
        cause: Cause::RegistryUnreachable,
    },
    Refined {
        id: "kubeadm.preflight.imagepull, of unknown kind",
        lines: &[
            "[   61.118203] cloud-init[1045]: \t[ERROR ImagePull]: failed to pull image registry.contoso.example/etcd:3.9.9: output: code = Unavailable",
        ],
        cause: Cause::RegistryUnreachable,
    },
];
