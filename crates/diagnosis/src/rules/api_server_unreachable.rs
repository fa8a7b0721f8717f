//! The API server cannot be reached.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ApiServerUnreachable,
    title: "the API server cannot be reached",
    looks_like: "`connection refused` or a time-out to port 443 or 6443 of the API server; code 51. Agents of RKE2 and k3s: `failed to get CA certs`, again and again.",
    misleads: "kubeadm says \"couldn't validate the identity of the API Server\" for a plain time-out.",
    remedy: "On the node, run `curl -kv https://HOST:PORT/healthz`: any answer, also 401, means that the way is open. Refused: see whether the control plane is up, `az aks show -g GROUP -n CLUSTER --query \"[powerState.code, provisioningState]\"`. Timeout: look at `az aks show -g GROUP -n CLUSTER --query apiServerAccessProfile`, allow the node's outbound address with `az aks update -g GROUP -n CLUSTER --api-server-authorized-ip-ranges RANGES` (the whole list, old ranges too), then check firewall, NSG, routes and private link.",
    signs: &[
        Sign::new(76, &["couldn't validate the identity of the api server", "timeout"]),
        Sign::new(76, &["couldn't validate the identity of the api server", "connection refused"]),
        Sign::new(76, &["couldn't validate the identity of the api server", "deadline exceeded"]),
        Sign::new(76, &["couldn't validate the identity of the api server", "i/o timeout"]),
        Sign::new(76, &["couldn't validate the identity of the api server", "no route"]),
        Sign::new(77, &["failed to connect to api server"]),
        Sign::new(77, &["cluster-info", "connection refused"]),
        Sign::new(77, &["cluster-info", "i/o timeout"]),
        Sign::new(77, &["azmk8s.io", "i/o timeout"]),
        Sign::new(77, &["azmk8s.io", "connection refused"]),
        Sign::new(77, &["azmk8s.io", "timed out"]),
        Sign::new(77, &["azmk8s.io", "timeout was reached"]),
        Sign::new(77, &["azmk8s.io", "timeout exceeded"]),
        Sign::new(77, &["azmk8s.io", "exceeded while awaiting"]),
        Sign::new(77, &[":6443", "connection refused"])
            .unless(&["localhost:6443", "127.0.0.1:6443"]),
        Sign::new(77, &[":6443", "i/o timeout"]).unless(&["localhost:6443", "127.0.0.1:6443"]),
        Sign::new(77, &[":6443", "no route to host"]),
        Sign::new(77, &[":6443", "timeout exceeded"]),
        Sign::new(77, &[":6443: connect"]).unless(&["localhost:6443", "127.0.0.1:6443"]),
        Sign::new(77, &["unable to establish connection from agents to kubernetes api server"]),
        Sign::new(77, &["k8sapiserverconnfail"]),
        Sign::new(78, &["curl: (28)"]).with_codes(&[51]),
        Sign::new(78, &["curl: (7)"]).with_codes(&[51]),
        Sign::new(78, &["connection timed out"]).with_codes(&[51]),
        Sign::new(78, &["connection refused"]).with_codes(&[51]),
        Sign::new(78, &["last exit status: 28)"]).with_codes(&[51]),
        Sign::new(78, &["last exit status: 7)"]).with_codes(&[51]),
        Sign::new(79, &["api server connection check code: 51"]),
        Sign::new(79, &["curl: (35)"]).with_codes(&[51]).fair(),
        Sign::new(79, &["curl: (52)"]).with_codes(&[51]),
        Sign::new(79, &["empty reply from server"]).with_codes(&[51]),
        Sign::new(79, &["unable to connect to the server"]).fair(),
        Sign::new(79, &["to the server", "was refused - did you specify the right host"]).fair(),
        Sign::new(79, &["unable to register node with api server", "connection refused"]),
        Sign::new(79, &["unable to register node with api server", "i/o timeout"]),
        Sign::new(79, &["failed to request cluster-info, will try again", "context deadline"])
            .fair(),
        Sign::new(79, &["client.timeout exceeded while awaiting headers"])
            .near(&["cluster-info", "kube-public"]),
        Sign::new(77, &["tls handshake timeout", ":6443"]),
        Sign::new(77, &["tls handshake timeout", "azmk8s"]),
        Sign::new(78, &["unable to fetch the kubeadm-config configmap"]).fair(),
        Sign::new(78, &["failed to request the cluster-info configmap"]).fair(),
        Sign::new(78, &["cluster-info", "deadline exceeded"]),
        Sign::new(78, &["the server is currently unable to handle the request"]).fair(),
        Sign::new(78, &["apiserver", "connection refused"]).unless(&["localhost", "127.0.0.1"]),
        Sign::new(78, &["apiserver", "i/o timeout"]).unless(&["localhost", "127.0.0.1"]),
        Sign::new(78, &["/api/v1/nodes", "i/o timeout"]).unless(&["localhost", "127.0.0.1"]),
        Sign::new(78, &["/api/v1/nodes", "connection refused"]).unless(&["localhost", "127.0.0.1"]),
        Sign::new(78, &["check_api_server_connectivity"]),
        Sign::new(79, &["unable to connect to the server: dial tcp"]).fair(),
        Sign::new(77, &["failed to connect to", " port 6443"]),
        Sign::new(77, &["failed to get ca certs", "connection refused"]),
        Sign::new(77, &["failed to get ca certs", "i/o timeout"]),
        Sign::new(77, &["failed to get ca certs", "deadline exceeded"]),
        Sign::new(77, &["failed to get ca certs", "no route to host"]),
        Sign::new(78, &["failed to get ca certs", "connection reset by peer"]).fair(),
        Sign::new(78, &["failed to get ca certs", ": eof"]).fair(),
        Sign::new(78, &["waiting to retrieve agent configuration; server is not ready"])
            .unless(&["401", "password", "no such host", "x509"])
            .fair(),
    ],
    subject: None,
};

examples! {
    finds: "dial tcp 192.0.2.31:6443: connect: connection refused",
    leaves: "curl: (28) Failed to connect to mcr.example.com port 443: Timeout was reached",
}
