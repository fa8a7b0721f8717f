//! Does another process hold a lock of the package manager?

use std::fs::File;

use bringup_contract::Cause;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use serde_json::json;

use super::{Finding, State, Subject};
use crate::host::linux::store;

/// The files that package managers lock while they work.
const LOCKS: &[&str] = &[
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
    "/var/lib/rpm/.rpm.lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
];

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The path of the lock.
    pub(crate) lock: &'static str,
    /// The process ID.
    pub(crate) pid: i32,
    /// The name of the process.
    pub(crate) name: String,
}

pub(super) fn check(subject: &Subject) -> Finding {
    let holders = holders(subject);
    let updates = subject.root.at("/var/lib/dpkg/updates").read_dir();
    let interrupted = updates.is_ok_and(|mut left| left.next().is_some());
    let data = json!({
        "locks": holders.iter().map(|holder| json!({
            "path": holder.lock, "pid": holder.pid, "name": holder.name,
        })).collect::<Vec<_>>(),
        "interrupted": interrupted,
    });
    let held = holders
        .iter()
        .map(|holder| format!("{} is held by {} ({})", holder.lock, holder.pid, holder.name));
    let left = interrupted.then(|| "/var/lib/dpkg/updates is not empty".to_owned());
    let odd: Vec<String> = held.chain(left).collect();
    if odd.is_empty() {
        return Finding::new("packages", State::Ok, "no process holds a lock", data);
    }
    let found = if holders.is_empty() { "interrupted" } else { "locked" };
    Finding {
        found: Some(found),
        ..Finding::new("packages", State::Warn, &odd.join("; "), data)
            .because(Cause::PackageManagerLocked)
    }
}

/// Queries the kernel for the holders of the locks; takes no lock.
pub(crate) fn holders(subject: &Subject) -> Vec<Holder> {
    let asked = LOCKS.iter().filter_map(|lock| {
        let file = File::open(subject.root.at(lock)).ok()?;
        let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
        let pid = held.pid?.as_raw_nonzero().get();
        let name = store::line(format!("/proc/{pid}/comm").as_ref()).unwrap_or_default();
        Some(Holder { lock, pid, name })
    });
    asked.collect()
}
