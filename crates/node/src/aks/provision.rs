//! `provision`: runs the checks and the scripts, and guarantees a result in every case.
//!
//! The order on disk: the result, the report, `run.json`, the mark, and `provision.complete` last. A reader
//! that sees one of these files also sees all files before it.

mod conclusion;
mod scripts;
mod turn;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::agent::Agent;
use crate::aks::config::{self, Command, ConfigError, Given, comparison};
use crate::aks::environment::Variables;
use crate::aks::exit_code::{self, Own};
use crate::aks::preflight::{self, Finding, State, Subject, Which};
use crate::aks::result_files::{Decision, Leftovers};
use crate::args::Arguments;
use crate::events::Level;
use crate::host::linux::lock;
use crate::host::linux::process::Process;
use crate::host::linux::store;
use crate::log;
use crate::outcome::Outcome;
use crate::run::{self, Identity, Run};
use crate::secrets::Secrets;
use crate::settings::Policy;

use self::turn::Turn;

/// An attempt under way.
struct Attempt<'a> {
    agent: &'a Agent,
    identity: Identity,
    run: Run,
    preflight: Vec<Finding>,
    reported: Vec<String>,
    /// Results of earlier attempts that could not be moved away.
    before: Leftovers,
}

/// Runs an attempt; returns its exit code.
pub(crate) fn run(agent: &Agent, arguments: &Arguments, features: &[(String, String)]) -> i32 {
    let path = |name| arguments.value(name).map(Path::new);
    let given = Given { configuration: path("provision-config"), ready_made: path("nbc-cmd") };
    let (root, rules) = (&agent.root, &agent.settings.rules);
    let inherited = inherited(features);
    let command = config::command(given, root, rules, inherited.clone());
    let known = command.as_ref().map_or_else(|_| Secrets::default(), |made| made.secrets.clone());
    let told = command.as_ref().map_or_else(|_| Vec::new(), |made| made.env.clone());
    let agent = &agent.knowing(&known).telling(told);
    if arguments.given("dry-run") {
        return dry_run(agent, command);
    }
    let _held = match turn::take(agent) {
        Turn::Ours(held) => held,
        Turn::Ended(exit) => return exit,
    };
    agent.log.line(log::Level::Info, "aks-node-controller started", &[("task", "Provision")]);
    if let Some(exit) = Attempt::interrupted(agent).and_then(|mut attempt| attempt.resume()) {
        return exit;
    }
    let mut attempt = Attempt::begin(agent, command.as_ref().ok(), given);
    attempt.event(Level::Informational, "Starting");
    let ended = catch_unwind(AssertUnwindSafe(|| attempt.carry_out(command)));
    let exit = ended.unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let error = format!("panic during provisioning: {what}");
        attempt.fail(&Outcome::own(exit_code::REFUSED, &error, ""), Some(exit_code::REFUSED_NAME))
    });
    if let Given { configuration: Some(configuration), ready_made: Some(ready_made) } = given {
        let told = comparison::compare(root, ready_made, configuration, rules, &inherited);
        attempt.write_event("AKS.AKSNodeController.CompareEnvs", Level::Informational, &told);
    }
    exit
}

/// A mistake on the command line is a result too: otherwise a waiter would wait in vain. While another agent
/// or its scripts run, the waiter gets their result, and this function writes none.
pub(crate) fn refuse(agent: &Agent, why: &str) {
    let held = lock::take(&agent.root);
    let working = Attempt::interrupted(agent).is_some_and(|attempt| attempt.scripts_live());
    if matches!(held, Ok(None)) || working {
        return;
    }
    let mut attempt = Attempt::begin(agent, None, Given::default());
    attempt.clear();
    attempt.fail(&Outcome::own(exit_code::REFUSED, why, ""), Some(exit_code::REFUSED_NAME));
}

/// Neither a command nor a configuration was delivered, which is an error here.
pub(crate) fn never_started(agent: &Agent, why: &str) -> i32 {
    let own = Own::NeverStarted;
    let mut attempt = Attempt::begin(agent, None, Given::default());
    attempt.clear();
    let exit = own.number(agent.settings.base);
    attempt.fail(&Outcome::own(exit, &format!("{}: {why}", own.name()), ""), Some(own.name()))
}

/// The variables that the scripts inherit: the variables of this process, and the features.
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
            for remark in &command.reported {
                agent.log.warn(remark);
            }
            let words: Vec<String> =
                command.argv.iter().map(|word| word.display().to_string()).collect();
            agent.log.line(log::Level::Info, "dry-run", &[("command", &words.join(" "))]);
            0
        }
        Err(error) => {
            agent.log.line(log::Level::Error, &error.to_string(), &[]);
            crate::output::remark(&format!("{error}\n"));
            exit_code::REFUSED
        }
    }
}

