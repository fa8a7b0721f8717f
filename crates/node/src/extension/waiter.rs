//! The waiter: waits for the bootstrap and reports its progress in the status file.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::handler::Handler;
use super::locks::{self, Lock, Taken};
use super::record::{self, Record};
use super::settings::Unusable;
use super::status::Status;
use super::{Installation, Role, exit, lasting};
use crate::capi::{self, Progress};
use crate::host::system::{self, background};

/// How often the status file is updated.
const NEWS: Duration = Duration::from_mins(1);

/// The interval between retries of a failed write.
const AGAIN: Duration = Duration::from_secs(1);

/// The time that a killed waiter and its child processes need to end and release the lock.
const LEAVING: Duration = Duration::from_secs(2);

/// How long failed writes of the result are repeated, for example on a full disk.
const LAST_TRY: Duration = Duration::from_hours(1);

/// Waits for the bootstrap of this sequence number.
pub(crate) fn run(installation: &Installation<'_>, number: u64) -> u8 {
    let lock = locks::take(&installation.folder, Lock::Waiter, LEAVING);
    if matches!(lock, Taken::ByAnother) {
        return exit::TAKEN;
    }
    background::announce(installation, Role::Wait, number);
    let handler = match Handler::read(&installation.handler) {
        Ok(handler) => handler,
        Err(unknown) => {
            installation.log.line(&format!("wait {number}: {unknown}"));
            return exit::INTERRUPTED;
        }
    };
    let ended = match wait(installation, &handler, number) {
        Ok(Some(status)) => status,
        Ok(None) => {
            installation.log.line(&format!("wait {number}: interrupted"));
            return exit::INTERRUPTED;
        }
        Err(unusable) => Status::refused(&told(&unusable), Timestamp::now()),
    };
    installation.log.line(&format!("wait {number}: it is over, with {}", ended.exit));
    finish(installation, &handler, number, &ended);
    exit::OVER
}

/// Waits; `None` if the waiter was interrupted.
fn wait(
    installation: &Installation<'_>,
    handler: &Handler,
    number: u64,
) -> Result<Option<Status>, Unusable> {
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
                installation
                    .log
                    .line(&format!("wait {number}: the status is not written: {error}"));
                told = Some(Instant::now());
            }
            Err(_) => {}
        }
    };
    let memory = record::memory(&installation.folder, number);
    let ended = capi::wait(&meant.arguments, installation.root, Some(&memory), &mut tell);
    let ended = ended.map_err(|wrong| meant.refused(wrong))?;
    Ok((!ended.is_interrupted())
        .then(|| Status::ended(&ended, &meant.strike, &meant.unknown, Timestamp::now())))
}

/// An error with its sources.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Records the result, then writes the status. If the waiter is killed between the two, the next waiter finds
/// the record.
pub(crate) fn finish(
    installation: &Installation<'_>,
    handler: &Handler,
    number: u64,
    status: &Status,
) {
    let begun = Instant::now();
    let (mut recorded, mut said) = (false, false);
    loop {
        recorded = recorded || record(installation, number, status).is_ok();
        said = said || status.write(&handler.status, number).is_ok();
        if recorded && said || begun.elapsed() > LAST_TRY {
            return;
        }
        std::thread::sleep(lasting(AGAIN));
    }
}

fn record(installation: &Installation<'_>, number: u64, status: &Status) -> std::io::Result<()> {
    let record = Record::load(&installation.folder).unwrap_or_else(|| {
        let now = system::now(installation.root);
        let machine = system::identity(installation.root);
        Record::begin(number, machine, now.boot, now.wall, None)
    });
    // Only the waiter of a sequence number reports for it.
    if record.number != number {
        return Ok(());
    }
    record.over(status.exit, &status.body).save(&installation.folder)
}
