//! Joining the cluster: names, certificates, tokens, the API server.

use bringup_contract::Cause;

use super::{Refined, Signature};

/// What must be found.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "kubeadm.discovery.dns",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://downloads.contoso.example/kubelet\": dial tcp: lookup downloads.contoso.example on 127.0.0.53:53: no such host",
        ],
        cause: Cause::DnsFailure,
        proof: "lookup downloads.contoso.example on 127.0.0.53:53: no such host",
        near_miss: "[    9.004118] systemd-resolved[590]: Using system hostname 'web-1', lookup order dns files",
        instead: Cause::Unknown,
    },
    Signature {
        id: "tls.clock",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://cp.contoso.example:6443/\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2020-01-01T00:00:41Z is before 2026-02-27T08:00:00Z",
        ],
        cause: Cause::ClockSkew,
        proof: "x509: certificate has expired or is not yet valid",
        near_miss: "[    5.004118] cloud-init[704]: certificate of cp.contoso.example expires 2027-02-27, current time 2026-03-02",
        instead: Cause::Unknown,
    },
    Signature {
        id: "tls.unknown_ca",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://registry.contoso.example/v2/\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ],
        cause: Cause::TlsTrustFailure,
        proof: "x509: certificate signed by unknown authority",
        near_miss: "[    2.004118] Loaded X.509 cert 'Canonical Ltd. Live Patch Signing: 14df34d1a87cf37625abec039ef2bf521249b969'",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.discovery.ca",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: couldn't validate the identity of the API Server: cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \"sha256:9f00\" are pinned",
        ],
        cause: Cause::ClusterCaMismatch,
        proof: "cluster CA found in cluster-info ConfigMap is invalid",
        near_miss: "[   61.004118] cloud-init[1045]: [discovery] Cluster info signature and contents are valid and TLS certificate validates against pinned roots",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.discovery.token",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"7kq2pw\"",
        ],
        cause: Cause::BootstrapTokenInvalid,
        proof: "could not find a JWS signature in the cluster-info ConfigMap",
        near_miss: "[   61.004118] cloud-init[1045]: [discovery] Created cluster-info discovery client, requesting info with token ID \"7kq2pw\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.node_exists",
        lines: &[
            "[   66.004118] cloud-init[1045]: error execution phase kubelet-start: a Node with name \"web-1\" and status \"Ready\" already exists in the cluster. You must delete the existing Node or change the name of this new joining Node",
        ],
        cause: Cause::NodeIdentityConflict,
        proof: "a Node with name \"web-1\" and status \"Ready\" already exists",
        near_miss: "[   66.004118] cloud-init[1045]: [kubelet-start] A Node with name \"web-1\" will be registered",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.discovery.refused",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: couldn't validate the identity of the API Server: Get \"https://192.0.2.4:6443/api/v1/namespaces/kube-public/configmaps/cluster-info\": dial tcp 192.0.2.4:6443: connect: connection refused",
        ],
        cause: Cause::ApiServerUnreachable,
        proof: "dial tcp 192.0.2.4:6443: connect: connection refused",
        near_miss: "[   61.004118] cloud-init[1045]: dial tcp 127.0.0.1:6443: connect: connection refused",
        instead: Cause::ControlPlaneNotReady,
    },
    Signature {
        id: "kubeadm.discovery.timeout",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: Get \"https://cp.contoso.example:6443/api/v1/\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        ],
        cause: Cause::ApiServerUnreachable,
        proof: "Client.Timeout exceeded while awaiting headers",
        near_miss: "[   61.004118] cloud-init[1045]: Get \"https://downloads.contoso.example/kubeadm\": net/http: TLS handshake timeout",
        instead: Cause::EgressBlocked,
    },
    Signature {
        id: "kubeadm.config.fetch",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map: the server is currently unable to handle the request",
        ],
        cause: Cause::ApiServerUnreachable,
        proof: "unable to fetch the kubeadm-config ConfigMap",
        near_miss: "[   61.004118] cloud-init[1045]: [preflight] Reading configuration from the \"kubeadm-config\" ConfigMap in namespace \"kube-system\"...",
        instead: Cause::Unknown,
    },
    Signature {
        id: "kubeadm.phase",
        lines: &[
            "[   61.004118] cloud-init[1045]: error execution phase control-plane-prepare/download-certs: error downloading certs: secret \"kubeadm-certs\" is gone",
        ],
        cause: Cause::Unknown,
        proof: "error execution phase control-plane-prepare/download-certs",
        near_miss: "[   61.004118] cloud-init[1045]: error execution phase wait-control-plane: a step timed out",
        instead: Cause::ControlPlaneNotReady,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "kubeadm.discovery.dns, the API server",
        lines: &[
            "[   61.004118] cloud-init[1045]: error execution phase preflight: failed to request the cluster-info ConfigMap: Get \"https://cp.contoso.example:6443/\": dial tcp: lookup cp.contoso.example on 127.0.0.53:53: no such host",
        ],
        cause: Cause::ApiServerDnsFailure,
    },
    Refined {
        id: "kubeadm.discovery.dns, the resolver is silent",
        lines: &[
            "[   61.004118] cloud-init[1045]: dial tcp: lookup downloads.contoso.example on 10.0.0.10:53: i/o timeout",
        ],
        cause: Cause::DnsFailure,
    },
    Refined {
        id: "kubeadm.discovery.dns, the resolver is broken",
        lines: &[
            "[   61.004118] cloud-init[1045]: dial tcp: lookup downloads.contoso.example: server misbehaving",
        ],
        cause: Cause::DnsFailure,
    },
    Refined {
        id: "tls.unknown_ca, the API server",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://cp.contoso.example:6443/\": x509: certificate signed by unknown authority (possibly because of \"crypto/rsa: verification error\" while trying to verify candidate authority certificate \"kubernetes\")",
        ],
        cause: Cause::ClusterCaMismatch,
    },
    Refined {
        id: "kubeadm.discovery.token, invalid",
        lines: &[
            "[   61.004118] cloud-init[1045]: error execution phase preflight: token id \"7kq2pw\" is invalid for this cluster or it has expired. Use \"kubeadm token create\" on the control-plane node",
        ],
        cause: Cause::BootstrapTokenInvalid,
    },
    Refined {
        id: "kubeadm.discovery.token, unsigned",
        lines: &[
            "[   61.004118] cloud-init[1045]: error execution phase preflight: there is no JWS signed token in the cluster-info ConfigMap. This token id \"7kq2pw\" is unknown",
        ],
        cause: Cause::BootstrapTokenInvalid,
    },
    Refined {
        id: "kubeadm.discovery.refused, no route",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://192.0.2.4:6443/\": dial tcp 192.0.2.4:6443: connect: no route to host",
        ],
        cause: Cause::ApiServerUnreachable,
    },
    Refined {
        id: "kubeadm.discovery.refused, no network",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://192.0.2.4:6443/\": dial tcp 192.0.2.4:6443: connect: network is unreachable",
        ],
        cause: Cause::ApiServerUnreachable,
    },
    Refined {
        id: "kubeadm.discovery.refused, a download",
        lines: &[
            "[   61.004118] cloud-init[1045]: error: Get \"https://downloads.contoso.example/kubeadm\": dial tcp 192.0.2.90:443: connect: connection refused",
        ],
        cause: Cause::EgressBlocked,
    },
    Refined {
        id: "kubeadm.discovery.timeout, of the connection",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://192.0.2.4:6443/\": dial tcp 192.0.2.4:6443: i/o timeout",
        ],
        cause: Cause::ApiServerUnreachable,
    },
    Refined {
        id: "kubeadm.discovery.timeout, of the handshake",
        lines: &[
            "[   61.004118] cloud-init[1045]: Get \"https://cp.contoso.example:6443/api\": net/http: TLS handshake timeout",
        ],
        cause: Cause::ApiServerUnreachable,
    },
    Refined {
        id: "kubeadm.config.fetch, forbidden",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map: configmaps \"kubeadm-config\" is forbidden: User \"system:bootstrap:7kq2pw\" cannot get resource",
        ],
        cause: Cause::BootstrapTokenInvalid,
    },
    Refined {
        id: "kubeadm.config.fetch, unauthorized",
        lines: &[
            "[   61.004118] cloud-init[1045]: [2026-03-02 14:31:31] error: error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map: Unauthorized",
        ],
        cause: Cause::BootstrapTokenInvalid,
    },
];
