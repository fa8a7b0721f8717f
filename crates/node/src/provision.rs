//! `provision`: checks, runs the scripts, and sees to it that there is a result, whatever happens.
//!
//! The order on disk: the result, the report, `run.json`, the mark, and `provision.complete` last.
//! Whoever sees a file sees everything before it.

mod conclusion;

use std::io::BufReader;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::Agent;
use crate::args::Arguments;
use crate::code::{self, Own};
use crate::config::{self, Command, ConfigError};
use crate::environment::Variables;
use crate::events::Level;
use crate::keeper::{self, Told};
use crate::leftovers::{Decision, Leftovers};
use crate::lock;
use crate::log;
use crate::preflight::{self, Finding, State, Subject, Which};
use crate::result::Outcome;
use crate::run::{Identity, Run};
use crate::settings::Policy;
use crate::store;
use crate::waiter;
use crate::watch::Watch;

/// An attempt under way.
struct Attempt<'a> {
    agent: &'a Agent,
    identity: Identity,
    run: Run,
    preflight: Vec<Finding>,
    reported: Vec<String>,
}

/// Runs an attempt; the code is what it ended with.
pub(crate) fn run(agent: &Agent, arguments: &Arguments, features: &[(String, String)]) -> i32 {
    let inherited = inherited(features);
    let path = |name| arguments.value(name).map(Path::new);
    let command = config::command(path("provision-config"), path("nbc-cmd"), inherited);
    if arguments.given("dry-run") {
        return dry_run(agent, command);
    }
    let _held = match lock::take(&agent.root) {
        Ok(Some(held)) => Some(held),
        Ok(None) => {
            agent.log.info("another provision is running; its result is waited for");
            return waiter::silently(agent);
        }
        Err(error) => {
            // Without a place for locks there is still a node to bring up.
            agent.log.warn(&format!("no lock: {error}"));
            None
        }
    };
    agent.log.line(log::Level::Info, "aks-node-controller started", &[("task", "Provision")]);
    let mut attempt = Attempt::begin(agent, command.as_ref().ok());
    attempt.event(Level::Informational, "Starting");
    let ended = catch_unwind(AssertUnwindSafe(|| attempt.carry_out(command)));
    ended.unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let error = format!("panic during provisioning: {what}");
        attempt.fail(&Outcome::own(code::REFUSED, &error, ""), Some(code::REFUSED_NAME))
    })
}

/// A mistake in what was typed is a result too: else a waiter waits in vain.
pub(crate) fn refuse(agent: &Agent, why: &str) {
    if let Ok(None) = lock::take(&agent.root) {
        return;
    }
    let mut attempt = Attempt::begin(agent, None);
    attempt.set_aside_what_is_old();
    attempt.fail(&Outcome::own(code::REFUSED, why, ""), Some(code::REFUSED_NAME));
}

/// Nothing was delivered, and that is an error here.
pub(crate) fn never_started(agent: &Agent, why: &str) -> i32 {
    let own = Own::NeverStarted;
    let mut attempt = Attempt::begin(agent, None);
    attempt.set_aside_what_is_old();
    let exit = own.number(agent.settings.base);
    attempt.fail(&Outcome::own(exit, &format!("{}: {why}", own.name()), ""), Some(own.name()))
}

/// What the scripts inherit: what this process has, and the features.
fn inherited(features: &[(String, String)]) -> Variables {
    let mut variables: Variables = std::env::vars_os().collect();
    for (name, value) in features {
        variables.retain(|(known, _)| known != name.as_str());
        variables.push((name.into(), value.into()));
    }
    variables
}

fn dry_run(agent: &Agent, command: Result<Command, ConfigError>) -> i32 {
    match command {
        Ok(command) => {
            let words: Vec<String> =
                command.argv.iter().map(|word| word.display().to_string()).collect();
            agent.log.line(log::Level::Info, "dry-run", &[("command", &words.join(" "))]);
            0
        }
        Err(error) => {
            agent.log.line(log::Level::Error, &error.to_string(), &[]);
            crate::output::remark(&format!("{error}\n"));
            code::REFUSED
        }
    }
}

impl<'a> Attempt<'a> {
    fn begin(agent: &'a Agent, command: Option<&Command>) -> Self {
        let identity = Identity::observe(&agent.root);
        let sha256 = command.map(|command| command.sha256.clone());
        let run = Run::begin(&identity, Timestamp::now(), sha256);
        Self { agent, identity, run, preflight: Vec::new(), reported: Vec::new() }
    }

