//! Step 1, the base of the system: programs, kernel settings, no swap, a resolver that pods can use.

use std::fs;

use bringup_contract::Cause;

use super::program;
use super::task::{Failure, Task};
use crate::crash_points;

/// Programs that kubeadm, kubelet and this agent call, and the packages that contain them.
const PROGRAMS: [(&str, &str); 5] = [
    ("iptables", "iptables"),
    ("jq", "jq"),
    ("conntrack", "conntrack"),
    ("curl", "curl"),
    ("tar", "tar"),
];

/// Kernel modules that containers and bridges need.
const MODULES: &str = "overlay\nbr_netfilter\n";

/// The required kernel settings.
const SETTINGS: [(&str, &str); 3] = [
    ("net.ipv4.ip_forward", "1"),
    ("net.bridge.bridge-nf-call-iptables", "1"),
    ("net.bridge.bridge-nf-call-ip6tables", "1"),
];

/// The name sorts late, so that no other file overrides these settings.
const SETTINGS_FILE: &str = "/etc/sysctl.d/99-zz-bringup.conf";
const MODULES_FILE: &str = "/etc/modules-load.d/bringup.conf";
const RESOLVER: &str = "/etc/resolv.conf";
/// The name servers that systemd-resolved itself uses.
const BEHIND_THE_STUB: &str = "/run/systemd/resolve/resolv.conf";
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    programs(task)?;
    kernel(task)?;
    swap(task)?;
    resolver(task)
}

fn programs(task: &mut Task<'_>) -> Result<(), Failure> {
    let missing = |task: &Task<'_>| -> Vec<(&str, &str)> {
        let absent = |(name, _): &(&str, &str)| program::find(task.root(), name).is_none();
        PROGRAMS.into_iter().filter(absent).collect()
    };
    let wanted = missing(task);
    if wanted.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = wanted.iter().map(|(_, package)| *package).collect();
    let patient = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"];
    let lists = task.have_with("apt-get", &[&patient[..], &["update"]].concat(), "");
    if !lists.well() {
        // The package lists of the image may be sufficient.
        task.saw(lists.told());
    }
    let install = ["install", "-y", "--no-install-recommends", "--"];
    let installed = task.have("apt-get", &[&patient[..], &install, &packages].concat());
    installed.map_err(|mut failure| {
        failure.output = format!("{}\n{}", lists.both(), failure.output);
        failure
    })?;
    task.did(format!("installed {}", packages.join(", ")));
    match missing(task).first() {
        None => Ok(()),
        Some((name, package)) => Err(Failure::because(
            Cause::BinaryMissing,
            format!("{name} does not exist, although the package {package} was installed"),
        )),
    }
}

fn kernel(task: &mut Task<'_>) -> Result<(), Failure> {
    let wrong = |task: &Task<'_>| -> Option<&str> {
        let place = |name: &str| format!("/proc/sys/{}", name.replace('.', "/"));
        let off = |(name, value): &&(&str, &str)| task.text(&place(name)).trim() != *value;
        SETTINGS.iter().find(off).map(|(name, _)| *name)
    };
    let lines = SETTINGS.map(|(name, value)| format!("{name} = {value}\n")).concat();
    let mut written = task.put(MODULES_FILE, MODULES.as_bytes(), 0o644)?;
    written |= task.put(SETTINGS_FILE, lines.as_bytes(), 0o644)?;
    if !written && wrong(task).is_none() {
        return Ok(());
    }
    let mut said = String::new();
    for module in MODULES.lines() {
        // The module may be built into the kernel; the settings show whether it works.
        let loaded = task.have_with("modprobe", &[module], "");
        if !loaded.well() {
            said = format!("{said}{}\n", loaded.told());
            task.saw(loaded.told());
        }
    }
    let set = task.have_with("sysctl", &["-p", &task.at(SETTINGS_FILE)], "");
    match wrong(task) {
        None => {
            task.did("kernel settings are made");
            Ok(())
        }
        Some(name) => {
            let mut failure =
                Failure::because(Cause::KernelMismatch, format!("{name} cannot be set"))
                    .with(set.told());
            failure.output = format!("{said}{}", set.both());
            if !said.is_empty() {
                failure = failure.with(said.trim());
            }
            let secure = fs::read(task.root().at(SECURE_BOOT)).ok().and_then(|b| b.last().copied());
            if secure == Some(1) {
                failure = failure
                    .with("Secure Boot is on: modules that are not signed are refused; is this image made for Trusted Launch?");
            }
            Err(failure)
        }
    }
}

fn swap(task: &mut Task<'_>) -> Result<(), Failure> {
    let areas = |task: &Task<'_>| task.text("/proc/swaps").lines().skip(1).count();
    if areas(task) > 0 {
        let off = task.have("swapoff", &["-a"])?;
        if areas(task) > 0 {
            return Err(Failure::of(&off).with("/proc/swaps still lists swap after swapoff -a"));
        }
        task.did("swap is off");
    }
    let table = task.text("/etc/fstab");
    let without = without_swap(&table);
    if without != table && task.put("/etc/fstab", without.as_bytes(), 0o644)? {
        task.did("swap is taken out of /etc/fstab");
    }
    Ok(())
}

/// The table of file systems with its swap entries commented out.
fn without_swap(table: &str) -> String {
    let mut text = String::new();
    for line in table.split_inclusive('\n') {
        let is_swap =
            !line.trim_start().starts_with('#') && line.split_whitespace().nth(2) == Some("swap");
        text.push_str(if is_swap { "# bringup: " } else { "" });
        text.push_str(line);
    }
    text
}

/// Pods cannot use a resolver on the loopback address.
fn resolver(task: &mut Task<'_>) -> Result<(), Failure> {
    if !is_stub(&task.text(RESOLVER)) {
        return Ok(());
    }
    if is_stub(&task.text(BEHIND_THE_STUB)) {
        let error =
            format!("{RESOLVER} names a stub, and {BEHIND_THE_STUB} no name server behind it");
        return Err(Failure::because(Cause::DnsFailure, error));
    }
    let (link, made) = (task.root().at(RESOLVER), task.root().at("/etc/.resolv.conf.bringup-new"));
    let _ = fs::remove_file(&made);
    crash_points::reached("link the resolver");
    std::os::unix::fs::symlink(format!("..{BEHIND_THE_STUB}"), &made)
        .and_then(|()| fs::rename(&made, &link))
        .map_err(|error| Failure::of_file(task.root(), &link, &error))?;
    task.did(format!("{RESOLVER} is now {BEHIND_THE_STUB}"));
    Ok(())
}

/// Whether all name servers of a resolver are on this machine.
fn is_stub(text: &str) -> bool {
    let mut servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()).flatten()
    });
    !servers.any(|server| !server.starts_with("127.") && server != "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_in_the_table_is_commented_out_once() {
        let table = "UUID=1 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n# /x none swap\n";
        let without = without_swap(table);
        assert!(without.contains("\n# bringup: /swap.img none swap sw 0 0\n"));
        assert_eq!(without_swap(&without), without);
    }

    #[test]
    fn a_resolver_on_this_machine_alone_is_a_stub() {
        assert!(is_stub("nameserver 127.0.0.53\noptions edns0\n"));
        assert!(is_stub("") && is_stub("nameserver ::1\n"));
        assert!(!is_stub("nameserver 127.0.0.1\nnameserver 168.63.129.16\n"));
    }
}
