//! The commands that inspect an AKS node or install a newer agent: `preflight`, `postmortem`,
//! `download-hotfix`.

use std::fmt::Write as _;

use crate::agent::Agent;
use crate::aks::exit_code::{self, Own};
use crate::aks::hotfix;
use crate::aks::postmortem::{examine, summarise};
use crate::aks::preflight::{self, Finding, State, Subject, Which};
use crate::aks::result_files::Leftovers;
use crate::args::Arguments;
use crate::host::linux::store;
use crate::outcome::Outcome;
use crate::output;
use crate::run::Run;
use crate::secrets::Secrets;
use crate::usage::{self, Program, VERSION};

/// `preflight`: prints the findings of the checks.
pub(crate) fn preflight(agent: &Agent, program: &Program, arguments: &Arguments) -> i32 {
    let which = match arguments.value("only") {
        None => Which::All,
        Some("oras") => Which::Oras,
        Some(other) => {
            let why = format!("unknown check: {other}; --only takes oras");
            usage::remark(program, &why);
            return usage::EXIT.into();
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
    // `Which::Oras` checks whether scripts can call oras: a program outside PATH cannot be called.
    let unusable = |finding: &&Finding| match which {
        Which::Oras => finding.state != State::Ok,
        Which::All | Which::Only(_) => finding.state == State::Fatal,
    };
    match found.iter().find(unusable) {
        None => 0,
        Some(finding) if finding.name.is_some() || which == Which::Oras => {
            let os_release = store::head(&agent.root.os_release(), 16 * 1024).unwrap_or_default();
            agent.settings.oras.unwrap_or_else(|| exit_code::oras_default(&os_release))
        }
        Some(_) => Own::PreflightRefused.number(agent.settings.base),
    }
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

/// `postmortem`: prints the diagnosis of the logs of the last attempt as JSON.
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

/// `download-hotfix`: this build does not install hotfixes, and the node comes up without them.
pub(crate) fn download_hotfix(agent: &Agent, arguments: &Arguments) -> u8 {
    if !arguments.rest.is_empty() {
        let words = arguments.rest.join(" ");
        output::remark(&format!("unexpected download-hotfix arguments: {words}\n"));
        return 1;
    }
    install_hotfix(agent);
    0
}

/// Installs a newer agent if the image requests one; otherwise this agent continues.
pub(crate) fn install_hotfix(agent: &Agent) {
    match hotfix::download(agent, VERSION) {
        Ok(done) => agent.log.info(&format!("download-hotfix: {done}")),
        Err(why) => {
            agent.log.warn(&format!("download-hotfix: {why}; going on with this agent"));
        }
    }
}
