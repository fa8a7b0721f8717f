//! The small commands, and what is said when a command is wrong.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::agent::Agent;
use crate::args::Arguments;
use crate::code::{self, Own};
use crate::hotfix;
use crate::leftovers::Leftovers;
use crate::log::Log;
use crate::output;
use crate::postmortem::{examine, summarise};
use crate::preflight::{self, Finding, State, Subject, Which};
use crate::provision;
use crate::result::Outcome;
use crate::run::Run;
use crate::secrets::Secrets;
use crate::store;

/// What a wrong command ends with.
pub(crate) const EXIT: u8 = 64;

const COMMANDS: &str = "\
  provision --provision-config PATH | --nbc-cmd PATH [--dry-run] [--preflight off|report|enforce]
            [--reject-v0] [--strict-required] [--mcr-repository-base REGISTRY]
  provision-wait [--timeout TIME] [--start-timeout TIME]
  wait [--sentinel PATH]... [--timeout TIME] [--watch cloud-init|unit=NAME|aks] (docs/node-wait.md)
  extension install|enable|update|disable|uninstall (docs/vm-extension.md)
  join --config PATH (docs/node-join.md)
  launch [--require-config] [--hostname-timeout TIME], and the flags of provision
  preflight [--json] [--only oras]
  postmortem
  report [--json]
  customdata FILE [--format boothook|cloud-config|ignition]
  check-hotfix, download-hotfix
  version, help

Every command takes
  --root DIR                            built-in paths are under DIR
  --exit-code propagate|legacy          legacy ends with 0 or 1 only
  --own-code-base N                     where the agent's own codes begin (244)
  --code ERR_ORAS_BINARY_NOT_FOUND=N    the number of this name (232; 250 where 232 is taken)
";

/// By which name the program was started.
#[derive(Debug)]
pub(crate) struct Program(String);

impl Program {
    /// The name of the file that was started.
    pub(crate) fn of(started: &OsStr) -> Self {
        let name = Path::new(started).file_name().unwrap_or(OsStr::new("bringup-node"));
        Self(name.to_string_lossy().into_owned())
    }
}

fn text(program: &Program) -> String {
    format!("Usage: {} COMMAND [FLAGS]\n\n{COMMANDS}", program.0)
}

pub(crate) fn help(program: &Program) -> u8 {
    output::answer(&text(program));
    0
}

/// The version: an image sets its own date, `YYYYMM.DD.PATCH`, when it builds this.
const VERSION: &str = match option_env!("BRINGUP_NODE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

pub(crate) fn version(program: Option<&Program>) -> u8 {
    match program {
        Some(program) => output::answer(&format!("{} version {VERSION}\n", program.0)),
        None => output::answer(&format!("{VERSION}\n")),
    }
    0
}

/// Says what is wrong with a command. A wrong `provision` leaves a result, so that nobody waits.
pub(crate) fn mistake(agent: Agent, program: &Program, arguments: &Arguments, why: &str) -> u8 {
    output::remark(&format!("{why}\n{}", text(program)));
    if arguments.command.as_deref() == Some("provision") {
        let agent = Agent { log: Log::open(&agent.root), ..agent };
        provision::refuse(&agent, why);
        return agent.settings.status(code::REFUSED);
    }
    if agent.settings.legacy { 1 } else { EXIT }
}

/// `preflight`: prints what the checks find.
pub(crate) fn preflight(agent: &Agent, program: &Program, arguments: &Arguments) -> u8 {
    let which = match arguments.value("only") {
        None => Which::All,
        Some("oras") => Which::Oras,
        Some(other) => {
            let why = format!("unknown check: {other}; --only takes oras");
            output::remark(&format!("{why}\n{}", text(program)));
            return if agent.settings.legacy { 1 } else { EXIT };
        }
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let needs_oras = which == Which::Oras;
    let subject = Subject {
        root: agent.root.clone(),
        path,
        needs_oras,
        variables: std::env::vars_os().collect(),
        endpoints: agent.settings.endpoints.clone(),
    };
    let found = preflight::run(&subject, which);
    if arguments.given("json") {
        output::answer(&format!("{}\n", serde_json::to_string(&found).unwrap_or_default()));
    } else {
        output::answer(&found.iter().map(told).collect::<String>());
    }
    // Who asks for oras alone asks whether it can be called: what is not in PATH cannot.
    let unusable = |finding: &&Finding| match which {
        Which::Oras => finding.state != State::Ok,
        Which::All | Which::Only(_) => finding.state == State::Fatal,
    };
    let exit = match found.iter().find(unusable) {
        None => 0,
        Some(finding) if finding.name.is_some() || which == Which::Oras => {
            let os_release = store::head(&agent.root.os_release(), 16 * 1024).unwrap_or_default();
            agent.settings.oras.unwrap_or_else(|| code::oras_default(&os_release))
        }
        Some(_) => Own::PreflightRefused.number(agent.settings.base),
    };
    agent.settings.status(exit)
}

fn told(finding: &Finding) -> String {
    let mut text = format!(
        "{}: {} ({} ms)\n  {}\n",
        finding.check,
        finding.short().split_once(':').map_or("", |(_, word)| word),
        finding.ms,
        finding.detail
    );
    if let Some(os_release) = finding.data["osRelease"].as_str().filter(|_| finding.check == "oras")
    {
        text.push_str("  /etc/os-release:\n");
        for line in bringup_diagnosis::redaction::redact(os_release).text.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// `postmortem`: what the logs of the last attempt say, as JSON.
pub(crate) fn postmortem(agent: &Agent) -> u8 {
    let agent = &agent.knowing(&Secrets::delivered(&agent.root));
    let left = Leftovers::observe(&agent.root);
    let result = left.result.and_then(Result::ok);
    let result = result.map(|result| agent.secrets.strike_outcome(&result));
    let since = Run::load(&agent.root).map(|run| run.started);
    let found = examine(agent, result.as_ref(), since);
    let unknown = Outcome::own(-1, "", "");
    let summary = summarise(result.as_ref().unwrap_or(&unknown), None, Some(&found), &[]);
    let value = serde_json::json!({"summary": summary, "diagnosis": found.diagnosis});
    output::answer(&format!("{value}\n"));
    0
}

/// `download-hotfix`: hotfixes are not installed by this build, and that stops nothing.
pub(crate) fn download_hotfix(agent: &Agent, arguments: &Arguments) -> u8 {
    if !arguments.rest.is_empty() {
        let words = arguments.rest.join(" ");
        output::remark(&format!("unexpected download-hotfix arguments: {words}\n"));
        return 1;
    }
    install_hotfix(agent);
    0
}

/// Installs a newer agent where one is asked for; without it, this one goes on.
pub(crate) fn install_hotfix(agent: &Agent) {
    match hotfix::download(agent, VERSION) {
        Ok(done) => agent.log.info(&format!("download-hotfix: {done}")),
        Err(why) => {
            agent.log.warn(&format!("download-hotfix: {why}; going on with this agent"));
        }
    }
}
