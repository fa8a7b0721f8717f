//! A reboot interrupted the bootstrap.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::RebootInterrupted,
    title: "a reboot interrupted the bootstrap",
    looks_like: "`systemd-shutdown: Rebooting`, SIGTERM from PID 1, exit 143.",
    misleads: "143 looks like a crash of the script.",
    remedy: "Find what rebooted it: on the node `last -x reboot shutdown | head` and `journalctl -b -1 -n 50 --no-pager`; restarts that came from Azure are in `az monitor activity-log list -g NODE_GROUP --offset 6h -o table`. The next attempt usually works: replace the node. Keep the reason off new nodes until they have joined, often unattended-upgrades (`Unattended-Upgrade::Automatic-Reboot \"false\";`), kured, or a patch or security agent.",
    signs: &[
        Sign::new(27, &["cloud-init", "received sigterm"]),
        Sign::new(27, &["interrupted by a", "restart"]),
        Sign::new(27, &["interrupted by", "shutdown"]),
        Sign::new(27, &["systemd-shutdown", "rebooting"]),
        Sign::new(27, &["received sigterm from pid 1"]),
        Sign::new(27, &["the system is going down for reboot"]),
        Sign::new(27, &["the system will reboot"]),
        Sign::new(28, &["reboot: restarting system"]).fair(),
        Sign::new(27, &["system is rebooting"]),
        Sign::new(28, &["shutdown scheduled"]).fair(),
        Sign::new(28, &["received signal 15"]).weak(),
        Sign::new(26, &["[error fileavailable--etc-kubernetes"])
            .near(&["rebooting", "will reboot"]),
        Sign::new(26, &["[error port-10250]"]).near(&["rebooting", "will reboot"]),
        Sign::new(26, &["[error fileavailable--etc-kubernetes"]).again(),
        Sign::new(26, &["[error port-", "is in use"]).again(),
        Sign::new(28, &["interrupted by reboot"]),
        Sign::new(28, &["reboot", "in progress"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "systemd-shutdown[1]: Rebooting.",
    leaves: "Startup finished in 3.1s (kernel)",
}