impl<'a> Attempt<'a> {
    fn begin(agent: &'a Agent, command: Option<&Command>, given: Given<'_>) -> Self {
        let identity = Identity::observe(&agent.root);
        let sha256 = command.map(|command| command.sha256.clone());
        let mut run = Run::begin(&identity, run::now(), sha256);
        let given = [given.configuration, given.ready_made].into_iter().flatten();
        run.given = given.filter_map(|path| std::path::absolute(path).ok()).collect();
        Self::of(agent, identity, run)
    }

    fn of(agent: &'a Agent, identity: Identity, run: Run) -> Self {
        let (preflight, reported) = (Vec::new(), Vec::new());
        Self { agent, identity, run, preflight, reported, before: Leftovers::default() }
    }

    /// The attempt of an agent that has ended, if its scripts began in this boot and no result concludes the
    /// attempt.
    fn interrupted(agent: &'a Agent) -> Option<Self> {
        let identity = Identity::observe(&agent.root);
        let run = Run::load(&agent.root)?;
        let begun = run.is_of(&identity) && run.child().is_some();
        if !begun || Leftovers::observe(&agent.root).concludes(&run) {
            return None;
        }
        Some(Self::of(agent, identity, run.taken_over()))
    }

    /// The results of this attempt.
    fn left(&self) -> Leftovers {
        Leftovers::observe(&self.agent.root).without(&self.before)
    }

    /// Continues an attempt whose agent was killed: waits for the scripts and reports their result. Returns
    /// `None` if the scripts left no result; then a new attempt begins.
    fn resume(&mut self) -> Option<i32> {
        self.agent.log.info("an agent was killed before its attempt ended; going on with it");
        if self.scripts_live() {
            self.save();
        }
        self.follow()
    }

    /// Whether the scripts of this attempt still run.
    fn scripts_live(&self) -> bool {
        self.run.child().is_some_and(Process::alive)
    }

    fn carry_out(&mut self, command: Result<Command, ConfigError>) -> i32 {
        // Test builds only: shows how the agent reports a panic.
        #[cfg(debug_assertions)]
        assert!(std::env::var_os("BRINGUP_NODE_TEST_PANIC").is_none(), "as asked for");
        let mut command = match command {
            Ok(command) => command,
            Err(error) => {
                self.clear();
                let refused = Outcome::own(exit_code::REFUSED, &error.to_string(), "");
                return self.fail(&refused, Some(exit_code::REFUSED_NAME));
            }
        };
        if self.decided() == Decision::Adopt {
            return self.adopt();
        }
        self.clear();
        self.reported.append(&mut command.reported);
        for remark in &self.reported {
            self.agent.log.warn(remark);
        }
        if let Some(refused) = self.check(&command) {
            return refused;
        }
        self.run_scripts(&command)
    }

    fn decided(&self) -> Decision {
        let known = Run::load(&self.agent.root);
        Leftovers::observe(&self.agent.root).decide(&self.identity, known.as_ref())
    }

    /// A successful result of this machine exists: nothing runs. If an earlier agent was killed before it
    /// reported the success, this agent reports it.
    fn adopt(&mut self) -> i32 {
        self.agent.log.info("this machine is provisioned already; nothing is run");
        let left = Leftovers::observe(&self.agent.root);
        let known = Run::load(&self.agent.root).filter(|run| run.child().is_some());
        if let (Some(run), None) = (known, left.mark) {
            self.run = run.taken_over();
            return self.conclude_by_result().unwrap_or_default();
        }
        self.event(Level::Informational, "Completed");
        0
    }

    /// Records that an attempt begins, then moves away earlier results. The order matters: results that are
    /// older than the recorded beginning do not count, even if the process is killed between the two steps.
    fn clear(&mut self) {
        let decision = self.decided();
        self.save();
        match decision {
            Decision::Begin => {}
            Decision::Adopt => self.set_aside("this attempt ends another way"),
            Decision::SetAside(why) => self.set_aside(why),
        }
        self.before = Leftovers::observe(&self.agent.root);
    }

    /// Runs the checks; returns an exit code if they stop the attempt.
    fn check(&mut self, command: &Command) -> Option<i32> {
        let policy = self.agent.settings.preflight;
        if policy == Policy::Off {
            return None;
        }
        // The PATH before its repair, so that the checks report a program that only the repair makes
        // available.
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
                let default = || exit_code::oras_default(&os_release.unwrap_or_default());
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

    fn save(&self) {
        if let Err(error) = self.run.save(&self.agent.root) {
            self.agent.log.warn(&format!("run.json: {error}"));
        }
    }
}
