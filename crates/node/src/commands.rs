//! The commands, on Linux.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::agent::Agent;
use crate::args::Arguments;
use crate::log::Log;
use crate::paths::Root;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::{customdata, extension, join, keeper, launch, provision, sentinel, usage, waiter};

/// Does what was typed.
pub(crate) fn main() -> ExitCode {
    let mut typed = std::env::args_os();
    let program = typed.next().unwrap_or_default();
    let typed: Vec<_> = typed.collect();
    if let Some(code) = keeper::hidden(&typed) {
        return code;
    }
    let program = usage::Program::of(&program);
    let typed = typed.into_iter().map(|word| word.to_string_lossy().into_owned());
    let (arguments, wrong) = match Arguments::read(typed) {
        Ok(arguments) => (arguments, None),
        Err(mistake) => (mistake.0, Some(mistake.1)),
    };
    let root = Root::new(arguments.root.clone());
    if wrong.is_none() && arguments.command.as_deref() == Some("wait") {
        return sentinel::run(&arguments, &root).into();
    }
    if wrong.is_none() && arguments.command.as_deref() == Some("extension") {
        return extension::run(&arguments, &root).into();
    }
    let settings = Settings::read(&arguments, &root);
    let wrong = wrong.or_else(|| settings.as_ref().err().cloned());
    let plain = || Settings::read(&Arguments::default(), &Root::new(None));
    let Ok(settings) = settings.or_else(|_| plain()) else {
        return ExitCode::from(usage::EXIT);
    };
    let (log, secrets, variables) = (Log::none(), Secrets::default(), Vec::new());
    let agent = Agent { root, settings, log, secrets, variables };
    if let Some(wrong) = wrong {
        return usage::mistake(agent, &program, &arguments, &wrong.to_string()).into();
    }
    let code = run(agent, &program, &arguments);
    code.into()
}

fn run(agent: Agent, program: &usage::Program, arguments: &Arguments) -> u8 {
    let logged = |agent: Agent| Agent { log: Log::open(&agent.root), ..agent };
    match arguments.command.as_deref() {
        Some("provision") => {
            let agent = logged(agent);
            agent.settings.status(provision::run(&agent, arguments, &[]))
        }
        Some("provision-wait") => {
            let agent = logged(agent);
            // Waiter and provisioner are of the same version.
            launch::hand_over_waiting(&agent, std::env::args_os().skip(1));
            agent.settings.status(waiter::run(&agent))
        }
        Some("launch") => {
            let agent = logged(agent);
            agent.settings.status(launch::run(&agent, arguments))
        }
        Some("join") => {
            let agent = logged(agent);
            let exit = join::run(&agent, arguments);
            agent.settings.status(exit.into())
        }
        Some("preflight") => usage::preflight(&agent, program, arguments),
        Some("report") => {
            let root = &agent.root;
            let reports = [root.report(), root.join_report(), sentinel::report_path(root)];
            sentinel::print_newest(
                &reports.each_ref().map(PathBuf::as_path),
                arguments.given("json"),
            )
        }
        Some("postmortem") => usage::postmortem(&agent),
        Some("customdata") => customdata::run(&agent, arguments),
        Some("check-hotfix") => {
            logged(agent).log.info("check-hotfix outcome: noHotfixAvailable");
            0
        }
        Some("download-hotfix") => usage::download_hotfix(&logged(agent), arguments),
        Some("version") => usage::version(None),
        Some("--version") => usage::version(Some(program)),
        Some("help" | "--help" | "--h") => usage::help(program),
        Some(other) => {
            let why = format!("unknown command: {other}");
            usage::mistake(agent, program, arguments, &why)
        }
        None => usage::mistake(agent, program, arguments, "missing command argument"),
    }
}
