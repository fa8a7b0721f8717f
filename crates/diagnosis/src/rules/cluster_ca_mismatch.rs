//! The cluster CA that the node was given is not the API server's.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ClusterCaMismatch,
    title: "the cluster CA that the node was given is not the API server's",
    looks_like: "kubelet or kubeadm: `x509: certificate signed by unknown authority` for the API server; `none of the public keys .. are pinned`. Agents of RKE2 and k3s: `token CA hash does not match the Cluster CA certificate hash`.",
    misleads: "51 reads \"connection failed\".",
    remedy: "Prove it on the node: `curl --cacert /etc/kubernetes/certs/ca.crt https://HOST:PORT/healthz` (kubeadm: /etc/kubernetes/pki/ca.crt) fails on the certificate. The current CA is in `kubectl -n kube-system get configmap kube-root-ca.crt -o yaml`. Give it to new nodes in their customData; for kubeadm, `kubeadm token create --print-join-command` prints the new discovery hash, for RKE2 and k3s copy the token from the server again. Replace nodes that were prepared before the CA was rotated.",
    signs: &[
        Sign::new(59, &["x509: certificate signed by unknown authority", "/api/v1"]),
        Sign::new(59, &["x509: certificate signed by unknown authority"]).with_codes(&[51]),
        Sign::new(59, &["x509: certificate signed by unknown authority", "register node"]),
        Sign::new(59, &["cluster ca found in cluster-info", "is invalid"]),
        Sign::new(59, &["none of the public keys", "are pinned"]),
        Sign::new(60, &["certificate signed by unknown authority", "kubelet"])
            .unless(&["pull", "/v2/", "registry"])
            .fair(),
        Sign::new(59, &["x509: certificate signed by unknown authority", ":6443"]),
        Sign::new(59, &["ssl certificate problem"]).with_codes(&[51]),
        Sign::new(59, &["curl: (60)"]).with_codes(&[51]),
        Sign::new(60, &["x509: certificate signed by unknown authority", "apis/"]).fair(),
        Sign::new(59, &["token ca hash does not match the cluster ca certificate hash"]),
        Sign::new(59, &["public key", "not pinned"]),
        Sign::new(59, &["x509: certificate is valid for", ":6443"]),
        Sign::new(59, &["x509: certificate is valid for", "azmk8s"]),
        Sign::new(60, &["certificate signed by unknown authority", "cluster-info"]),
        Sign::new(60, &["certificate signed by unknown authority", "azmk8s"]),
        Sign::new(60, &["crypto/rsa: verification error"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "Unable to register node with API server: Post https://192.0.2.1:6443/api/v1/nodes: tls: x509: certificate signed by unknown authority",
    leaves: "Get \"https://registry.example/v2/\": x509: certificate signed by unknown authority",
}
