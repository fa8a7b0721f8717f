//! What a line of a log is, apart from what it says: the component that wrote it, and how loud.
//!
//! Journal, syslog, klog, logrus and zap, waagent, cloud-init and bash traces are read. A line that fits none
//! of these stays text.

use std::sync::LazyLock;

use regex::Regex;

use crate::words::Words;

/// How loud a component says a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The guest agent's account of what it does; it looks for things that are not there on every boot.
    Routine,
    /// Something normal, by its own account.
    Normal,
    /// A warning.
    Warning,
    /// An error; or the line does not say.
    Error,
}

/// Daemons that run beside a bootstrap and take no part in it. What they complain of cannot explain a node
/// that did not come up.
const BYSTANDERS: &[&str] = &[
    "accounts-daemon",
    "acpid",
    "agetty",
    "apport",
    "atd",
    "audit",
    "auditbeat",
    "auditd",
    "auoms",
    "avahi-daemon",
    "azsecd",
    "azuremonitoragent",
    "calico-node",
    "chrony",
    "chronyd",
    "clamd",
    "collectd",
    "cron",
    "crond",
    "datadog-agent",
    "dbus-daemon",
    "dbus-broker",
    "fail2ban-server",
    "filebeat",
    "fluent-bit",
    "fluentd",
    "fwupd",
    "fwupdmgr",
    "gdm",
    "getty",
    "haveged",
    "irqbalance",
    "iscsid",
    "kdump",
    "landscape-client",
    "lvm",
    "mdsd",
    "metricbeat",
    "microsoft-defender",
    "mdatp",
    "modemmanager",
    "motd-news",
    "multipathd",
    "networkd-dispatcher",
    "node_exporter",
    "node-exporter",
    "ntpd",
    "omsagent",
    "osqueryd",
    "packagekitd",
    "packetbeat",
    "polkitd",
    "pollinate",
    "postfix",
    "prometheus",
    "qualys-cloud-agent",
    "rsyslogd",
    "rtkit-daemon",
    "samhain",
    "sendmail",
    "serial-getty",
    "smartd",
    "snapd",
    "splunkd",
    "sshd",
    "sssd",
    "stunnel",
    "systemd-coredump",
    "systemd-oomd",
    "systemd-timesyncd",
    "telegraf",
    "thermald",
    "tuned",
    "ubuntu-advantage",
    "udisksd",
    "unattended-upgrade",
    "unattended-upgrades",
    "upowerd",
    "vector",
    "wazuh-agentd",
    "wpa_supplicant",
    "xinetd",
    "zabbix_agentd",
    "plymouthd",
    "bpfilter",
    "logrotate",
    "whoopsie",
    "update-notifier",
    "dnsmasq-dhcp",
];

/// The identifier that journald and syslog put before a line: `Jan 01 00:00:00 host name[1]: `.
fn identifier(line: &str) -> Option<&str> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"^(?:<[0-9]+>)?(?:[a-z]{3} +[0-9]{1,2} [0-9:.]{8,15}|[0-9]{4}-[0-9]{2}-[0-9]{2}[t ][0-9:.,]{8,16}(?:z|[+-][0-9:]{4,6})?) ",
            r"[a-z0-9_.-]+ ([a-z0-9_.@/-]+)(?:\[[0-9]+\])?: ",
        ))
        .expect("the pattern is valid")
    });
    if !line.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '<') {
        return None;
    }
    HEAD.captures(line).and_then(|found| found.get(1)).map(|name| name.as_str())
}

/// Whether the component that wrote a line takes no part in a bootstrap. The line comes as it is compared.
pub(crate) fn is_bystander(line: &str) -> bool {
    if let Some(name) = identifier(line) {
        let name = name.rsplit('/').next().unwrap_or(name);
        let name = name.strip_suffix(".service").unwrap_or(name);
        return BYSTANDERS.contains(&name) || unit_of(line).is_some_and(is_other_unit);
    }
    // A console shows identifier and process only.
    let rest = after_kernel_time(line);
    let name = rest.split(['[', ':', ' ']).next().unwrap_or_default();
    let is_named = rest[name.len()..].starts_with('[') && rest.contains("]: ");
    is_named && BYSTANDERS.contains(&name) || unit_of(line).is_some_and(is_other_unit)
}

