//! Processes in `/proc`. A process ID alone is no identity, because IDs are reused; together with the start
//! time of the process it is.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The identity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// The start time, in ticks since the boot.
    pub(crate) start: u64,
}

impl Process {
    /// The process that has this ID now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid, start: start_of(&stat)? })
    }

    /// The current process.
    pub(crate) fn this() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether the process still runs. A zombie does not.
    pub(crate) fn alive(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        start_of(&stat) == Some(self.start) && !matches!(state_of(&stat), Some('Z' | 'X'))
    }
}

/// The fields after the name, which is in parentheses and may contain any character.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn start_of(stat: &str) -> Option<u64> {
    fields(stat)?.nth(19)?.parse().ok()
}

fn state_of(stat: &str) -> Option<char> {
    fields(stat)?.next()?.chars().next()
}

/// Whether a provisioner or launcher runs that holds no lock: the upstream one, or ours before it takes the
/// lock. Under a root, only a process with the same root counts.
pub(crate) fn provisioner_in_sight(root: Option<&Path>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let this = std::process::id().to_string();
    entries.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let pid = name.to_string_lossy();
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && *pid != *this
            && fs::read(entry.path().join("cmdline")).is_ok_and(|line| is_provisioner(&line, root))
    })
}

fn is_provisioner(command_line: &[u8], root: Option<&Path>) -> bool {
    let words: Vec<&str> = command_line
        .split(|byte| *byte == 0)
        .filter_map(|word| std::str::from_utf8(word).ok())
        .collect();
    if root.is_some_and(|root| !words.iter().any(|word| Path::new(word) == root)) {
        return false;
    }
    let mut names = words.iter().take(3).filter_map(|word| Path::new(word).file_name()?.to_str());
    names.any(|name| match name {
        "aks-node-controller-launcher.sh" | "aks-node-controller-wrapper.sh" => true,
        "aks-node-controller" | "aks-node-controller-hotfix" | "bringup-node" => {
            words.iter().any(|word| matches!(*word, "provision" | "launch" | "join"))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_with_its_number_and_another_beginning_is_not() {
        let this = Process::this().unwrap();
        assert!(this.alive());
        assert!(!Process { start: this.start + 1, ..this }.alive());
    }

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let stat = "7 (a) R 9 (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        assert_eq!((start_of(stat), state_of(stat)), (Some(4242), Some('S')));
    }

    #[test]
    fn provisioners_and_launchers_are_recognised_and_waiters_are_not() {
        let line = |words: &[&str]| words.join("\0").into_bytes();
        let upstream = "/opt/azure/containers/aks-node-controller";
        assert!(is_provisioner(&line(&[upstream, "provision", "--nbc-cmd=x"]), None));
        assert!(!is_provisioner(&line(&[upstream, "provision-wait"]), None));
        assert!(is_provisioner(&line(&["/bin/bash", "/x/aks-node-controller-launcher.sh"]), None));
        let ours = line(&["bringup-node", "--root", "/tmp/a", "launch"]);
        assert!(is_provisioner(&ours, Some(Path::new("/tmp/a"))));
        assert!(!is_provisioner(&ours, Some(Path::new("/tmp/b"))));
    }
}
