//! Names for lines that boot logs of many machines have in common. The diagnosis decides about the meaning of
//! a line; the name lets users count reports of different machines together.

/// A name, and texts in lower case of which at least one occurs in the line. The first matching row counts.
const SIGNATURES: &[(&str, &[&str])] = &[
    ("kernel.panic", &["kernel panic - not syncing"]),
    ("kernel.oom", &["out of memory: killed process"]),
    ("systemd.emergency", &["in emergency mode", "to emergency mode", "dependency failed for /"]),
    ("disk.full", &["no space left on device"]),
    ("cloudinit.azure.report", &["result=error|reason="]),
    ("cloudinit.fallback_ds", &["used fallback datasource"]),
    (
        "cloudinit.yaml",
        &[
            "failed loading yaml blob",
            "unhandled non-multipart",
            "failed at merging in cloud config",
        ],
    ),
    ("sentinel.write", &["bootstrap-success.complete: "]),
    ("kubelet.cgroup", &["kubelet cgroup driver: "]),
    ("kubelet.swap", &["running with swap on is not supported"]),
    ("kubelet.unknown_flag", &["unknown flag: --"]),
    ("tls.clock", &["x509: certificate has expired or is not yet valid"]),
    ("tls.unknown_ca", &["x509: certificate signed by unknown authority"]),
    ("kubeadm.discovery.ca", &["found in cluster-info configmap is invalid"]),
    (
        "kubeadm.discovery.token",
        &["could not find a jws signature", "is invalid for this cluster", "no jws signed token"],
    ),
    ("kubeadm.node_exists", &["and status \"ready\" already exists in the cluster"]),
    ("kubeadm.preflight.cri_unimplemented", &["unknown service runtime.v1"]),
    ("kubeadm.preflight.cri_down", &["[error cri]"]),
    ("kubeadm.preflight.kubelet_newer", &["kubelet version is higher than the control plane"]),
    ("kubeadm.preflight.kubelet_older", &["is lower than kubeadm can support"]),
    (
        "kubeadm.preflight.kernel",
        &["[error filecontent--proc-sys-net", "[error systemverification]"],
    ),
    ("kubeadm.preflight.missing_binary", &["[error fileexisting-"]),
    ("kubeadm.preflight.port", &["[error port-"]),
    ("kubeadm.preflight.rejoin", &["[error fileavailable--etc-kubernetes"]),
    ("kubeadm.preflight.imagepull", &["[error imagepull]"]),
    ("kubeadm.preflight.resources", &["[error numcpu]", "[error mem]"]),
    ("etcd.learner", &["can only promote a learner member"]),
    ("curl.dns", &["curl: (6) "]),
    ("curl.http", &["curl: (22) "]),
    ("curl.connect", &["curl: (7) ", "curl: (28) ", "curl: (35) ", "curl: (56) "]),
    ("apt.lock", &["could not get lock /var/lib/"]),
    ("kubeadm.cp.unhealthy", &["[control-plane-check] "]),
    ("kubelet.tls_bootstrap", &["failed while waiting for tls bootstrap"]),
    ("kubelet.unhealthy", &["kubelet is not healthy after", "kubelet isn't running or healthy"]),
    ("kubeadm.discovery.dns", &["dial tcp: lookup "]),
    (
        "kubeadm.discovery.refused",
        &["connect: connection refused", "connect: no route to host", "network is unreachable"],
    ),
    (
        "kubeadm.discovery.timeout",
        &[": i/o timeout", "client.timeout exceeded", "tls handshake timeout"],
    ),
    ("kubeadm.config.fetch", &["unable to fetch the kubeadm-config configmap"]),
    ("cmd.not_found", &["command not found", ": not found"]),
    ("systemd.unit", &["failed to start "]),
    ("kubeadm.preflight.any", &["[error "]),
    ("kubeadm.phase", &["error execution phase "]),
    (
        "cloudinit.scripts_user",
        &["failed to run module scripts", "running module scripts", "runparts: "],
    ),
    ("cloudinit.module", &["running module ", "failed to run module "]),
];

/// The name of a line, if the table has one.
pub(crate) fn name_of(line: &str) -> Option<&'static str> {
    let line = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    SIGNATURES.iter().find(|(_, words)| has(words)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_name_of_what_it_says_first() {
        for (line, name) in [
            ("curl: (6) Could not resolve host: dl.example.com", "curl.dns"),
            (
                "\t[ERROR NumCPU]: the number of available CPUs 1 is less",
                "kubeadm.preflight.resources",
            ),
            ("\t[ERROR IsPrivilegedUser]: user is not running as root", "kubeadm.preflight.any"),
            (
                "error execution phase preflight: couldn't validate the identity of the API Server: dial tcp: lookup a.example.com: no such host",
                "kubeadm.discovery.dns",
            ),
            ("/var/lib/cloud/instance/scripts/runcmd: 5: kubeadm: not found", "cmd.not_found"),
            (
                "scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in /x)",
                "cloudinit.scripts_user",
            ),
        ] {
            assert_eq!(name_of(line), Some(name), "{line}");
        }
        assert_eq!(name_of("all is well"), None);
    }
}
