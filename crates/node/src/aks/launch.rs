//! `launch`: replaces the launcher script of the image. Waits for the hostname, then provisions with the
//! delivered files.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::aks::commands;
use crate::aks::environment;
use crate::aks::hotfix;
use crate::aks::provision;
use crate::args::{Arguments, duration};
use crate::host::linux::store;
use crate::output;

/// The longest wait for the hostname.
const HOSTNAME: Duration = Duration::from_mins(1);

/// Launches; returns the exit code of the attempt.
pub(crate) fn run(agent: &Agent, arguments: &Arguments) -> i32 {
    let root = &agent.root;
    let given = arguments.value("hostname-timeout").and_then(duration);
    if !hostname_settled(agent, given.unwrap_or(HOSTNAME)) {
        agent.log.warn("the host name differs from /etc/hostname; continuing");
    }
    let mut flags = Vec::new();
    for (name, path) in
        [("provision-config", root.configuration()), ("nbc-cmd", root.nbc_command())]
    {
        if path.exists() {
            flags.push((name, path.display().to_string()));
        }
    }
    if flags.is_empty() {
        if arguments.given("require-config") {
            return provision::never_started(agent, "there is no provision config or nbc cmd");
        }
        let gone = "Gracefully exit aks-node-controller without provision config or nbc cmd";
        agent.log.info(gone);
        output::answer(&format!("{gone}\n"));
        return 0;
    }
    let (features, reported) =
        environment::features(&store::head(&root.features(), 64 * 1024).unwrap_or_default());
    for remark in &reported {
        agent.log.warn(remark);
    }
    if root.hotfix_pointer().exists() {
        commands::install_hotfix(agent);
    }
    hand_over(agent, &flags, &features);
    provision::run(agent, &arguments.turned_into("provision", &flags), &features)
}

/// Replaces this process with a newer agent. Returns only if there is no newer agent.
fn hand_over(agent: &Agent, flags: &[(&str, String)], features: &[(String, String)]) {
    let Some(newer) = hotfix::newer(agent) else { return };
    agent.log.info("the hotfix of the agent takes over");
    let flags = flags.iter().map(|(name, value)| format!("--{name}={value}"));
    let error = std::process::Command::new(&newer)
        .arg("provision")
        .args(flags)
        .envs(features.iter().cloned())
        .exec();
    agent.log.warn(&format!("the hotfix cannot be run: {error}"));
}

/// Like [`hand_over`], for `provision-wait`.
pub(crate) fn hand_over_waiting(agent: &Agent, typed: impl Iterator<Item = OsString>) {
    let Some(newer) = hotfix::newer(agent) else { return };
    agent.log.info("the hotfix of the agent waits instead");
    let error = std::process::Command::new(&newer).args(typed).exec();
    agent.log.warn(&format!("the hotfix cannot be run: {error}"));
}

/// Waits until this machine has its final hostname.
fn hostname_settled(agent: &Agent, limit: Duration) -> bool {
    let begun = Instant::now();
    loop {
        let wanted = store::line(&agent.root.hostname());
        let has = store::line(Path::new("/proc/sys/kernel/hostname"));
        if wanted.is_none() || wanted == has {
            return true;
        }
        if begun.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
