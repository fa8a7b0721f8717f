//! Runs the command that the process was started with.

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(unix)]
use crate::agent::Agent;
#[cfg(unix)]
use crate::aks::{self, customdata, keeper, launch, provision, provision_wait};
use crate::args::{Arguments, Command, Wrong};
use crate::host::paths::Root;
#[cfg(unix)]
use crate::join;
#[cfg(unix)]
use crate::log::Log;
#[cfg(unix)]
use crate::secrets::Secrets;
#[cfg(unix)]
use crate::settings::Settings;
use crate::usage::{self, Program};
use crate::{capi, extension};

pub(crate) fn main() -> ExitCode {
    let mut typed = std::env::args_os();
    let program = typed.next().unwrap_or_default();
    let typed: Vec<_> = typed.collect();
    #[cfg(unix)]
    if let Some(code) = keeper::hidden(&typed) {
        return code;
    }
    let program = Program::of(&program);
    let typed = typed.into_iter().map(|word| word.to_string_lossy().into_owned());
    let (arguments, wrong) = match Arguments::read(typed) {
        Ok(arguments) => (arguments, None),
        Err(mistake) => (mistake.0, Some(mistake.1)),
    };
    let root = Root::new(arguments.root.clone());
    // `wait` and `extension` have settings of their own and ignore the settings of the AKS agent.
    let code = match (wrong, arguments.known_command()) {
        (None, Some(Command::Wait)) => capi::run(&arguments, &root),
        (None, Some(Command::Extension)) => extend(&arguments, &root),
        (wrong, command) => others(&program, &arguments, &root, command, wrong),
    };
    code.into()
}

/// `extension`: only the flag can change the exit codes. The processes that the extension starts communicate
/// by exit codes and never get the flag.
fn extend(arguments: &Arguments, root: &Root) -> u8 {
    match arguments.exit_codes() {
        Ok(codes) => codes.status(extension::run(arguments, root).into()),
        Err(wrong) => {
            crate::output::remark(&format!("{wrong}\n"));
            usage::EXIT
        }
    }
}

#[cfg(windows)]
fn others(
    program: &Program,
    arguments: &Arguments,
    root: &Root,
    command: Option<Command>,
    wrong: Option<Wrong>,
) -> u8 {
    let codes = arguments.exit_codes();
    let wrong = wrong.or_else(|| codes.clone().err());
    let codes = codes.unwrap_or_default();
    if let Some(wrong) = wrong {
        usage::remark(program, &wrong.to_string());
        return codes.status(usage::EXIT.into());
    }
    let reports = [capi::report_path(root)];
    codes.status(match command {
        Some(Command::Report) => report(&reports, arguments).into(),
        Some(Command::Version) => usage::version(None).into(),
        Some(Command::ProgramVersion) => usage::version(Some(program)).into(),
        Some(Command::Help) => usage::help(program).into(),
        Some(Command::Wait | Command::Extension) | None => {
            usage::remark(program, &unknown(arguments));
            usage::EXIT.into()
        }
    })
}

#[cfg(unix)]
fn others(
    program: &Program,
    arguments: &Arguments,
    root: &Root,
    command: Option<Command>,
    wrong: Option<Wrong>,
) -> u8 {
    let settings = Settings::read(arguments, root);
    let wrong = wrong.or_else(|| settings.as_ref().err().cloned());
    let plain = || Settings::read(&Arguments::default(), &Root::new(None));
    let typed = arguments.exit_codes().unwrap_or_default();
    let Ok(mut settings) = settings.or_else(|_| plain()) else {
        return typed.status(usage::EXIT.into());
    };
    if wrong.is_some() && arguments.value("exit-code").is_some() {
        settings.exit_codes = typed;
    }
    let (log, secrets, variables) = (Log::none(), Secrets::default(), Vec::new());
    let agent = Agent { root: root.clone(), settings, log, secrets, variables };
    let codes = agent.settings.exit_codes;
    let code = match (wrong, command) {
        (Some(wrong), _) => mistake(agent, program, arguments, &wrong.to_string()),
        (None, Some(command)) => run(agent, program, arguments, command),
        (None, None) => mistake(agent, program, arguments, &unknown(arguments)),
    };
    codes.status(code)
}

/// Reports a mistake on the command line. A mistaken `provision` writes a result: without a result,
/// `provision-wait` would wait until its timeout.
#[cfg(unix)]
fn mistake(agent: Agent, program: &Program, arguments: &Arguments, why: &str) -> i32 {
    usage::remark(program, why);
    if arguments.known_command() == Some(Command::Provision) {
        let agent = Agent { log: Log::open(&agent.root), ..agent };
        provision::refuse(&agent, why);
        return aks::exit_code::REFUSED;
    }
    usage::EXIT.into()
}

fn unknown(arguments: &Arguments) -> String {
    match &arguments.command {
        Some(word) => format!("unknown command: {word}"),
        None => "missing command argument".to_owned(),
    }
}

#[cfg(unix)]
fn run(agent: Agent, program: &Program, arguments: &Arguments, command: Command) -> i32 {
    let logged = |agent: Agent| Agent { log: Log::open(&agent.root), ..agent };
    match command {
        Command::Provision => provision::run(&logged(agent), arguments, &[]),
        Command::ProvisionWait => {
            let agent = logged(agent);
            // Waiter and provisioner must have the same version.
            launch::hand_over_waiting(&agent, std::env::args_os().skip(1));
            provision_wait::run(&agent)
        }
        Command::Launch => launch::run(&logged(agent), arguments),
        Command::Join => join::run(&logged(agent), arguments).into(),
        Command::Preflight => aks::commands::preflight(&agent, program, arguments),
        Command::Report => {
            let root = &agent.root;
            let reports = [root.report(), root.join_report(), capi::report_path(root)];
            report(&reports, arguments).into()
        }
        Command::Postmortem => aks::commands::postmortem(&agent).into(),
        Command::Customdata => customdata::run(&agent, arguments).into(),
        Command::CheckHotfix => {
            logged(agent).log.info("check-hotfix outcome: noHotfixAvailable");
            0
        }
        Command::DownloadHotfix => aks::commands::download_hotfix(&logged(agent), arguments).into(),
        Command::Version => usage::version(None).into(),
        Command::ProgramVersion => usage::version(Some(program)).into(),
        Command::Help => usage::help(program).into(),
        Command::Wait => capi::run(arguments, &agent.root).into(),
        Command::Extension => extension::run(arguments, &agent.root).into(),
    }
}

fn report(reports: &[PathBuf], arguments: &Arguments) -> u8 {
    let reports: Vec<_> = reports.iter().map(PathBuf::as_path).collect();
    capi::print_newest(&reports, arguments.given("json"))
}
