//! The node's certificate request was not approved or signed.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::TlsBootstrapPending,
    title: "the node's certificate request was not approved or signed",
    looks_like: "`failed while waiting for TLS bootstrap`, `certificatesigningrequests .. is forbidden`.",
    misleads: "kubelet merely waits; the extension has succeeded.",
    remedy: "Run `kubectl get csr --sort-by=.metadata.creationTimestamp`. Pending: check with `kubectl describe csr CSR` that requestor and subject are this node's, then `kubectl certificate approve CSR`, and find out why the approver did not (kube-controller-manager, or a cloud approver). Approved but not issued: the signer is down. None: the group system:bootstrappers needs the ClusterRole system:node-bootstrapper; approval by itself needs `system:certificates.k8s.io:certificatesigningrequests:nodeclient`.",
    signs: &[
        Sign::new(67, &["not yet approved or signed"]).fair(),
        Sign::new(67, &["cannot create certificate signing request"]),
        Sign::new(68, &["certificate", "deadline exceeded"])
            .unless(&["verify", "x509", "/v2/"])
            .fair(),
        Sign::new(67, &["waiting for tls bootstrap"]),
        Sign::new(67, &["certificatesigningrequests", "forbidden"]),
        Sign::new(67, &["certificate signing request", "was not approved"]),
        Sign::new(67, &["csr", "pending"]).unless(&["spending"]).fair(),
        Sign::new(68, &["kubelet-wait-bootstrap"]),
        Sign::new(212, &["waiting for the kubelet to perform the tls bootstrap"]).weak(),
        Sign::new(68, &["certificate signing request", "timed out"]).fair(),
        Sign::new(68, &["no client certificate yet"]).fair(),
        Sign::new(68, &["certificate request was denied"]),
        Sign::new(68, &["failed to run kubelet: unable to load bootstrap kubeconfig"]).fair(),
        Sign::new(67, &["cannot create certificatesigningrequests"]),
        Sign::new(67, &["certificatesigningrequest", "denied"]).fair(),
        Sign::new(68, &["is not approved"]).near(&["csr", "certificate"]).fair(),
        Sign::new(68, &["failed to wait for certificate"]).fair(),
        Sign::new(68, &["unable to sign certificate"]).fair(),
        Sign::new(68, &["selfnodeclient"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "error execution phase kubelet-wait-bootstrap: failed while waiting for TLS bootstrap: context deadline exceeded",
    leaves: "\"Certificate signing request is issued\" csr=\"csr-p9x2d\"",
}
