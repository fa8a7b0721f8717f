//! Step 5: containerd is configured, runs and answers. The same check runs again later, because GPU operators
//! rewrite a part of its configuration when they find the node.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bringup_contract::Cause;

use super::effective::{Effective, Problem, corrected};
use super::task::{self, Failure, Task};
use super::units::{self, Unit};
use crate::clock::{self, Moment};
use crate::host::linux::store;
use crate::host::paths::Root;

const MAIN: &str = "/etc/containerd/config.toml";
const DROP_INS: &str = "/etc/containerd/conf.d";
const SOCKET: &str = "/run/containerd/containerd.sock";
/// The line that marks a file as written by this program.
const OURS: &str = "# Written by bringup-node join.";
/// Requests a restart of containerd; the file survives a reboot and a killed agent.
const RESTART: &str = "/var/lib/bringup-node/join/restart-containerd";
/// The longest that containerd may take to load its plugins.
const PLUGINS: Duration = Duration::from_mins(1);

/// The major and minor version of containerd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Major(u32, u32);

impl fmt::Display for Major {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0, self.1)
    }
}

impl Major {
    /// Queries containerd. A version before 2 is refused.
    pub(super) fn of(task: &Task<'_>) -> Result<Self, Failure> {
        let said = task.ask("containerd", &["--version"]);
        if !said.well() {
            return Err(Failure::of(&said));
        }
        match Self::read(&said.out) {
            Some(version) if version.0 >= 2 => Ok(version),
            Some(version) => Err(Failure::because(
                Cause::ContainerRuntimeFailure,
                format!("containerd is {version}, and must be 2.0 or newer"),
            )),
            None => Err(Failure::unexplained(format!(
                "containerd does not say its version: {}",
                said.out.trim()
            ))),
        }
    }

    fn read(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let mut parts = word.trim_start_matches('v').split('.');
            let first = parts.next()?.parse().ok()?;
            Some(Self(first, parts.next()?.parse().ok()?))
        })
    }

    /// Whether containerd knows `bin_dirs`, which exists from 2.1 on.
    fn knows_bin_dirs(self) -> bool {
        self >= Self(2, 1)
    }
}

/// Requests a restart of containerd. The request is stored before any change, so that it survives a kill.
pub(super) fn ask_for_restart(task: &Task<'_>) -> Result<(), Failure> {
    let path = task.root().at(RESTART);
    store::write(&path, b"").map_err(|error| Failure::of_file(task.root(), &path, &error))
}

/// Step 5.
pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    let written = units::containerd(task)?;
    if written {
        ask_for_restart(task)?;
    }
    settle(task)?;
    answer(task)
}

/// Corrects the configuration and restarts containerd if anything changed.
pub(super) fn settle(task: &mut Task<'_>) -> Result<(), Failure> {
    correct(task)?;
    let marker = task.root().at(RESTART);
    let waits = marker.exists();
    if waits || !Unit::ask(task, "containerd.service").is_active() {
        task.have("systemctl", &["restart", "containerd.service"])?;
        units::wait_until_active(task, "containerd.service", task.left())?;
        store::remove(&marker).map_err(|error| Failure::of_file(task.root(), &marker, &error))?;
        task.did("containerd was started");
    }
    Ok(())
}

/// Corrects the files, drop-ins first and the main file last, and checks the effective configuration.
fn correct(task: &mut Task<'_>) -> Result<(), Failure> {
    let version = Major::of(task)?;
    for path in drop_ins(task.root()) {
        let Ok(text) = store::head(&path, 1 << 20) else { continue };
        if let Some(right) = corrected(&text) {
            ask_for_restart(task)?;
            task::put(&path, right.as_bytes(), 0o644)
                .map_err(|error| Failure::of_file(task.root(), &path, &error))?;
            let told = task.root().told(&path);
            task.did(format!("{told} set the folder of network plugins blank or twice; corrected"));
        }
    }
    let main = task.text(MAIN);
    let before = Effective::read(&main);
    let good = main.starts_with(OURS) && dump(task)?.problems(version.knows_bin_dirs()).is_empty();
    if !good {
        if before.version() == Some("2") && drop_ins(task.root()).iter().any(|path| is_third(path))
        {
            task.saw("the main file was of version 2 and a drop-in of version 3: its sections were ignored");
        }
        write_main(task, &main, &before)?;
    }
    let effective = dump(task)?;
    let problems = effective.problems(version.knows_bin_dirs());
    if problems.is_empty() {
        task.saw(
            "containerd config dump: version 3, systemd cgroups, folder of network plugins set",
        );
        return Ok(());
    }
    Err(refused(task, &problems, &effective))
}

/// The problems that would break a node, with the files that may cause them.
fn refused(task: &Task<'_>, problems: &[Problem], effective: &Effective) -> Failure {
    let network = problems.iter().all(|problem| problem.network);
    let cause = if network { Cause::CniFailure } else { Cause::ContainerRuntimeFailure };
    let what: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let error = format!("the effective configuration of containerd: {}", what.join("; "));
    let mut files = effective.imports();
    if files.is_empty() {
        files = drop_ins(task.root()).iter().map(|path| task.root().told(path)).collect();
    }
    let failure = Failure::because(cause, error);
    if files.is_empty() { failure } else { failure.with(format!("files: {}", files.join(", "))) }
}

