//! Agents that join a machine where kubeadm does not: RKE2 and k3s.

use bringup_contract::Cause;
use bringup_diagnosis::{Confidence, Verdict};

use super::console::{boot, diagnosed, only_boot, open_boot};
use super::{Refined, Signature};

const UNREACHABLE: &str = "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://cp.contoso.example:9345: failed to get CA certs: Get \\\"https://127.0.0.1:6444/cacerts\\\": dial tcp 192.0.2.4:9345: connect: connection refused\"";
const FAILED_JOB: &str = "[   52.004118] cloud-init[1045]: Job for rke2-agent.service failed because the control process exited with error code.";
const STARTED: &str = "\u{1b}[0;32m[  OK  ]\u{1b}[0m Started \u{1b}[0;1;39mrke2-agent.service\u{1b}[0m - Rancher Kubernetes Engine v2 (agent).";
const PASSWORD: &str = "[   48.310022] k3s[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Waiting to retrieve agent configuration; server is not ready: Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag\"";

/// What must be found.
pub(crate) const FOUND: &[Signature] = &[
    Signature {
        id: "agent.token",
        lines: &[
            "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Waiting to retrieve agent configuration; server is not ready: https://127.0.0.1:6444/v1-rke2/serving-kubelet.crt: 401 Unauthorized\"",
        ],
        cause: Cause::BootstrapTokenInvalid,
        proof: "/v1-rke2/serving-kubelet.crt: 401 Unauthorized",
        near_miss: "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to pull image registry.contoso.example/rancher/rke2-runtime:v1.34.2: unexpected status code 401 Unauthorized\"",
        instead: Cause::RegistryUnauthorized,
    },
    Signature {
        id: "agent.ca",
        lines: &[
            "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://cp.contoso.example:9345: token CA hash does not match the Cluster CA certificate hash: 9f00ab != 4be1cd\"",
        ],
        cause: Cause::ClusterCaMismatch,
        proof: "token CA hash does not match the Cluster CA certificate hash",
        near_miss: "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=warning msg=\"Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash.\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "agent.password",
        lines: &[PASSWORD],
        cause: Cause::NodeIdentityConflict,
        proof: "Node password rejected, duplicate hostname",
        near_miss: "[   48.310022] k3s[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Password verified locally for node web-1\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "agent.unreachable",
        lines: &[UNREACHABLE, FAILED_JOB],
        cause: Cause::ApiServerUnreachable,
        proof: "dial tcp 192.0.2.4:9345: connect: connection refused",
        near_miss: "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=info msg=\"Running load balancer rke2-agent-load-balancer 127.0.0.1:6444 -> [cp.contoso.example:9345]\"",
        instead: Cause::Unknown,
    },
    Signature {
        id: "agent.dns",
        lines: &[
            "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://cp.contoso.example:9345: failed to get CA certs: Get \\\"https://cp.contoso.example:9345/cacerts\\\": dial tcp: lookup cp.contoso.example on 127.0.0.53:53: no such host\"",
        ],
        cause: Cause::ApiServerDnsFailure,
        proof: "lookup cp.contoso.example",
        near_miss: "[   48.310022] rke2[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Get \\\"https://registry.contoso.example/v2/\\\": dial tcp: lookup registry.contoso.example on 127.0.0.53:53: no such host\"",
        instead: Cause::DnsFailure,
    },
];

/// What is refined.
pub(crate) const REFINED: &[Refined] = &[
    Refined {
        id: "agent.token, before anything else",
        lines: &[
            "[   48.310022] k3s[1733]: time=\"2026-03-02T14:31:19Z\" level=fatal msg=\"failed to get CA certs: https://127.0.0.1:6444/cacerts: 401 Unauthorized\"",
        ],
        cause: Cause::BootstrapTokenInvalid,
    },
    Refined {
        id: "agent.unreachable, behind its own load balancer",
        lines: &[
            "[   48.310022] k3s[1733]: time=\"2026-03-02T14:31:19Z\" level=error msg=\"Failed to validate connection to cluster at https://cp.contoso.example:6443: failed to get CA certs: Get \\\"https://127.0.0.1:6444/cacerts\\\": read tcp 127.0.0.1:52510->127.0.0.1:6444: read: connection reset by peer\"",
        ],
        cause: Cause::ApiServerUnreachable,
    },
];

#[test]
fn a_retry_of_an_agent_that_came_right_is_no_failure() {
    for went_on in [
        STARTED,
        "[   60.310022] rke2[1733]: time=\"2026-03-02T14:31:31Z\" level=info msg=\"Running kubelet --address=0.0.0.0\"",
    ] {
        let found = diagnosed(&only_boot(&[UNREACHABLE, UNREACHABLE, went_on]));
        assert_eq!((found.verdict, found.cause.reason), (Verdict::Unknown, Cause::Unknown));
    }
    // The k3s unit counts as started before the agent has contacted a server.
    let k3s = "\u{1b}[0;32m[  OK  ]\u{1b}[0m Started k3s-agent.service - Lightweight Kubernetes.";
    let found = diagnosed(&only_boot(&[UNREACHABLE, k3s]));
    assert_eq!(found.cause.reason, Cause::ApiServerUnreachable);
}

#[test]
fn a_retry_of_an_agent_is_believed_once_its_unit_has_failed() {
    let found = diagnosed(&open_boot(&[UNREACHABLE, UNREACHABLE]));
    assert_eq!(found.cause.confidence, Confidence::Medium, "it may come right");
    let found = diagnosed(&open_boot(&[UNREACHABLE, FAILED_JOB]));
    assert_eq!(found.cause.confidence, Confidence::High);
    // One that no retry cures is believed at once where cloud-init is over.
    let found = diagnosed(&only_boot(&[PASSWORD]));
    assert_eq!(found.cause.confidence, Confidence::High);
}

#[test]
fn an_agent_that_goes_on_asking_after_cloud_init_has_ended_may_come_right() {
    let mut log = only_boot(&[UNREACHABLE]);
    log.extend(format!("{UNREACHABLE}\r\n").bytes());
    let found = diagnosed(&log);
    assert_eq!(found.cause.reason, Cause::ApiServerUnreachable);
    assert_eq!(found.cause.confidence, Confidence::Medium);
}

#[test]
fn a_unit_that_failed_without_a_reason_is_quoted() {
    let found = diagnosed(&boot(&[FAILED_JOB]));
    assert_eq!((found.verdict, found.cause.reason), (Verdict::Failed, Cause::Unknown));
    assert!(found.proof[0].text.contains("Job for rke2-agent.service failed"), "{:?}", found.proof);
    let other = "[   52.004118] cloud-init[1045]: Job for motd-news.service failed because a timeout was exceeded.";
    assert_eq!(diagnosed(&boot(&[other])).verdict, Verdict::Unknown);
}

#[test]
fn what_an_installer_complained_of_before_its_agent_was_up_is_believed_less() {
    let retried =
        "[   30.000000] cloud-init[1045]: curl: (6) Could not resolve host: get.contoso.example";
    let found = diagnosed(&only_boot(&[retried]));
    assert_eq!((found.cause.reason, found.cause.confidence), (Cause::DnsFailure, Confidence::High));
    let found = diagnosed(&only_boot(&[retried, STARTED]));
    assert_eq!(found.cause.confidence, Confidence::Medium, "it went on");
    let found = diagnosed(&only_boot(&[STARTED, retried]));
    assert_eq!(found.cause.confidence, Confidence::High, "it came after it");
}
