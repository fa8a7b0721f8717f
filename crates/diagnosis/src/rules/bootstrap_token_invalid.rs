//! The join token is expired, unknown or refused.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::BootstrapTokenInvalid,
    title: "the join token is expired, unknown or refused",
    looks_like: "`the server has asked for the client to provide credentials`, `cluster-info ConfigMap does not yet contain a JWS signature for token ID`, 401 from the API server; of an agent of RKE2 or k3s, 401 where it asks for its configuration.",
    misleads: "The extension may have succeeded: the scripts do not check the token.",
    remedy: "Compare the node's token id with what the cluster knows: `kubeadm token list`, or `kubectl -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token`; tokens of kubeadm live 24 hours. Make a new one with `kubeadm token create --print-join-command` (RKE2 and k3s: `node-token` under /var/lib/rancher on a server) and give it to new nodes in their user data; old nodes do not recover. On AKS the platform makes the token: reconcile with `az aks update -g GROUP -n CLUSTER`, then add nodes again.",
    signs: &[
        Sign::new(64, &["does not yet contain a jws signature for token id"]),
        Sign::new(64, &["could not find a jws signature in the cluster-info"]),
        Sign::new(64, &["asked for the client to provide credentials"]),
        Sign::new(64, &["received http 401 from apiserver"]),
        Sign::new(65, &["unable to register node with api server", "unauthorized"]),
        Sign::new(65, &["cannot create certificate signing request: unauthorized"]),
        Sign::new(65, &["token", "has expired"]).fair(),
        Sign::new(65, &["token id", "invalid"]).fair(),
        Sign::new(65, &["bootstrap token", "expired"]),
        Sign::new(65, &["failed to verify jws"]),
        Sign::new(65, &["invalid bearer token"]),
        Sign::new(66, &["couldn't validate the identity of the api server", "unauthorized"]),
        Sign::new(66, &["kubelet", "unauthorized"]).unless(&["pull", "registry", "acr"]).fair(),
        Sign::new(66, &["token format is invalid"]),
        Sign::new(65, &["there is no jws signed token"]),
        Sign::new(66, &["401 unauthorized", "6443"]).fair(),
        Sign::new(65, &["is invalid for this cluster or it has expired"]),
        Sign::new(65, &["does not contain a jws signature"]),
        Sign::new(66, &["secret 'bootstrap-token"]).fair(),
        Sign::new(65, &["unable to read certificate", "unauthorized"]).fair(),
        Sign::new(65, &["failed to validate bootstrap token"]),
        Sign::new(65, &["401 unauthorized", "/v1-rke2/"]),
        Sign::new(65, &["401 unauthorized", "/v1-k3s/"]),
        Sign::new(65, &["/cacerts: 401 unauthorized"]),
        Sign::new(65, &["failed to validate connection to cluster at", "unauthorized"]),
        Sign::new(66, &["unable to fetch the kubeadm-config configmap", "forbidden"]).fair(),
        Sign::new(66, &["unable to fetch the kubeadm-config configmap", "unauthorized"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "[discovery] The cluster-info ConfigMap does not yet contain a JWS signature for token ID \"uvwxyz\", will try again",
    leaves: "[bootstrap-token] Using token: [redacted]",
}