/// Whether a file uses version 3 of the configuration format.
fn is_third(path: &Path) -> bool {
    store::head(path, 1 << 20).is_ok_and(|text| Effective::read(&text).version() == Some("3"))
}

fn write_main(task: &mut Task<'_>, old: &str, before: &Effective) -> Result<(), Failure> {
    let config = main_file(task.config.sandbox_image.as_deref(), &before.imports());
    ask_for_restart(task)?;
    if !old.is_empty() && !old.starts_with(OURS) {
        task.put("/etc/containerd/config.toml.before-bringup", old.as_bytes(), 0o644)?;
    }
    if task.put(MAIN, config.as_bytes(), 0o644)? {
        task.did(format!("{MAIN} is written"));
    }
    Ok(())
}

/// The main file, in version 3. The folder of network plugins is left to containerd: its key has another name
/// from 2.1 on, and the default is right in both versions.
fn main_file(sandbox: Option<&str>, imports: &[String]) -> String {
    let ours = format!("{DROP_INS}/*.toml");
    let kept = imports.iter().filter(|path| **path != ours && *path != MAIN);
    let all: Vec<String> =
        [&ours].into_iter().chain(kept).map(|path| format!("{path:?}")).collect();
    let pinned = sandbox.map_or_else(String::new, |image| {
        format!("\n[plugins.\"io.containerd.cri.v1.images\".pinned_images]\nsandbox = {image:?}\n")
    });
    format!(
        "{OURS}\nversion = 3\nimports = [{}]\n{pinned}
[plugins.\"io.containerd.cri.v1.images\".registry]
config_path = \"/etc/containerd/certs.d\"

[plugins.\"io.containerd.cri.v1.runtime\".containerd]
default_runtime_name = \"runc\"

[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc]
runtime_type = \"io.containerd.runc.v2\"

[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc.options]
BinaryName = \"/usr/local/sbin/runc\"
SystemdCgroup = true
",
        all.join(", ")
    )
}

/// The drop-ins, in the order in which containerd reads them.
fn drop_ins(root: &Root) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.at(DROP_INS)).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "toml"))
        .collect();
    paths.sort();
    paths
}

fn dump(task: &Task<'_>) -> Result<Effective, Failure> {
    let said = task.ask("containerd", &["--config", &task.at(MAIN), "config", "dump"]);
    if said.well() {
        return Ok(Effective::read(&said.out));
    }
    let failure = Failure::of(&said);
    let error = format!("containerd does not take its configuration: {}", failure.error);
    let cause = failure.cause.or_else(|| (!failure.late).then_some(Cause::ContainerRuntimeFailure));
    Err(Failure { error, cause, ..failure })
}

/// The least time for another query.
const ENOUGH: Duration = Duration::from_secs(2);

/// Checks the CRI plugin, which kubelet needs.
fn answer(task: &mut Task<'_>) -> Result<(), Failure> {
    let begun = Moment::now();
    loop {
        let said = task.ask("ctr", &["--address", SOCKET, "plugins", "ls"]);
        let state = interface(&said.out);
        if said.well() && state == Some("ok") {
            task.saw("CRI: ok");
            return Ok(());
        }
        // A query without enough time for its answer would only hide the previous answer.
        if begun.elapsed() >= PLUGINS || task.left() <= task.pause().saturating_add(ENOUGH) {
            let what = match state {
                Some(state) => format!("the state of the plugin cri is {state}"),
                None if said.well() => "containerd has no plugin cri".to_owned(),
                None => said.told(),
            };
            let error = format!("containerd's interface for kubelet does not answer: {what}");
            let failure = Failure::of(&said);
            let cause = failure.cause.or(Some(Cause::ContainerRuntimeFailure));
            return Err(Failure { error, cause, ..failure });
        }
        clock::pause(task.pause());
    }
}

/// The state of the CRI plugin, in the list of all plugins.
fn interface(list: &str) -> Option<&str> {
    list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ours = words.first() == Some(&"io.containerd.grpc.v1") && words.get(1) == Some(&"cri");
        words.last().copied().filter(|_| ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_file_is_of_version_3_and_what_was_imported_still_is() {
        let old = [format!("{DROP_INS}/*.toml"), "/opt/x.toml".to_owned()];
        let text = main_file(Some("mcr.example/pause:3.10"), &old);
        let value: toml::Value = toml::from_str(&text).unwrap();
        assert_eq!(value["version"].as_integer(), Some(3));
        assert_eq!(value["imports"].as_array().unwrap().len(), 2);
        let plugins = &value["plugins"];
        assert_eq!(
            plugins["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"].as_str(),
            Some("mcr.example/pause:3.10")
        );
        assert!(!text.contains("bin_dir"));
    }

    #[test]
    fn versions_of_containerd_are_read() {
        let read = |text| Major::read(text);
        assert_eq!(
            read("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2"),
            Some(Major(2, 1))
        );
        assert_eq!(read("containerd containerd.io 1.7.27 05044"), Some(Major(1, 7)));
        assert!(!Major(2, 0).knows_bin_dirs() && Major(2, 1).knows_bin_dirs());
        assert_eq!(read("containerd"), None);
    }

    #[test]
    fn the_interface_is_found_among_the_plugins() {
        let list = "TYPE ID PLATFORMS STATUS\nio.containerd.cri.v1 runtime linux/amd64 ok\nio.containerd.grpc.v1 cri - error\n";
        assert_eq!(interface(list), Some("error"));
        assert_eq!(interface("TYPE ID"), None);
    }
}
