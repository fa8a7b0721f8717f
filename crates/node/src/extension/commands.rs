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
use super::{Installation, Role, exit};
use crate::capi;
use crate::host::system::{self, background, files};
use crate::{clock, output};

/// The guest agent stops `enable` after five minutes and reports its own error; this limit ends earlier.
const HARD_STOP: Duration = Duration::from_secs(20);

/// The time that another command of the guest agent needs to end.
const OTHERS: Duration = Duration::from_secs(10);

/// The longest update; an older mark was left behind.
const LONGEST_UPDATE: Duration = Duration::from_hours(1);

/// `install`: prepares everything that needs no settings.
pub(crate) fn install(installation: &Installation<'_>) -> u8 {
    // If the folder cannot be created, `enable` reports it, where Azure sees it.
    if let Err(error) = files::directory(&installation.folder) {
        installation.log.line(&format!("install: no folder: {error}"));
    }
    background::install(installation);
    installation.log.line("install: done");
    exit::DONE
}

/// `update`: records that the old version is removed only to be replaced.
pub(crate) fn update(installation: &Installation<'_>) -> u8 {
    let marked = files::write(&mark(installation), Timestamp::now().to_string().as_bytes());
    installation.log.line(&match marked {
        Ok(()) => "update: marked".to_owned(),
        Err(error) => format!("update: the mark is not written: {error}"),
    });
    exit::DONE
}

/// `disable`: stops the waiter. The last status stays.
pub(crate) fn disable(installation: &Installation<'_>) -> u8 {
    background::stop(installation);
    installation.log.line("disable: nothing waits");
    exit::DONE
}

/// `uninstall`: removes everything except logs; during an update, the state stays too.
pub(crate) fn uninstall(installation: &Installation<'_>) -> u8 {
    background::stop(installation);
    if is_updating(&mark(installation)) {
        installation.log.line("uninstall: another version takes over");
        return exit::DONE;
    }
    background::uninstall(installation);
    let _ = fs::remove_dir_all(&installation.folder);
    // The parent folder may contain files of others; then it stays.
    let _ = installation.folder.parent().map(fs::remove_dir);
    installation.log.line("uninstall: done");
    exit::DONE
}

fn mark(installation: &Installation<'_>) -> PathBuf {
    installation.folder.join("updating")
}

fn is_updating(mark: &Path) -> bool {
    let made = fs::metadata(mark).and_then(|data| data.modified());
    made.is_ok_and(|made| {
        SystemTime::now().duration_since(made).is_ok_and(|age| age < LONGEST_UPDATE)
    })
}

/// `enable`: ensures that a process waits for the settings with the current number, and returns.
pub(crate) fn enable(installation: &Installation<'_>) -> u8 {
    std::thread::spawn(|| {
        clock::wait(HARD_STOP);
        std::process::exit(exit::INTERNAL.into());
    });
    match enabled(installation) {
        Ok(()) => exit::DONE,
        Err(error) => {
            let why = told(&error);
            installation.log.line(&format!("enable: {why}"));
            output::remark(&format!("{why}\n"));
            exit::USAGE
        }
    }
}

/// Why only the exit code can report to Azure.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Handler(#[from] Unknown),
    #[error(transparent)]
    Settings(Unusable),
}

