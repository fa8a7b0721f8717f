//! A download broke off or was corrupt.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::DownloadInterrupted,
    title: "a download broke off or was corrupt",
    looks_like: "`connection reset by peer`, `unexpected end of file` after a download, a checksum that does not match.",
    misleads: "The step reports \"timeout\".",
    remedy: "Try again with a new node: one break proves nothing. If it repeats, fetch the address in the line on the node a few times, `curl -fvL -o /tmp/x URL && sha256sum /tmp/x`: a changing size or checksum shows that something on the way cuts or rewrites it. Find it with `az network nic show-effective-route-table -g NODE_GROUP -n NIC -o table` (a next hop VirtualAppliance is a firewall) and exempt HOST from its inspection and size limits, or mirror the file. The firewall's owner sees the resets.",
    signs: &[
        Sign::new(85, &["connection reset by peer"]).unless(&["6443", "azmk8s"]),
        Sign::new(85, &["unexpected end of file"]).fair(),
        Sign::new(85, &["checksum mismatch"]),
        Sign::new(85, &["hash sum mismatch"]),
        Sign::new(85, &["transfer closed with"]),
        Sign::new(85, &["curl: (18)"]),
        Sign::new(85, &["failed to copy", "reset"]),
        Sign::new(85, &["failed to copy: httpreadseeker"]).fair(),
        Sign::new(86, &["gzip: stdin: not in gzip format"]),
        Sign::new(86, &["digest", "mismatch"]).fair(),
        Sign::new(86, &["unexpected eof"]).unless(&["template"]).fair(),
        Sign::new(86, &["checksum did not match"]),
        Sign::new(86, &["incomplete read"]).fair(),
        Sign::new(86, &["checksums did not match"]),
        Sign::new(86, &["checksum", "did not match"]),
        Sign::new(86, &["sha256", "mismatch"]),
        Sign::new(86, &["recv failure"]),
        Sign::new(86, &["partial file"]).fair(),
        Sign::new(86, &["checksum verification failed"]),
        Sign::new(86, &["http2: server sent goaway"]).fair(),
        Sign::new(86, &["stream error", "internal_error"]).fair(),
        Sign::new(86, &["archive is corrupt"]).fair(),
        Sign::new(86, &["end of central directory"]).fair(),
        Sign::new(87, &["curl: (56)"]).fair(),
        Sign::new(86, &["the requested url returned error: 429"]),
        Sign::new(86, &["the requested url returned error: 5"]),
    ],
    subject: None,
};

examples! {
    finds: "failed to copy: read tcp 192.0.2.14:40112->203.0.113.80:443: read: connection reset by peer",
    leaves: "100 45.1M 100 45.1M 0 0 22.4M",
}
