//! A program that the bootstrap calls cannot be run.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};
use crate::subject;

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::BinaryMissing,
    title: "a program that the bootstrap calls cannot be run",
    looks_like: "`oras: command not found`, `failed to run command 'X': No such file or directory`, `last exit status: 127`, `mv: cannot stat '/opt/bin/kubelet-V'`.",
    misleads: "The step that called it reports its own code: 211 reads \"network timeout\" while oras is missing.",
    remedy: "Use an image that has the program, and tell the image owner which one is missing: for an image of AKS that is Microsoft, by a support request. `kubectl get nodes -L kubernetes.azure.com/node-image-version` shows the images of the other nodes. On a node of the same image, `command -v NAME` and `ls -l /usr/bin /usr/local/bin /opt/bin` tell whether it is absent, not in PATH or not executable.",
    signs: &[
        Sign::new(31, &["unmet condition check", "/bin/"]),
        Sign::new(31, &["kubelet.service", "unmet condition check", "executable"]),
        Sign::new(30, &["failed to run command '", "no such file or directory"]),
        Sign::new(30, &[": command not found"]),
        Sign::new(30, &["executable file not found in"]),
        Sign::new(30, &["mv: cannot stat '/opt/bin/"]),
        Sign::new(30, &["/opt/bin/kubelet", "no such file or directory"]),
        Sign::new(31, &["last exit status: 127"]),
        Sign::new(31, &["required executable", "not found"]),
        Sign::new(30, &["[error fileexisting-", "not found in system path"]),
        Sign::new(31, &["last exit status: 126"]).fair(),
        Sign::new(31, &["conditionpathexists=/opt/bin/kubelet"]),
        Sign::new(30, &["err_oras_binary_not_found"]),
        Sign::new(32, &[": not found", "line "])
            .unless(&["http", "manifest", "404", "module", "node '", "err="])
            .fair(),
        Sign::new(31, &["is not recognized as the name of a cmdlet"]).fair(),
        Sign::new(31, &["is not recognized as an internal or external command"]),
        Sign::new(31, &["status=203/exec"]).fair(),
        Sign::new(31, &["cannot find the file specified"])
            .near(&["system.componentmodel.win32exception"])
            .fair(),
        Sign::new(30, &["exec format error"]),
        Sign::new(30, &["cannot execute binary file"]),
        Sign::new(30, &["[errno 2] no such file or directory: '"])
            .unless(&[".json", ".conf", ".yaml", ".xml", ".log"]),
        Sign::new(30, &["/usr/bin/env: '", "no such file"]),
        Sign::new(30, &[": not found", "runcmd"]).unless(&["http"]),
        Sign::new(30, &["/bin/sh: ", ": not found"]).unless(&["http"]),
        Sign::new(30, &["sh: 1: ", ": not found"]),
        Sign::new(30, &["bash: ", ": no such file or directory", "/bin/"])
            .unless(&["bootstrap-success"]),
        Sign::new(31, &["failed at step exec"]),
        Sign::new(31, &["unit kubelet.service not found"]).fair(),
        Sign::new(31, &["unit kubelet.service could not be found"]).fair(),
        Sign::new(31, &["unit containerd.service not found"]).fair(),
        Sign::new(31, &["env: '", "no such file or directory"]),
        Sign::new(30, &["err_kubectl_not_found"]),
        Sign::new(31, &["program not found"]).fair(),
        Sign::new(31, &["err_kubelet_binary"]).fair(),
        Sign::new(30, &["is not installed or not in path"]),
        Sign::new(31, &[".sh: ", ": not found"])
            .unless(&["http", "manifest", "404", "module"])
            .fair(),
    ],
    subject: Some(subject::program),
};

examples! {
    finds: "timeout: failed to run command ‘oras’: No such file or directory",
    leaves: "oras pull registry.example/aks/package: not found: manifest unknown",
}
