//! A file or mount refuses to be used.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::PermissionDenied,
    title: "a file or mount refuses to be used",
    looks_like: "`Permission denied` at exec, `Read-only file system`, SELinux denials.",
    misleads: "A refused program ends with 126, which looks like a script error.",
    remedy: "On the node, look at the path in the line: `namei -l PATH` (mode), `findmnt -T PATH` (`noexec` or `ro`), `ausearch -m avc -ts boot` (SELinux) and `journalctl -k | grep -i apparmor`. Fix what refuses, in the image: `chmod +x PATH`, a mount without `noexec`, `restorecon -v PATH`, or a rule of the hardening baseline. If a file system turned read-only by itself, `dmesg | grep -iE \"ext4|xfs|i/o error\"` shows a disk fault: replace the node.",
    signs: &[
        Sign::new(33, &["read-only file system"]),
        Sign::new(33, &["avc:", "denied"]),
        Sign::new(34, &[": permission denied", "/bin/"]).unless(&["registry", "https", "http"]),
        Sign::new(34, &["permission denied", "noexec"]),
        Sign::new(35, &["bin/", "permission denied"]).unless(&["registry", "http", "publickey"]),
        Sign::new(35, &["operation not permitted", "/"]).unless(&["http"]).fair(),
        Sign::new(36, &["sudo: ", "required"]).fair(),
        Sign::new(36, &["mount: ", "permission denied"]),
        Sign::new(36, &["access is denied"]).unless(&["403", "arm", "policy"]).fair(),
        Sign::new(34, &["/bin/bash: ", "permission denied"]),
        Sign::new(34, &["/bin/sh: ", "permission denied"]),
        Sign::new(35, &["cannot create", "bootstrap-success.complete"]).fair(),
        Sign::new(36, &["selinux", "prevent"]).fair(),
        Sign::new(35, &["apparmor='denied'"]),
        Sign::new(35, &["bootstrap-success.complete: no such file"]).fair(),
        Sign::new(35, &["bootstrap-success.complete: directory nonexistent"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "/bin/sh: 1: /opt/azure/containers/provision.sh: Permission denied",
    leaves: "Permission denied (publickey).",
}
