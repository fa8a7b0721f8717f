//! `join`: turns a plain image into a node of a cluster, in steps that can be repeated.
//!
//! ```text
//! configuration ─▶ base-os ─▶ docker ─▶ containerd ─▶ kubernetes ─▶ runtime ─▶ firewall ─▶ join ─▶ ready
//!                  each step: check; if necessary, change; check again; within its time limit
//! ```
//!
//! A step checks the machine itself, not a mark of its own, to see whether it is done. So after a kill or a
//! reboot, starting the join again continues it.

mod artifacts;
mod base;
mod conclusion;
mod containerd;
mod docker;
mod download;
mod effective;
mod firewall;
mod kubeadm;
mod probe;
mod program;
mod ready;
mod state;
mod task;
mod units;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use bringup_contract::Cause;
use bringup_contract::join_config::{JoinConfig, JoinExit, Secret, Step};

use self::conclusion::{Attempt, End, StepReport};
use self::task::{Failure, Task};
use crate::agent::Agent;
use crate::args::Arguments;
use crate::host::linux::{lock, store};
use crate::output;
use crate::secrets::Secrets;

/// The largest configuration that is read.
const LARGEST: usize = 1 << 20;

/// The longest that another join may take: as long as all steps.
const OTHERS: Duration = Duration::from_mins(30);

/// The configuration without its token: the information for later work on a node that has joined.
const KEPT: &str = "/var/lib/bringup-node/join/config.json";

/// The placeholder for the token in that file.
const SPENT_TOKEN: &str = "000000.0000000000000000";

/// Joins; returns the exit code of the process.
pub(crate) fn run(agent: &Agent, arguments: &Arguments) -> u8 {
    if arguments.given("repair-containerd") {
        return repair(agent);
    }
    let Some(path) = arguments.value("config").map(Path::new) else {
        output::remark("join needs --config with the file of its configuration\n");
        return JoinExit::Usage.number();
    };
    let mut held = lock::take(&agent.root);
    if matches!(held, Ok(None)) {
        agent.log.info("another join or provisioning runs; waiting for its end");
        held = lock::take_within(&agent.root.lock(), OTHERS);
    }
    if matches!(held, Ok(None)) {
        output::remark("another join or provisioning runs and does not end\n");
        return JoinExit::Busy.number();
    }
    let config = read(agent, path);
    let mut secrets = config.as_ref().map_or_else(|_| Vec::new(), JoinConfig::secrets);
    // The placeholder for the token is not a secret.
    secrets.retain(|secret| !SPENT_TOKEN.ends_with(secret));
    let agent = &agent.knowing(&Secrets::of(secrets));
    let mut attempt = Attempt::begin(agent);
    let ended = catch_unwind(AssertUnwindSafe(|| match &config {
        Ok(config) => carry_out(&mut attempt, config, path),
        Err(failure) => End::early(JoinExit::ConfigRefused, failure.clone()),
    }));
    let end = ended.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str);
        let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let failure = Failure::unexplained(format!("a defect of bringup-node: {what}"));
        End::early(JoinExit::Internal, failure)
    });
    if end.failure.is_none() {
        // From here on, the file is no longer needed.
        kubeadm::shred(path);
    }
    attempt.conclude(&end)
}

/// Reads the configuration; on a machine that has joined, the stored copy of it.
fn read(agent: &Agent, path: &Path) -> Result<JoinConfig, Failure> {
    let told = |why: String| {
        Failure::because(Cause::ConfigRejected, format!("configuration {}: {why}", path.display()))
    };
    let kept = agent.root.at(KEPT);
    let bytes = match store::bytes(path, LARGEST) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && kept.exists() => {
            store::bytes(&kept, LARGEST)
        }
        other => other,
    };
    let bytes = bytes.map_err(|error| told(error.to_string()))?;
    JoinConfig::parse(&bytes).map_err(|error| told(error.to_string()))
}

