//! The node's clock is off.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ClockSkew,
    title: "the node's clock is off",
    looks_like: "`certificate has expired or is not yet valid: current time …`, `Release file … is not valid yet`.",
    misleads: "It looks like a certificate problem, or like a broken repository.",
    remedy: "On the node, compare `date -u` with the true time and read `timedatectl` and `chronyc sources`. Set the clock with `chronyc makestep` (Windows: `w32tm /resync`), then let the node join again. If chrony has no source, take the time of the host: add `refclock PHC /dev/ptp_hyperv poll 3 dpoll -2 offset 0` to chrony's configuration in the image. Leave the certificates alone: they are judged by the clock.",
    signs: &[
        Sign::new(56, &["is not yet valid", "current time"]),
        Sign::new(56, &["is not valid yet"]),
        Sign::new(56, &["certificate has expired or is not yet valid"]).fair(),
        Sign::new(57, &["certificate has expired"]).fair(),
        Sign::new(57, &["clock skew"]),
        Sign::new(57, &["certificate is not yet valid"]),
        Sign::new(57, &["token used before issued"]),
        Sign::new(57, &["ssl certificate problem: certificate is not yet valid"]),
        Sign::new(58, &["time is not synchronized"]).fair(),
        Sign::new(57, &["time drift"]).fair(),
        Sign::new(57, &["current time", "is after"]).fair(),
        Sign::new(57, &["request time too skewed"]),
    ],
    subject: None,
};

examples! {
    finds: "x509: certificate has expired or is not yet valid: current time 1970-01-01T00:00:52Z is before 2025-03-02T10:11:12Z",
    leaves: "systemd-timesyncd: Initial synchronization to time server",
}
