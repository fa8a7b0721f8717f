//! The package manager's lock is held, or its database is half configured.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::PackageManagerLocked,
    title: "the package manager's lock is held, or its database is half configured",
    looks_like: "`Waiting for release of apt locks` again and again, `Could not get lock`, `dpkg was interrupted`.",
    misleads: "The wait has no limit, so the whole bootstrap ends with 124.",
    remedy: "On the node, `fuser -v /var/lib/dpkg/lock-frontend /var/lib/apt/lists/lock` and `ps -ef | grep -E \"apt|dpkg|dnf\"` name the holder. Keep it off new nodes: in the image `systemctl mask apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service`, on AKS `az aks update -g GROUP -n CLUSTER --node-os-upgrade-channel NodeImage`; order other extensions after the bootstrap. An interrupted dpkg needs `dpkg --configure -a`; never delete a lock file.",
    signs: &[
        Sign::new(26, &["waiting for release of apt locks"]).with_codes(&[124, 137, 143]),
        Sign::new(91, &["waiting for release of apt locks"]).fair(),
        Sign::new(29, &["could not get lock"]),
        Sign::new(29, &["unable to lock directory"]),
        Sign::new(90, &["dpkg was interrupted"]),
        Sign::new(29, &["dpkg frontend lock"]),
        Sign::new(91, &["sub-process", "dpkg", "error"]).fair(),
        Sign::new(90, &["another app is currently holding the yum lock"]),
        Sign::new(90, &["can't create transaction lock"]),
        Sign::new(29, &["unable to acquire the dpkg"]),
        Sign::new(91, &["dpkg: dependency problems"]).fair(),
        Sign::new(91, &["dpkg: error processing"]).fair(),
        Sign::new(91, &["waiting for process with pid", "to finish"]).fair(),
        Sign::new(26, &["waiting for locks"]),
        Sign::new(91, &["/var/lib/dpkg/lock"]).fair(),
        Sign::new(90, &["is another process using it"]),
        Sign::new(91, &["half-configured"]).fair(),
        Sign::new(91, &["unmet dependencies"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 2217 (apt-get)",
    leaves: "Setting up packages-microsoft-prod (1.1-1) ...",
}
