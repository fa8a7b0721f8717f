//! The process that waits, and says in the status file how it stands.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::handler::Handler;
use super::locks::{self, Lock, Taken};
use super::record::{self, Record};
use super::settings::Unusable;
use super::status::Status;
use super::{Role, Stage, exit, lasting};
use crate::capi::{self, Progress};
use crate::host::system::{self, background};

/// So often the guest agent hears how it stands.
const NEWS: Duration = Duration::from_mins(1);

/// What cannot be written now is tried again after this time, until there is space.
const AGAIN: Duration = Duration::from_secs(1);

/// One that was killed has let go by then, and what it had just started too.
const LEAVING: Duration = Duration::from_secs(2);

/// How long failed writes of the result are repeated, for example on a full disk.
const LAST_TRY: Duration = Duration::from_hours(1);

/// Waits for the number's bootstrap.
pub(crate) fn run(stage: &Stage<'_>, number: u64) -> u8 {
    let lock = locks::take(&stage.folder, Lock::Waiter, LEAVING);
    if matches!(lock, Taken::ByAnother) {
        return exit::TAKEN;
    }
    background::announce(stage, Role::Wait, number);
    let handler = match Handler::read(&stage.handler) {
        Ok(handler) => handler,
        Err(unknown) => {
            stage.log.line(&format!("wait {number}: {unknown}"));
            return exit::INTERRUPTED;
        }
    };
    let ended = match wait(stage, &handler, number) {
        Ok(Some(status)) => status,
        Ok(None) => {
            stage.log.line(&format!("wait {number}: it was asked to end"));
            return exit::INTERRUPTED;
        }
        Err(unusable) => Status::refused(&told(&unusable), Timestamp::now()),
    };
    stage.log.line(&format!("wait {number}: it is over, with {}", ended.exit));
    finish(stage, &handler, number, &ended);
    exit::OVER
}

/// Waits; nothing if it was asked to end before.
fn wait(stage: &Stage<'_>, handler: &Handler, number: u64) -> Result<Option<Status>, Unusable> {
    let meant = handler.meant(number)?;
    let mut told: Option<Instant> = None;
    let mut tell = |progress: &Progress| {
        if told.is_some_and(|told| told.elapsed() < lasting(NEWS)) {
            return;
        }
        let status = Status::waiting(Some(progress), &meant.unknown, Timestamp::now());
        match status.write(&handler.status, number) {
            Ok(()) => told = Some(Instant::now()),
            Err(error) if told.is_none() => {
                stage.log.line(&format!("wait {number}: the status is not written: {error}"));
                told = Some(Instant::now());
            }
            Err(_) => {}
        }
    };
    let memory = record::memory(&stage.folder, number);
    let ended = capi::wait(&meant.arguments, stage.root, Some(&memory), &mut tell);
    let ended = ended.map_err(|wrong| meant.refused(wrong))?;
    Ok((!ended.is_interrupted())
        .then(|| Status::ended(&ended, &meant.strike, &meant.unknown, Timestamp::now())))
}

/// An error with what is behind it.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Records how it ended, then writes the status. If the waiter is killed between the two, the next
/// one finds the record.
pub(crate) fn finish(stage: &Stage<'_>, handler: &Handler, number: u64, status: &Status) {
    let begun = Instant::now();
    let (mut recorded, mut said) = (false, false);
    loop {
        recorded = recorded || record(stage, number, status).is_ok();
        said = said || status.write(&handler.status, number).is_ok();
        if recorded && said || begun.elapsed() > LAST_TRY {
            return;
        }
        std::thread::sleep(lasting(AGAIN));
    }
}

fn record(stage: &Stage<'_>, number: u64, status: &Status) -> std::io::Result<()> {
    let record = Record::load(&stage.folder).unwrap_or_else(|| {
        let now = system::now(stage.root);
        let machine = system::identity(stage.root);
        Record::begin(number, machine, now.boot, now.wall, None)
    });
    // Of another number, only its own process tells.
    if record.number != number {
        return Ok(());
    }
    record.over(status.exit, &status.body).save(&stage.folder)
}
