//! The guard: a process that restarts the waiter when the waiter is killed.

use std::time::Duration;

use jiff::Timestamp;

use super::handler::Handler;
use super::record::Record;
use super::status::Status;
use super::waiter::finish;
use super::{Installation, Role, exit, lasting};
use crate::host::system::background;

/// After this many kills the guard gives up: the problem is permanent.
const DEATHS: u32 = 4;

/// The pause before a restart, for the cause of the kill to pass.
const PAUSE: Duration = Duration::from_secs(5);

/// Restarts the waiter until it has ended by itself.
pub(crate) fn run(installation: &Installation<'_>, number: u64) -> u8 {
    background::leave_session();
    background::announce(installation, Role::Guard, number);
    let mut deaths = 0;
    loop {
        let code = background::run_waiter(installation, number);
        let ended = [exit::OVER, exit::TAKEN, exit::INTERRUPTED].map(|code| Some(i32::from(code)));
        if ended.contains(&code) {
            return exit::DONE;
        }
        deaths = count(installation, number, deaths);
        installation.log.line(&format!("guard {number}: the wait was killed, death {deaths}"));
        if deaths >= DEATHS {
            let status = Status::killed(deaths, Timestamp::now());
            if let Ok(handler) = Handler::read(&installation.handler) {
                finish(installation, &handler, number, &status);
            }
            return exit::DONE;
        }
        std::thread::sleep(lasting(PAUSE));
    }
}

/// Counts a kill of the waiter; the count survives a kill of the guard.
fn count(installation: &Installation<'_>, number: u64, seen: u32) -> u32 {
    let Some(mut record) = Record::load(&installation.folder).filter(|it| it.number == number)
    else {
        return seen + 1;
    };
    record.deaths = record.deaths.max(seen) + 1;
    // On a full disk, the guard still has the count in memory.
    let _ = record.save(&installation.folder);
    record.deaths
}
