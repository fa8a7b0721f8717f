//! Containerd does not start or is not usable.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ContainerRuntimeFailure,
    title: "containerd does not start or is not usable",
    looks_like: "`unknown service runtime.v1.RuntimeService`, `containerd did not become ready`, `containerd could not be started`.",
    misleads: "Codes of images and drivers (233, 84, 153) follow from it.",
    remedy: "On the node, run `systemctl status containerd`, `journalctl -u containerd -n 100 --no-pager` and `crictl info`. In /etc/containerd/config.toml, `cri` must not be in `disabled_plugins`, and the schema must fit `containerd --version`: `containerd config dump` tells whether it parses, `containerd config migrate` of 2.x prints an older file in the new schema. Correct the file, run `systemctl restart containerd`, and fix the image or node configuration that wrote it.",
    signs: &[
        Sign::new(73, &["unknown service runtime.v1"]),
        Sign::new(73, &["could not connect to the container runtime"]),
        Sign::new(73, &["validate cri v1 runtime api"]),
        Sign::new(73, &["validate cri v1"]),
        Sign::new(73, &["containerd did not become ready"]),
        Sign::new(73, &["containerd could not be"]),
        Sign::new(73, &["containerd is in a failed state"]),
        Sign::new(73, &["containerd service is not running"]),
        Sign::new(74, &["containerd.sock", "no such file"]),
        Sign::new(74, &["containerd.sock", "connection refused"]),
        Sign::new(74, &["[error cri]"]),
        Sign::new(74, &["container runtime is not running"]),
        Sign::new(74, &["failed to load plugin io.containerd"]).fair(),
        Sign::new(74, &["containerd.service", "failed"]).fair(),
        Sign::new(74, &["docker.sock", "is the docker daemon running"]).fair(),
        Sign::new(74, &["container runtime is down"]).fair(),
        Sign::new(74, &["containerd: failed to"]),
        Sign::new(74, &["docker could not be started"]),
        Sign::new(74, &["containerd_not_running"]),
        Sign::new(74, &["start containerd failed"]),
        Sign::new(74, &["containerd", "invalid configuration"]).fair(),
        Sign::new(74, &["containerd: unsupported config version"]),
        Sign::new(74, &["unix:///run/containerd", "unimplemented"]),
        Sign::new(73, &["failed to load toml"]),
        Sign::new(74, &["containerd.service: main process exited"]).fair(),
        Sign::new(74, &["/etc/containerd/config.toml"])
            .near(&["invalid", "failed", "error"])
            .fair(),
        Sign::new(74, &["cannot connect to the docker daemon"]),
        Sign::new(74, &["failed to create containerd task"]).fair(),
        Sign::new(74, &["failed to dial", "containerd"]).fair(),
        Sign::new(74, &["container runtime", "not ready"]).unless(&["network"]).fair(),
        Sign::new(74, &["runtime service failed"]).fair(),
        Sign::new(74, &["failed to start containerd"]).fair(),
        Sign::new(74, &["failed to start docker"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService",
    leaves: "containerd.service: Active: active (running)",
}
