//! The kubelet and the control plane that kubeadm starts.

use bringup_contract::Cause;

use super::{Refined, Signature};

/// What must be found.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "kubelet.cgroup",
        lines: &[
            "[   64.118823] kubelet[2044]: E0302 14:31:34.118 run.go:74] \"command failed\" err=\"failed to run Kubelet: misconfiguration: kubelet cgroup driver: \\\"systemd\\\" is different from docker cgroup driver: \\\"cgroupfs\\\"\"",
        ],
        cause: Cause::KubeletConfigInvalid,
        proof: "is different from docker cgroup driver",
        near_miss: "[   64.118823] kubelet[2044]: I0302 14:31:34.118 server.go:1] \"Using cgroup driver setting received from the CRI runtime\" cgroupDriver=\"systemd\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubelet.swap",
        lines: &[
            "[   64.118823] kubelet[2044]: E0302 14:31:34.118 run.go:74] \"command failed\" err=\"failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false\"",
        ],
        cause: Cause::KubeletConfigInvalid,
        proof: "running with swap on is not supported",
        near_miss: "[   20.118823] cloud-init[1045]: \t[WARNING Swap]: swap is supported for cgroup v2 only",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubelet.unknown_flag",
        lines: &[
            "[   64.118823] kubelet[2044]: E0302 14:31:34.118 run.go:74] \"command failed\" err=\"failed to parse kubelet flag: unknown flag: --max-podz\"",
        ],
        cause: Cause::KubeletConfigInvalid,
        proof: "unknown flag: --max-podz",
        near_miss: "[   64.118823] kubelet[2044]: Flag --register-with-taints has been deprecated, use the config file's registerWithTaints",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubelet.tls_bootstrap",
        lines: &[
            "[  310.004118] cloud-init[1045]: [2026-03-02 14:35:40] error: error execution phase kubelet-wait-bootstrap: failed while waiting for TLS bootstrap: context deadline exceeded",
            "[  310.004120] cloud-init[1045]: [2026-03-02 14:35:40] To see the stack trace of this error execute with --v=5 or higher",
        ],
        cause: Cause::TlsBootstrapPending,
        proof: "failed while waiting for TLS bootstrap",
        near_miss: "[   69.004118] cloud-init[1045]: [kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubelet.unhealthy",
        lines: &[
            "[  301.551003] cloud-init[1045]: [2026-03-02 14:35:31] [kubelet-check] The kubelet is not healthy after 4m0.000471s",
        ],
        cause: Cause::KubeletFailure,
        proof: "The kubelet is not healthy after",
        near_miss: "[   63.551003] cloud-init[1045]: [2026-03-02 14:31:33] [kubelet-check] The kubelet is healthy after 1.001s",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.cp.unhealthy",
        lines: &[
            "[  302.551003] cloud-init[1045]: [control-plane-check] kube-scheduler is not healthy after 4m0.000812s",
        ],
        cause: Cause::ControlPlaneNotReady,
        proof: "kube-scheduler is not healthy after",
        near_miss: "[   66.551003] cloud-init[1045]: [control-plane-check] kube-scheduler is healthy after 5.2s",
        instead: Cause::Unknown,
    },
    Signature {
        id: "etcd.learner",
        lines: &[
            "[  188.004110] cloud-init[1045]: {\"level\":\"warn\",\"ts\":\"2026-03-02T14:33:38Z\",\"error\":\"rpc error: code = FailedPrecondition desc = etcdserver: can only promote a learner member which is in sync with leader\"}",
        ],
        cause: Cause::ControlPlaneNotReady,
        proof: "can only promote a learner member",
        near_miss: "[  188.004110] cloud-init[1045]: [etcd] Promoted the learner member 8e9e05c52164694d to a voting member",
        instead: Cause::Unknown,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "kubelet.unknown_flag, one that was removed",
        lines: &[
            "[   64.118823] kubelet[2044]: Error: failed to parse kubelet flag: unknown flag: --pod-infra-container-image",
        ],
        cause: Cause::ImageContractDrift,
    },
    Refined {
        id: "kubelet.unhealthy, in words",
        lines: &[
            "[  301.551003] cloud-init[1045]: [kubelet-check] It seems like the kubelet isn't running or healthy.",
        ],
        cause: Cause::KubeletFailure,
    },
    Refined {
        id: "kubelet.unhealthy, its health is asked for",
        lines: &[
            "[  301.551003] cloud-init[1045]: [kubelet-check] The HTTP call equal to 'curl -sSL http://localhost:10248/healthz' failed with error: Get \"http://localhost:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused.",
        ],
        cause: Cause::KubeletFailure,
    },
    Refined {
        id: "kubelet.unhealthy, its health is bad",
        lines: &[
            "[  301.551003] cloud-init[1045]: [kubelet-check] The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error: HTTP 500",
        ],
        cause: Cause::KubeletFailure,
    },
    Refined {
        id: "kubeadm.cp.unhealthy, the API server",
        lines: &[
            "[  302.551003] cloud-init[1045]: [control-plane-check] kube-apiserver is not healthy after 4m0.000812s",
        ],
        cause: Cause::ControlPlaneNotReady,
    },
];
