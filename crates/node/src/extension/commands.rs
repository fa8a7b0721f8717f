//! The five commands that the guest agent calls.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::decision::{Seen, Step, step};
use super::handler::{Handler, Unknown};
use super::locks::{self, Lock};
use super::record::{Phase, Record, memory};
use super::settings::{Meant, Unusable};
use super::status::{self, Status};
use super::waiter::{finish, told};
use super::{Role, Stage, exit};
use crate::capi;
use crate::host::system::{self, background, files};
use crate::{clock, output};

/// The guest agent ends `enable` after five minutes and then tells its own story; this is earlier.
const HARD_STOP: Duration = Duration::from_secs(20);

/// Another command of the guest agent's is over by then.
const OTHERS: Duration = Duration::from_secs(10);

/// An update is over by then; a mark that is older was left behind.
const LONGEST_UPDATE: Duration = Duration::from_hours(1);

/// `install`: what can be made ready before there are settings.
pub(crate) fn install(stage: &Stage<'_>) -> u8 {
    // If the folder cannot be created, `enable` reports it, where Azure sees it.
    if let Err(error) = files::directory(&stage.folder) {
        stage.log.line(&format!("install: no folder: {error}"));
    }
    background::install(stage);
    stage.log.line("install: done");
    exit::DONE
}

/// `update`: marks that the old version goes only to make room.
pub(crate) fn update(stage: &Stage<'_>) -> u8 {
    let marked = files::write(&mark(stage), Timestamp::now().to_string().as_bytes());
    stage.log.line(&match marked {
        Ok(()) => "update: marked".to_owned(),
        Err(error) => format!("update: the mark is not written: {error}"),
    });
    exit::DONE
}

/// `disable`: nothing waits after it. What was told stays told.
pub(crate) fn disable(stage: &Stage<'_>) -> u8 {
    background::stop(stage);
    stage.log.line("disable: nothing waits");
    exit::DONE
}

/// `uninstall`: nothing is left but logs; in an update, what is remembered stays too.
pub(crate) fn uninstall(stage: &Stage<'_>) -> u8 {
    background::stop(stage);
    if is_updating(&mark(stage)) {
        stage.log.line("uninstall: another version takes over");
        return exit::DONE;
    }
    background::uninstall(stage);
    let _ = fs::remove_dir_all(&stage.folder);
    // Others may remember something beside it; then it stays.
    let _ = stage.folder.parent().map(fs::remove_dir);
    stage.log.line("uninstall: done");
    exit::DONE
}

fn mark(stage: &Stage<'_>) -> PathBuf {
    stage.folder.join("updating")
}

fn is_updating(mark: &Path) -> bool {
    let made = fs::metadata(mark).and_then(|data| data.modified());
    made.is_ok_and(|made| {
        SystemTime::now().duration_since(made).is_ok_and(|age| age < LONGEST_UPDATE)
    })
}

/// `enable`: sees to it that it is waited for the number that counts, and returns.
pub(crate) fn enable(stage: &Stage<'_>) -> u8 {
    std::thread::spawn(|| {
        clock::wait(HARD_STOP);
        std::process::exit(exit::INTERNAL.into());
    });
    match enabled(stage) {
        Ok(()) => exit::DONE,
        Err(error) => {
            let why = told(&error);
            stage.log.line(&format!("enable: {why}"));
            output::remark(&format!("{why}\n"));
            exit::USAGE
        }
    }
}

/// Why nothing can be told to Azure but by the exit code.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Handler(#[from] Unknown),
    #[error(transparent)]
    Settings(Unusable),
}

