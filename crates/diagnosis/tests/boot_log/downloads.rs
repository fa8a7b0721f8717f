//! Downloads, packages and programs.

use bringup_contract::Cause;

use super::{Refined, Signature};

/// What must be found.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "curl.connect",
        lines: &[
            "[  180.000001] cloud-init[1045]: curl: (28) Failed to connect to downloads.contoso.example port 443 after 130000 ms: Connection timed out",
        ],
        cause: Cause::EgressBlocked,
        proof: "curl: (28) Failed to connect to downloads.contoso.example",
        near_miss: "[   50.000001] cloud-init[1045]: + curl --connect-timeout 28 -fsSLO https://downloads.contoso.example/kubeadm",
        instead: Cause::Unknown,
    },
    Signature {
        id: "curl.dns",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (6) Could not resolve host: downloads.contoso.example",
        ],
        cause: Cause::DnsFailure,
        proof: "curl: (6) Could not resolve host: downloads.contoso.example",
        near_miss: "[   50.000001] cloud-init[1045]: * Host downloads.contoso.example:443 was resolved.",
        instead: Cause::Unknown,
    },
    Signature {
        id: "curl.http",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 404",
        ],
        cause: Cause::ArtifactMissing,
        proof: "curl: (22) The requested URL returned error: 404",
        near_miss: "[   50.000001] cloud-init[1045]: 100 40404  100 40404    0     0  22404      0  0:00:01  0:00:01 --:--:-- 22404",
        instead: Cause::Unknown,
    },
    Signature {
        id: "apt.lock",
        lines: &[
            "[   33.000001] cloud-init[1045]: E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
        ],
        cause: Cause::PackageManagerLocked,
        proof: "Could not get lock /var/lib/dpkg/lock-frontend",
        near_miss: "[   33.000001] cloud-init[1045]: Reading package lists... Building dependency tree...",
        instead: Cause::Unknown,
    },
    Signature {
        id: "cmd.not_found",
        lines: &[
            "[   50.000001] cloud-init[1045]: /var/lib/cloud/instance/scripts/runcmd: 12: kubeadm: not found",
        ],
        cause: Cause::BinaryMissing,
        proof: "runcmd: 12: kubeadm: not found",
        near_miss: "[   50.000001] cloud-init[1045]: runcmd.sh: looking for kubeadm: found in /usr/bin",
        instead: Cause::Unknown,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "curl.connect, refused",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (7) Failed to connect to downloads.contoso.example port 443 after 12 ms: Couldn't connect to server",
        ],
        cause: Cause::EgressBlocked,
    },
    Refined {
        id: "curl.connect, a broken handshake",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (35) OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to downloads.contoso.example:443",
        ],
        cause: Cause::TlsTrustFailure,
    },
    Refined {
        id: "curl.connect, a reset",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (56) OpenSSL SSL_read: Connection reset by peer, errno 104",
        ],
        cause: Cause::DownloadInterrupted,
    },
    Refined {
        id: "curl.connect, another end of the transfer",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (56) Malformed encoding found in chunked-encoding",
        ],
        cause: Cause::DownloadInterrupted,
    },
    Refined {
        id: "curl.connect, a proxy",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (56) Received HTTP code 407 from proxy after CONNECT",
        ],
        cause: Cause::ProxyMisconfigured,
    },
    Refined {
        id: "curl.connect, a tunnel",
        lines: &["[   50.000001] cloud-init[1045]: curl: (56) CONNECT tunnel failed, response 503"],
        cause: Cause::ProxyMisconfigured,
    },
    Refined {
        id: "curl.connect, the API server",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (28) Failed to connect to cp.contoso.example port 6443 after 130000 ms: Connection timed out",
        ],
        cause: Cause::ApiServerUnreachable,
    },
    Refined {
        id: "curl.dns, the API server",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (6) Could not resolve host: web-d1f2.hcp.westeurope.azmk8s.io",
        ],
        cause: Cause::ApiServerDnsFailure,
    },
    Refined {
        id: "curl.http, forbidden",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 403",
        ],
        cause: Cause::EgressBlocked,
    },
    Refined {
        id: "curl.http, unauthorized",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 401",
        ],
        cause: Cause::RegistryUnauthorized,
    },
    Refined {
        id: "curl.http, a proxy",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 407",
        ],
        cause: Cause::ProxyMisconfigured,
    },
    Refined {
        id: "curl.http, too many",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 429",
        ],
        cause: Cause::DownloadInterrupted,
    },
    Refined {
        id: "curl.http, a server that is down",
        lines: &[
            "[   50.000001] cloud-init[1045]: curl: (22) The requested URL returned error: 503",
        ],
        cause: Cause::DownloadInterrupted,
    },
    Refined {
        id: "apt.lock, of the lists",
        lines: &[
            "[   33.000001] cloud-init[1045]: E: Could not get lock /var/lib/apt/lists/lock - open (11: Resource temporarily unavailable)",
        ],
        cause: Cause::PackageManagerLocked,
    },
    Refined {
        id: "cmd.not_found, in bash",
        lines: &["[   50.000001] cloud-init[1045]: /bin/bash: line 1: oras: command not found"],
        cause: Cause::BinaryMissing,
    },
    Refined {
        id: "cmd.not_found, in a script",
        lines: &["[   50.000001] cloud-init[1045]: /opt/setup/install.sh: 40: crictl: not found"],
        cause: Cause::BinaryMissing,
    },
];