/// A line of the console without `[   12.345678] `.
fn after_kernel_time(line: &str) -> &str {
    let rest = line.trim_start();
    match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, rest))
            if time.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            rest
        }
        _ => rest,
    }
}

/// The unit that systemd says something about.
fn unit_of(line: &str) -> Option<&str> {
    let end = line.find(".service")?;
    let start = line[..end]
        .rfind(|letter: char| !letter.is_ascii_alphanumeric() && !"-_@.".contains(letter));
    let unit = &line[start.map_or(0, |at| at + 1)..end];
    (!unit.is_empty()).then_some(unit)
}

/// Units whose failure has nothing to do with a bootstrap.
fn is_other_unit(unit: &str) -> bool {
    let unit = unit.split('@').next().unwrap_or(unit);
    BYSTANDERS.contains(&unit)
        || [
            "apt-daily",
            "apt-daily-upgrade",
            "apt-news",
            "esm-cache",
            "e2scrub",
            "fstrim",
            "man-db",
            "motd-news",
            "plymouth",
            "systemd-update-utmp",
            "systemd-networkd-wait-online",
            "snap.",
            "snapd",
            "casper",
            "ua-",
            "ubuntu-",
            "kerneloops",
            "fwupd",
            "dailyaptupdate",
            "cloud-init-hotplugd",
            "getty",
            "console-setup",
            "keyboard-setup",
            "setvtrgb",
            "grub-common",
            "grub-initrd",
            "lvm2",
            "open-vm-tools",
            "vgauth",
            "sysstat",
            "rsync",
            "ntp",
            "azuremonitor",
            "omid",
            "omsagent",
            "mdatp",
            "nfs-",
            "rpc-",
            "cups",
            "bluetooth",
            "dmesg",
            "kdump",
            "node-problem-detector",
            "node-exporter",
            "logrotate",
        ]
        .iter()
        .any(|other| unit.starts_with(other))
}

/// What a line says of its own level. Of several, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Normal,
    Routine,
    /// cloud-init warns that a module failed, and goes on with the next one.
    ModuleFailed,
    Warning,
}

const SAID: &[(Said, &[&str])] = &[
    (Said::Normal, &["level=info", "level=debug", "'level':'info'", "'level':'debug'"]),
    // waagent: `2025/08/11 03:15:22.410117 INFO ExtHandler`.
    (
        Said::Routine,
        &[" info exthandler", " verbose exthandler", " info daemon", " info azure", " verbose "],
    ),
    (Said::ModuleFailed, &["failed to run module", "failed running "]),
    // An Event of type Warning is none: Kubernetes calls errors so.
    (Said::Warning, &["level=warn", "'level':'warn'", "[warning", "warning: "]),
];

/// How loud a line says it is.
pub(crate) fn level(line: &str) -> Level {
    static WORDS: LazyLock<Words<Said>> = LazyLock::new(|| Words::new(SAID));
    let head = &line[..line.floor_char_boundary(130)];
    if let Some(level) = klog(head.as_bytes()) {
        return level;
    }
    match WORDS.first_in(head) {
        Some(Said::Normal) => Level::Normal,
        Some(Said::Routine) if is_tried_for_long(line) => Level::Error,
        Some(Said::Routine) => Level::Routine,
        Some(Said::Warning) => Level::Warning,
        Some(Said::ModuleFailed) | None => Level::Error,
    }
}