fn enabled(stage: &Stage<'_>) -> Result<(), Refused> {
    let handler = Handler::read(&stage.handler)?;
    let number = handler.number()?;
    let _lock = locks::take(&stage.folder, Lock::Commands, OTHERS);
    let _ = fs::remove_file(mark(stage));
    let record = Record::load(&stage.folder);
    let machine = system::identity(stage.root);
    let running = background::running(stage);
    let waiter = running.iter().find(|it| it.role == Role::Wait);
    let waiter = waiter.or_else(|| running.first());
    let step = step(&Seen {
        number,
        machine: &machine,
        handler: &stage.handler,
        record: record.as_ref(),
        waiter: waiter.map(|it| (it.number, it.handler.as_path())),
    });
    stage.log.line(&format!("enable {number}: {step:?}"));
    let waiting = || Status::waiting(None, &[], Timestamp::now());
    match (step, record) {
        (Step::Restore, Some(record)) => {
            let body = record.status.unwrap_or_default();
            let there = fs::read_to_string(status::path(&handler.status, number));
            if there.ok().as_ref() != Some(&body) {
                note(stage, "the status", status::write_body(&handler.status, number, &body));
            }
        }
        (Step::LeaveAlone, _) => {
            if !status::path(&handler.status, number).exists() {
                note(stage, "the status", waiting().write(&handler.status, number));
            }
        }
        (Step::Resume, Some(mut record)) => {
            background::stop(stage);
            note(stage, "the status", waiting().write(&handler.status, number));
            stage.handler.clone_into(&mut record.handler);
            note(stage, "the record", record.save(&stage.folder));
            start(stage, &handler, number);
        }
        (Step::Begin | Step::Resume | Step::Restore, record) => {
            if !running.is_empty() || record.as_ref().is_some_and(|it| it.phase == Phase::Waiting) {
                background::stop(stage);
            }
            if record.is_some_and(|record| !record.machine.may_be(&machine)) {
                note(stage, "the record of another machine", Record::set_aside(&stage.folder));
            }
            begin(stage, &handler, number, machine)?;
        }
    }
    Ok(())
}

fn begin(
    stage: &Stage<'_>,
    handler: &Handler,
    number: u64,
    machine: capi::Identity,
) -> Result<(), Refused> {
    // A number may come back with other settings.
    let _ = fs::remove_file(memory(&stage.folder, number));
    let now = system::now(stage.root);
    let checked = handler.meant(number).and_then(|meant| {
        let limit = capi::time_limit(&meant.arguments, stage.root);
        let limit = limit.map_err(|wrong| meant.refused(wrong))?;
        Ok((meant, limit))
    });
    let deadline = checked.as_ref().ok().and_then(|(_, limit)| now.wall.checked_add(*limit).ok());
    let mut record = Record::begin(number, machine, now.boot, now.wall, deadline);
    stage.handler.clone_into(&mut record.handler);
    note(stage, "mrseq", fs::write(handler.root.join("mrseq"), number.to_string()));
    match checked {
        Ok((Meant { unknown, .. }, _)) => {
            if !unknown.is_empty() {
                let unknown = unknown.join(", ");
                stage.log.line(&format!("enable {number}: unknown settings: {unknown}"));
                output::answer(&format!("unknown settings are ignored: {unknown}\n"));
            }
            let waiting = Status::waiting(None, &unknown, now.wall);
            note(stage, "the status", waiting.write(&handler.status, number));
            note(stage, "the record", record.save(&stage.folder));
            start(stage, handler, number);
            Ok(())
        }
        Err(unusable) => {
            let refused = Status::refused(&told(&unusable), now.wall);
            note(stage, "the status", refused.write(&handler.status, number));
            // Of an extension without settings, Azure reads no status: the exit code must tell,
            // and the next call tells it again.
            if matches!(unusable, Unusable::None) {
                return Err(Refused::Settings(unusable));
            }
            stage.log.line(&format!("enable {number}: {}", told(&unusable)));
            note(stage, "the record", record.over(refused.exit, &refused.body).save(&stage.folder));
            Ok(())
        }
    }
}

fn start(stage: &Stage<'_>, handler: &Handler, number: u64) {
    if let Err(error) = background::start(stage, number) {
        stage.log.line(&format!("enable {number}: {error}"));
        let status = Status::unstartable(&error, Timestamp::now());
        finish(stage, handler, number, &status);
    }
}

fn note(stage: &Stage<'_>, what: &str, done: io::Result<()>) {
    if let Err(error) = done {
        stage.log.line(&format!("enable: {what} is not written: {error}"));
    }
}
