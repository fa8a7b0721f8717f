//! Kubelet does not start or does not get healthy.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::KubeletFailure,
    title: "kubelet does not start or does not get healthy",
    looks_like: "`kubelet is in a failed state`, `The HTTP call equal to 'curl -sSL http://localhost:10248/healthz' failed`.",
    misleads: "The script ends with 1, because the constant it uses is not defined.",
    remedy: "On the node, read `systemctl status kubelet` and `journalctl -u kubelet -b --no-pager`; the first error after the last start is the cause. From outside: `az vm run-command invoke -g NODE_GROUP -n VM --command-id RunShellScript --scripts \"journalctl -u kubelet -b --no-pager | tail -n 60\"`. Usual are a containerd that is down (`systemctl status containerd`), swap that is on, a wrong flag and an API server out of reach. Fix that, then run `systemctl restart kubelet`, or replace the node.",
    signs: &[
        Sign::new(203, &["[kubelet-check] initial timeout"]).fair(),
        Sign::new(200, &["kubelet is in a failed state"]).fair(),
        Sign::new(200, &["kubelet could not be"]).fair(),
        Sign::new(201, &["10248/healthz"]).fair(),
        Sign::new(201, &["the kubelet is not running"]).fair(),
        Sign::new(201, &["kubelet.service: failed with result"]).fair(),
        Sign::new(201, &["kubelet.service: main process exited"])
            .unless(&["status=15/term", "status=0/success"])
            .fair(),
        Sign::new(202, &["failed to run kubelet"]).fair(),
        Sign::new(202, &["kubelet.service", "scheduled restart job"]).fair(),
        Sign::new(202, &["kubelet exited"]).fair(),
        Sign::new(202, &["the kubelet is not healthy"]).fair(),
        Sign::new(203, &["kubelet.service failed"]).fair(),
        Sign::new(203, &["panic:"]).near(&["kubelet"]).weak(),
        Sign::new(202, &["kubelet.service: start request repeated too quickly"]).fair(),
        Sign::new(202, &["kubelet", "is not running"]).fair(),
        Sign::new(203, &["job for kubelet.service failed"]).fair(),
        Sign::new(203, &["failed to start kubelet"]).fair(),
        Sign::new(201, &["the kubelet isn't running or healthy"]).fair(),
        Sign::new(201, &["the http call equal to 'curl -ssl http://", "/healthz"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "kubelet is in a failed state",
    leaves: "kubelet.service: Active: active (running)",
}