/// The level of a line of klog: `I1103 10:00:00.123456`, at its beginning or after what a journal puts before.
fn klog(head: &[u8]) -> Option<Level> {
    let mark = |at: &usize| {
        let is_first =
            *at == 0 || matches!(head[at.saturating_sub(1)], b' ' | b'\t' | b'\'' | b'>');
        let rest = &head[at.saturating_add(1)..];
        let are_digits = |from: usize, to: usize| {
            rest.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
        };
        is_first
            && matches!(head[*at], b'i' | b'w' | b'e' | b'f')
            && are_digits(0, 4)
            && rest.get(4) == Some(&b' ')
            && are_digits(5, 7)
            && rest.get(7) == Some(&b':')
    };
    (0..head.len()).find(mark).map(|at| match head[at] {
        b'i' => Level::Normal,
        b'w' => Level::Warning,
        _ => Level::Error,
    })
}

/// Whether the guest agent has looked for the wire server ten times and more.
fn is_tried_for_long(line: &str) -> bool {
    let count = line.split_once("retry detect protocols: retry=").map(|(_, count)| count);
    count.is_some_and(|count| count.bytes().take_while(u8::is_ascii_digit).count() >= 2)
}

/// What a line says of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Retry {
    GivenUp,
    GoesOn,
}

const RETRIES: &[(Retry, &[&str])] = &[
    (
        Retry::GoesOn,
        &[
            "will retry",
            "retrying",
            "will try again",
            "trying again",
            "try again in",
            "retry in ",
            "retry after",
            "retry attempt",
            "(attempt ",
            " attempt ",
            "attempt #",
            "waiting to retrieve",
            "calling 'none' failed",
            "backing off",
            "waiting for cache lock",
            "next attempt",
            "sleeping before",
            "will be retried",
            "retries left",
            "failed, retry",
        ],
    ),
    (
        Retry::GivenUp,
        &[
            "gave up",
            "giving up",
            "retries exceeded",
            "attempts exceeded",
            "limit exceeded",
            "last attempt",
            "no more",
            "all attempts",
            "after 3 attempts",
            "attempts failed",
            "max retries",
            "error execution phase",
            "fatal",
        ],
    ),
];

/// What retries say of themselves: as long as they go on, nothing is decided.
pub(crate) fn is_retry(line: &str) -> bool {
    static WORDS: LazyLock<Words<Retry>> = LazyLock::new(|| Words::new(RETRIES));
    WORDS.first_in(line) == Some(Retry::GoesOn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_beside_the_bootstrap_is_a_bystander_in_every_format() {
        for line in [
            "nov 03 10:00:00 node-1 snapd[812]: error: connection refused",
            "2026-03-02t10:00:00.123+00:00 node-1 chronyd[99]: could not resolve host",
            "[   12.345678] sshd[771]: error: permission denied",
            "nov 03 10:00:00 node-1 systemd[1]: fwupd-refresh.service: failed with result 'exit-code'.",
        ] {
            assert!(is_bystander(line), "{line}");
        }
        for line in [
            "nov 03 10:00:00 node-1 kubelet[812]: error: connection refused",
            "[   12.345678] cloud-init[771]: sshd: permission denied",
            "nov 03 10:00:00 node-1 systemd[1]: kubelet.service: failed with result 'exit-code'.",
            "error: connection refused",
        ] {
            assert!(!is_bystander(line), "{line}");
        }
    }

    #[test]
    fn a_line_says_how_loud_it_is() {
        assert_eq!(
            level("nov 03 10:00:00 n kubelet[1]: i1103 10:00:00.123456    1 a.go:1] failed"),
            Level::Normal
        );
        assert_eq!(level("e1103 10:00:00.123456    1 a.go:1] failed"), Level::Error);
        assert_eq!(level("2025/08/11 03:15:22.410117 info exthandler wire server"), Level::Routine);
        assert_eq!(level("time='x' level=warning msg='y'"), Level::Warning);
        assert_eq!(level("curl: (6) could not resolve host"), Level::Error);
    }
}
