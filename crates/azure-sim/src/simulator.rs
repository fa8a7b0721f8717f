//! The simulator that endpoints and tests share: the state machine behind a lock, and its clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::azure::{Answer, Azure};
use crate::clock::{Clock, Pace};
use crate::scenario::Scenario;

/// One simulated Azure, cheap to clone.
#[derive(Debug, Clone)]
pub struct Simulator {
    azure: Arc<Mutex<Azure>>,
    clock: Arc<Clock>,
    changes: Arc<watch::Sender<u64>>,
}

impl Simulator {
    /// A new, empty Azure that follows `scenario`.
    ///
    /// A manual or accelerated clock starts at the scenario's start. A real clock starts at `wall`, because
    /// it must agree with the clocks of other programs.
    pub fn new(scenario: Scenario, pace: Pace, wall: Timestamp) -> Self {
        let start = match pace {
            Pace::Real => wall,
            Pace::Manual | Pace::Times(_) => scenario.start,
        };
        Self {
            azure: Arc::new(Mutex::new(Azure::new(scenario, start))),
            clock: Arc::new(Clock::new(pace, start)),
            changes: Arc::new(watch::Sender::new(0)),
        }
    }

    /// An Azure on a manual clock, for tests.
    pub fn manual(scenario: Scenario) -> Self {
        let start = scenario.start;
        Self::new(scenario, Pace::Manual, start)
    }

    /// The clock of this Azure.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Answers one request at the current moment.
    pub fn answer(&self, request: &http::Request<Bytes>) -> Answer {
        let answer = self.with(|azure| azure.handle(request));
        self.step();
        answer
    }

    /// Advances the clock. Every event due until then has been handled on return.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let now = self.clock.advance(by);
        self.with(|_| ());
        self.step();
        now
    }

    /// A counter of changes, for [`Simulator::changed`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until the state can have changed: since `changes` was last awaited, a request was
    /// answered, the clock jumped, or an event was handled or scheduled; or the next event is due.
    /// Callers notice a VM that joins or a program to start without polling.
    pub async fn changed(&self, changes: &mut watch::Receiver<u64>) {
        // Azure's clock may be ahead of ours, so its events are due earlier by our clock.
        let due = self.with(|azure| {
            let ahead = SignedDuration::try_from(azure.ahead).unwrap_or(SignedDuration::MAX);
            let ((at, _), _) = azure.queue.first_key_value()?;
            Some(at.saturating_sub(ahead).unwrap_or(Timestamp::MIN))
        });
        let due = async {
            match due {
                Some(at) => self.clock.reach(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = changes.changed() => {}
            () = due => {}
        }
    }

    /// Runs `work` on the state machine after handling all events that are due.
    pub fn with<T>(&self, work: impl FnOnce(&mut Azure) -> T) -> T {
        let mut azure = self.azure.lock().unwrap_or_else(PoisonError::into_inner);
        // Every handled event leaves the queue and every new event enters it: both are changes.
        let agenda = |azure: &Azure| (azure.scheduled, azure.queue.len());
        let before = agenda(&azure);
        azure.advance_to(self.clock.now());
        let done = work(&mut azure);
        if agenda(&azure) != before {
            self.step();
        }
        done
    }

    /// Notifies waiters of a change that no event caused.
    pub(crate) fn step(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::route::Key;

    fn something() -> Event {
        Event::NicGone(Key("unknown".to_owned()))
    }

    #[tokio::test]
    async fn a_waiter_is_woken_by_scheduled_and_by_past_events() {
        let simulator = Simulator::manual(Scenario::default());
        let mut changes = simulator.changes();
        simulator.with(|azure| azure.after(Duration::from_secs(10), something()));
        simulator.changed(&mut changes).await;

        // The clock jumps without a notification; the event is due when the clock is next read.
        simulator.clock().advance(Duration::from_secs(20));
        simulator.changed(&mut changes).await;
    }

    #[tokio::test]
    async fn a_waiter_is_woken_when_an_event_is_due() {
        let wall = Timestamp::now();
        let simulator = Simulator::new(Scenario::default(), Pace::Times(1000.0), wall);
        simulator.with(|azure| azure.after(Duration::from_secs(5), something()));
        let mut changes = simulator.changes();
        simulator.changed(&mut changes).await;
        assert!(simulator.with(|azure| azure.queue.is_empty()));
    }
}
