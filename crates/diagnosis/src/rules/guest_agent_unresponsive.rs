//! The VM agent does not report.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::GuestAgentUnresponsive,
    title: "the VM agent does not report",
    looks_like: "`VMAgentStatusCommunicationError`, `VM status blob not found.`",
    misleads: "Extensions merely wait.",
    remedy: "Ask for the agent's last report, `az vm get-instance-view -g NODE_GROUP -n VM --query instanceView.vmAgent`, and see whether the system booted: `az vm boot-diagnostics get-boot-log -g NODE_GROUP -n VM`. On the serial console (portal: VM > Help > Serial console) run `systemctl status walinuxagent waagent`, `tail /var/log/waagent.log` and `curl \"http://168.63.129.16/?comp=versions\"`. Start the agent, open 168.63.129.16 (ports 80 and 32526), or use an image with a newer agent; then replace the node.",
    signs: &[
        Sign::new(25, &["vmagentstatuscommunicationerror"]),
        Sign::new(25, &["has not reported status for vm agent"]),
        Sign::new(26, &["vm status blob not found"]).fair(),
        Sign::new(26, &["vm agent is unable to communicate"]),
        Sign::new(27, &["vm agent", "not ready"]).unless(&["not yet populated"]).fair(),
        Sign::new(27, &["guest agent", "not responding"]).fair(),
        Sign::new(240, &["status blob is found but not yet populated"]).weak(),
        Sign::new(26, &["has not reported latest status"]),
        Sign::new(26, &["has not reported status"]),
        Sign::new(26, &["waagent", "not running"]).fair(),
        Sign::new(26, &["vm agent is not running"]),
        Sign::new(26, &["vm agent is unresponsive"]),
        Sign::new(26, &["agent is not reporting"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "VM 'node-1' has not reported status for VM agent or extensions.",
    leaves: "Guest Agent is running",
}