    fn carry_out(&mut self, command: Result<Command, ConfigError>) -> i32 {
        // Only where tests can be built: what happens when something here is wrong?
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("BRINGUP_NODE_TEST_PANIC").is_none(), "as asked for");
        let mut command = match command {
            Ok(command) => command,
            Err(error) => {
                self.set_aside_what_is_old();
                let refused = Outcome::own(code::REFUSED, &error.to_string(), "");
                return self.fail(&refused, Some(code::REFUSED_NAME));
            }
        };
        let left = Leftovers::observe(&self.agent.root);
        let known = Run::load(&self.agent.root);
        match left.decide(&self.identity, known.as_ref()) {
            Decision::Begin => {}
            Decision::Adopt => {
                self.agent.log.info("this machine is provisioned already; nothing is run");
                self.event(Level::Informational, "Completed");
                return 0;
            }
            Decision::SetAside(why) => self.set_aside(why),
        }
        self.reported.append(&mut command.reported);
        for remark in &self.reported {
            self.agent.log.warn(remark);
        }
        self.save();
        if let Some(refused) = self.check(&command) {
            return refused;
        }
        self.run_scripts(&command)
    }

    /// Runs the checks; a code if they stop the attempt.
    fn check(&mut self, command: &Command) -> Option<i32> {
        let policy = self.agent.settings.preflight;
        if policy == Policy::Off {
            return None;
        }
        // Before PATH was repaired: what is only found by the repair is told.
        let path = std::env::var("PATH").unwrap_or_default();
        let subject = Subject {
            root: self.agent.root.clone(),
            path,
            needs_oras: command.registry,
            variables: command.env.clone(),
            endpoints: self.agent.settings.endpoints.clone(),
        };
        self.preflight = preflight::run(&subject, Which::All);
        for finding in self.preflight.iter().filter(|finding| finding.state.is_odd()) {
            self.agent.log.warn(&format!("preflight {}: {}", finding.short(), finding.detail));
        }
        let fatal = self.preflight.iter().find(|finding| finding.state == State::Fatal)?;
        if policy == Policy::Report {
            return None;
        }
        let settings = &self.agent.settings;
        let (exit, name) = match fatal.name {
            Some(name) => {
                let os_release = store::head(&self.agent.root.os_release(), 16 * 1024);
                let default = || code::oras_default(&os_release.unwrap_or_default());
                (settings.oras.unwrap_or_else(default), name)
            }
            None => (Own::PreflightRefused.number(settings.base), Own::PreflightRefused.name()),
        };
        let error = match fatal.name {
            Some(_) => fatal.detail.to_string(),
            None => format!("{name}: {}: {}", fatal.check, fatal.detail),
        };
        Some(self.fail(&Outcome::own(exit, &error, ""), Some(name)))
    }

    fn run_scripts(&mut self, command: &Command) -> i32 {
        let root = &self.agent.root;
        let containers = root.containers();
        let watch = Watch::on(&[&containers]);
        let stream = match keeper::start(command) {
            Ok(started) => started,
            Err(error) => {
                let failed = Outcome::own(code::REFUSED, &format!("start the keeper: {error}"), "");
                return self.fail(&failed, Some(code::REFUSED_NAME));
            }
        };
        let mut told = BufReader::new(stream);
        if let Some(Told::NotStarted(why)) = self.started(&mut told) {
            let error = format!("start {}: {why}", command.argv[0].display());
            return self.fail(&Outcome::own(code::REFUSED, &error, ""), Some(code::REFUSED_NAME));
        }
        let _ = told.get_ref().set_nonblocking(true);
        let mut concluded = None;
        // The scripts upload logs after they have written the result: the mark does not wait.
        let ended = loop {
            if concluded.is_none() && root.complete().exists() {
                concluded = self.conclude_by_result();
            }
            watch.wait(Some(told.get_ref().as_fd()), Duration::from_secs(1));
            if has_news(told.get_ref()) {
                let _ = told.get_ref().set_nonblocking(false);
                break keeper::next(&mut told);
            }
        };
        concluded.unwrap_or_else(|| self.conclude(ended))
    }

    /// Waits for the word that the scripts run, and writes it down.
    fn started(&mut self, told: &mut BufReader<std::os::unix::net::UnixStream>) -> Option<Told> {
        let first = keeper::next(told);
        if let Some(Told::Started(process)) = &first {
            self.run.running(*process);
            self.save();
        }
        first
    }

    fn save(&self) {
        if let Err(error) = self.run.save(&self.agent.root) {
            self.agent.log.warn(&format!("run.json: {error}"));
        }
    }
}

/// Whether the keeper has said something, or is gone.
fn has_news(stream: &std::os::unix::net::UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
}