/// Runs the steps, up to the first that fails.
fn carry_out(attempt: &mut Attempt<'_>, config: &JoinConfig, path: &Path) -> End {
    // Test builds only: shows how the agent reports a panic.
    #[cfg(debug_assertions)]
    assert!(std::env::var_os("BRINGUP_NODE_TEST_PANIC").is_none(), "as asked for");
    guard(attempt, path);
    keep(attempt, config);
    for step in Step::ALL.iter().copied() {
        let limit = config.limit(step);
        let mut task = Task::begin(attempt.agent, config, Duration::from_secs(limit.into()));
        attempt.agent.log.info(&format!("join: step {step} begins"));
        let done = take(step, &mut task);
        let state = match (&done, task.changed) {
            (Err(_), _) => "failed",
            (Ok(()), true) => "done",
            (Ok(()), false) => "unchanged",
        };
        let ms = u64::try_from(task.took().as_millis()).unwrap_or(u64::MAX);
        let mut evidence = std::mem::take(&mut task.evidence);
        if let Err(failure) = &done {
            evidence.extend(failure.evidence.iter().cloned());
            evidence.push(failure.error.clone());
        }
        attempt
            .agent
            .log
            .info(&format!("join: step {step} {state} after {ms} ms: {}", evidence.join("; ")));
        attempt.steps.push(StepReport { step, state, ms, limit_s: limit, evidence });
        if let Err(failure) = done {
            return End { exit: step.exit(), step: Some(step), failure: Some(failure) };
        }
    }
    End { exit: JoinExit::Joined, step: None, failure: None }
}

fn take(step: Step, task: &mut Task<'_>) -> Result<(), Failure> {
    match step {
        Step::BaseOs => base::run(task),
        Step::Docker => docker::run(task),
        Step::Containerd => artifacts::runtime(task),
        Step::Kubernetes => artifacts::kubernetes(task),
        Step::Runtime => containerd::run(task),
        Step::Firewall => firewall::run(task),
        Step::Join => kubeadm::run(task),
        Step::Ready => ready::run(task),
    }
}

/// The file contains a token: only root may read it.
fn guard(attempt: &mut Attempt<'_>, path: &Path) {
    let open =
        |file: &File| file.metadata().is_ok_and(|data| data.permissions().mode() & 0o077 != 0);
    if File::open(path).is_ok_and(|file| open(&file)) {
        let closed = fs::set_permissions(path, Permissions::from_mode(0o600));
        let told = if closed.is_ok() { "; it is closed now" } else { "" };
        attempt.odd.push(format!("the configuration could be read by others{told}"));
    }
}

/// Stores the configuration without its token, for the time after the join.
fn keep(attempt: &mut Attempt<'_>, config: &JoinConfig) {
    let kept = JoinConfig { token: Secret::new(SPENT_TOKEN), ..config.clone() };
    let text = serde_json::to_string(&kept).unwrap_or_default();
    if let Err(error) = store::write(&attempt.agent.root.at(KEPT), text.as_bytes()) {
        attempt.odd.push(format!("the configuration could not be kept: {error}"));
    }
}

/// `join --repair-containerd`: another program has rewritten a part of containerd's configuration. Corrects
/// settings that would break the node; writes nothing if there is no such setting.
fn repair(agent: &Agent) -> u8 {
    let _held = lock::take_within(&agent.root.lock(), Duration::from_mins(2));
    let config = match read(agent, &agent.root.at(KEPT)) {
        Ok(config) => config,
        Err(failure) => {
            output::remark(&format!("{}\n", failure.error));
            return JoinExit::ConfigRefused.number();
        }
    };
    let limit = Duration::from_secs(config.limit(Step::Ready).into());
    let mut task = Task::begin(agent, &config, limit);
    let done = containerd::settle(&mut task);
    for line in &task.evidence {
        agent.log.info(&format!("repair of containerd: {line}"));
    }
    match done {
        Ok(()) => {
            let what = if task.changed { "corrected" } else { "nothing to correct" };
            output::answer(&format!("{what}\n"));
            JoinExit::Joined.number()
        }
        Err(failure) => {
            let error = agent.secrets.redact(&failure.error);
            agent.log.warn(&format!("repair of containerd: {error}"));
            output::remark(&format!("{error}\n"));
            JoinExit::NotReady.number()
        }
    }
}
