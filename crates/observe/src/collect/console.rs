//! The serial console of a VM. Its address is valid only for a short time and is never stored.

use std::sync::Arc;

use bringup_azure::clock::Clock;
use bringup_azure::model::{BootDiagnostics, SerialLog, VirtualMachine};
use bringup_azure::{Arm, ArmError, InstanceId, Priority, Turn};
use bringup_contract::bounds::TimeMath as _;
use bringup_objects::report::CollectorState;
use bringup_runtime::effect_hook::EffectHook;
use jiff::SignedDuration;

use crate::collector::{self, collected, refusal};
use crate::console_watch::WatchedConsole;
use crate::observation::Observation;
use crate::profile::Profile;
use crate::workers::{Room, Workers};

/// The most bytes to read of a serial log.
const CONSOLE_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes to read of a serial log while it is watched.
const WATCHED_BYTES: usize = 256 * 1024;
/// The requested lifetime of a serial log's address, in minutes.
const ADDRESS_MINUTES: u16 = 5;
/// How long an address is used: shorter than its lifetime, so that it does not expire during a read.
const ADDRESS_USED: SignedDuration = SignedDuration::from_mins(4);

/// Boot diagnostics or the serial log cannot be read now.
#[derive(Debug)]
pub(super) struct Unreadable;

/// Reads the serial consoles of VMs.
#[derive(Clone)]
pub struct Console {
    arm: Arm,
    clock: Arc<dyn Clock>,
    hook: EffectHook,
    workers: Workers,
}

impl Console {
    /// A reader that uses these clients.
    pub fn new(arm: Arm, clock: Arc<dyn Clock>, hook: EffectHook) -> Self {
        Self { arm, clock, hook, workers: Workers::default() }
    }

    /// The threads on which console text is cleaned and judged.
    pub(super) fn workers(&self) -> Workers {
        self.workers.clone()
    }

    /// Reads the VM and its console, and no other source.
    pub async fn look(&self, id: &InstanceId, profile: &Profile) -> Observation {
        let (turn, now) = (Priority::Event.since(self.clock.now()), self.clock.now());
        let seen = Observation { script: profile.script, ..Observation::default() };
        match self.asked(self.arm.instance(id, turn).await).await {
            Ok(vm) => {
                let seen = seen.with_vm(&vm, now).with_diagnostics(&vm);
                self.read(id, profile, seen, turn).await.0
            }
            Err(error) if error.is_not_found() => seen.without_vm(&error, now),
            // An identity that may not read the VM may still be allowed to read its console.
            Err(error) => self.read(id, profile, seen.without_vm(&error, now), turn).await.0,
        }
    }

    /// Adds the text of the console, or the reason why it could not be read. The returned room in memory is
    /// held until the text is cut to an excerpt.
    pub(super) async fn read(
        &self,
        id: &InstanceId,
        profile: &Profile,
        mut seen: Observation,
        turn: Turn,
    ) -> (Observation, Option<Room>) {
        if seen.is_console_off() {
            let remedy = profile.boot_diagnostics_remedy;
            let detail = format!("boot diagnostics are off for this VM{remedy}");
            seen.collected(collected(collector::SERIAL_LOG, CollectorState::Disabled, &detail));
            return (seen, None);
        }
        let (read, room) = match self.serial_log(id, turn).await {
            Ok((log, room)) => (Ok(log), room),
            Err(error) => (Err(error), None),
        };
        let seen = match read {
            Ok(SerialLog::Tail { bytes, cut }) => {
                let size = bytes.len();
                let read = move || seen.with_console(&String::from_utf8_lossy(&bytes), cut);
                self.workers.run(size, read).await
            }
            Ok(SerialLog::Absent) => {
                let detail = "the serial log does not exist yet, or not any more";
                seen.collected(collected(collector::SERIAL_LOG, CollectorState::Late, detail));
                seen
            }
            Ok(SerialLog::Refused { code }) => {
                let code = code.unwrap_or_default();
                let why = match code.as_str() {
                    "AuthenticationFailed" => ", as it does when the address has expired",
                    "AuthorizationFailure" => ", as the firewall of an account of your own does",
                    _ => "",
                };
                let detail = format!("the storage account refuses: {code}{why}");
                seen.collected(collected(collector::SERIAL_LOG, CollectorState::Denied, &detail));
                seen
            }
            Err(error) => {
                let (state, detail) = refusal(&error);
                seen.collected(collected(collector::SERIAL_LOG, state, &detail));
                seen
            }
        };
        (seen, room)
    }

    /// The text of the console, if it has changed since the last read.
    pub(super) async fn read_if_changed(
        &self,
        id: &InstanceId,
        console: &mut WatchedConsole,
        turn: Turn,
    ) -> Result<Option<(String, Option<Room>)>, Unreadable> {
        let now = self.clock.now();
        let address = match console.address.take() {
            Some((address, until)) if now < until => (address, until),
            _ => {
                let asked = self.arm.boot_diagnostics(id, ADDRESS_MINUTES, turn).await;
                let addresses = self.asked(asked).await.map_err(|_| Unreadable)?;
                (addresses.serial_log.ok_or(Unreadable)?, self.clock.now().plus(ADDRESS_USED))
            }
        };
        let version = console.version.as_deref();
        let room = self.workers.room_for_watching().await;
        let read = self.arm.serial_log_unless(&address.0, WATCHED_BYTES, version).await;
        let read = self.asked(read).await.map_err(|_| Unreadable)?;
        let text = match read {
            None | Some((SerialLog::Absent, _)) => None,
            // Without a version, each read would return the whole text again.
            Some((SerialLog::Refused { .. }, _) | (SerialLog::Tail { .. }, None)) => {
                return Err(Unreadable);
            }
            Some((SerialLog::Tail { bytes, .. }, version)) => {
                console.version = version;
                Some((String::from_utf8_lossy(&bytes).into_owned(), room))
            }
        };
        console.address = Some(address);
        Ok(text)
    }

    async fn serial_log(
        &self,
        id: &InstanceId,
        turn: Turn,
    ) -> Result<(SerialLog, Option<Room>), ArmError> {
        let asked = self.arm.boot_diagnostics(id, ADDRESS_MINUTES, turn).await;
        let addresses = self.asked(asked).await?;
        let Some(address) = addresses.serial_log else { return Ok((SerialLog::Absent, None)) };
        // Acquired late: waiting for a turn to request the address needs no room.
        let room = self.workers.room_for_console().await;
        let log = self.asked(self.arm.serial_log(&address, CONSOLE_BYTES).await).await?;
        Ok((log, room))
    }

    async fn asked<T>(&self, answer: Result<T, ArmError>) -> Result<T, ArmError> {
        self.hook.done("ARM read").await;
        answer
    }
}

impl Observation {
    /// Records whether the VM has a console to read.
    pub(super) fn with_diagnostics(mut self, vm: &VirtualMachine) -> Self {
        self.console = Some(vm.boot_diagnostics != BootDiagnostics::Disabled);
        self
    }

    /// Whether boot diagnostics are disabled on the VM.
    fn is_console_off(&self) -> bool {
        self.console == Some(false)
    }
}