fn enabled(installation: &Installation<'_>) -> Result<(), Refused> {
    let handler = Handler::read(&installation.handler)?;
    let number = handler.number()?;
    let _lock = locks::take(&installation.folder, Lock::Commands, OTHERS);
    let _ = fs::remove_file(mark(installation));
    let record = Record::load(&installation.folder);
    let machine = system::identity(installation.root);
    let running = background::running(installation);
    let waiter = running.iter().find(|it| it.role == Role::Wait);
    let waiter = waiter.or_else(|| running.first());
    let step = step(&Seen {
        number,
        machine: &machine,
        handler: &installation.handler,
        record: record.as_ref(),
        waiter: waiter.map(|it| (it.number, it.handler.as_path())),
    });
    installation.log.line(&format!("enable {number}: {step:?}"));
    let waiting = || Status::waiting(None, &[], Timestamp::now());
    match (step, record) {
        (Step::Restore, Some(record)) => {
            let body = record.status.unwrap_or_default();
            let there = fs::read_to_string(status::path(&handler.status, number));
            if there.ok().as_ref() != Some(&body) {
                note(
                    installation,
                    "the status",
                    status::write_body(&handler.status, number, &body),
                );
            }
        }
        (Step::LeaveAlone, _) => {
            if !status::path(&handler.status, number).exists() {
                note(installation, "the status", waiting().write(&handler.status, number));
            }
        }
        (Step::Resume, Some(mut record)) => {
            background::stop(installation);
            note(installation, "the status", waiting().write(&handler.status, number));
            installation.handler.clone_into(&mut record.handler);
            note(installation, "the record", record.save(&installation.folder));
            start(installation, &handler, number);
        }
        (Step::Begin | Step::Resume | Step::Restore, record) => {
            if !running.is_empty() || record.as_ref().is_some_and(|it| it.phase == Phase::Waiting) {
                background::stop(installation);
            }
            if record.is_some_and(|record| !record.machine.may_be(&machine)) {
                note(
                    installation,
                    "the record of another machine",
                    Record::set_aside(&installation.folder),
                );
            }
            begin(installation, &handler, number, machine)?;
        }
    }
    Ok(())
}

fn begin(
    installation: &Installation<'_>,
    handler: &Handler,
    number: u64,
    machine: capi::Identity,
) -> Result<(), Refused> {
    // A sequence number may be reused with other settings.
    let _ = fs::remove_file(memory(&installation.folder, number));
    let now = system::now(installation.root);
    let checked = handler.meant(number).and_then(|meant| {
        let limit = capi::time_limit(&meant.arguments, installation.root);
        let limit = limit.map_err(|wrong| meant.refused(wrong))?;
        Ok((meant, limit))
    });
    let deadline = checked.as_ref().ok().and_then(|(_, limit)| now.wall.checked_add(*limit).ok());
    let mut record = Record::begin(number, machine, now.boot, now.wall, deadline);
    installation.handler.clone_into(&mut record.handler);
    note(installation, "mrseq", fs::write(handler.root.join("mrseq"), number.to_string()));
    match checked {
        Ok((Meant { unknown, .. }, _)) => {
            if !unknown.is_empty() {
                let unknown = unknown.join(", ");
                installation.log.line(&format!("enable {number}: unknown settings: {unknown}"));
                output::answer(&format!("unknown settings are ignored: {unknown}\n"));
            }
            let waiting = Status::waiting(None, &unknown, now.wall);
            note(installation, "the status", waiting.write(&handler.status, number));
            note(installation, "the record", record.save(&installation.folder));
            start(installation, handler, number);
            Ok(())
        }
        Err(unusable) => {
            let refused = Status::refused(&told(&unusable), now.wall);
            note(installation, "the status", refused.write(&handler.status, number));
            // Azure reads no status of an extension without settings: the exit code must report the problem,
            // and the next call reports it again.
            if matches!(unusable, Unusable::None) {
                return Err(Refused::Settings(unusable));
            }
            installation.log.line(&format!("enable {number}: {}", told(&unusable)));
            note(
                installation,
                "the record",
                record.over(refused.exit, &refused.body).save(&installation.folder),
            );
            Ok(())
        }
    }
}

fn start(installation: &Installation<'_>, handler: &Handler, number: u64) {
    if let Err(error) = background::start(installation, number) {
        installation.log.line(&format!("enable {number}: {error}"));
        let status = Status::unstartable(&error, Timestamp::now());
        finish(installation, handler, number, &status);
    }
}

fn note(installation: &Installation<'_>, what: &str, done: io::Result<()>) {
    if let Err(error) = done {
        installation.log.line(&format!("enable: {what} is not written: {error}"));
    }
}
