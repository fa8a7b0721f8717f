//! The handle that doors and tests share: the state machine behind a lock, and its clock.

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
    steps: Arc<watch::Sender<u64>>,
}

impl Simulator {
    /// A new, empty Azure that follows `scenario`.
    ///
    /// A manual or accelerated clock starts at the scenario's start; a real one at `wall`,
    /// because it has to agree with everybody else's clock.
    pub fn new(scenario: Scenario, pace: Pace, wall: Timestamp) -> Self {
        let start = match pace {
            Pace::Real => wall,
            Pace::Manual | Pace::Times(_) => scenario.start,
        };
        Self {
            azure: Arc::new(Mutex::new(Azure::new(scenario, start))),
            clock: Arc::new(Clock::new(pace, start)),
            steps: Arc::new(watch::Sender::new(0)),
        }
    }

    /// An Azure on a manual clock, for tests.
    pub fn manual(scenario: Scenario) -> Self {
        let start = scenario.start;
        Self::new(scenario, Pace::Manual, start)
    }

    /// The clock everything here goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Lets the state machine answer one request at the present moment.
    pub fn answer(&self, request: &http::Request<Bytes>) -> Answer {
        let answer = self.with(|azure| azure.handle(request));
        self.step();
        answer
    }

    /// Jumps forward; everything that was due until then has happened on return.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let now = self.clock.advance(by);
        self.with(|_| ());
        self.step();
        now
    }

    /// Counts what may matter to somebody who waits: for [`Simulator::stirred`].
    pub fn steps(&self) -> watch::Receiver<u64> {
        self.steps.subscribe()
    }

    /// Waits until something can have come about: since `steps` was last waited for, a request
    /// was answered, the clock jumped, or something happened or was scheduled; or the moment has
    /// come for which something was due. So a VM that joins or a program to start is noticed
    /// without asking again and again.
    pub async fn stirred(&self, steps: &mut watch::Receiver<u64>) {
        // Azure's clock may be ahead of ours; what is due there is due here that much earlier.
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
            _ = steps.changed() => {}
            () = due => {}
        }
    }

    /// Runs `work` on the state machine, brought up to the present moment.
    pub fn with<T>(&self, work: impl FnOnce(&mut Azure) -> T) -> T {
        let mut azure = self.azure.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever happens leaves the queue, whatever will happen enters it: either is a step.
        let agenda = |azure: &Azure| (azure.scheduled, azure.queue.len());
        let before = agenda(&azure);
        azure.advance_to(self.clock.now());
        let done = work(&mut azure);
        if agenda(&azure) != before {
            self.step();
        }
        done
    }

    /// Something came about that nothing was scheduled for.
    pub(crate) fn step(&self) {
        self.steps.send_modify(|steps| *steps += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::route::Key;

    fn something() -> Event {
        Event::NicGone(Key("nobody".to_owned()))
    }

    #[tokio::test]
    async fn somebody_who_waits_is_told_of_what_is_scheduled_and_of_what_happened_meanwhile() {
        let simulator = Simulator::manual(Scenario::default());
        let mut steps = simulator.steps();
        simulator.with(|azure| azure.after(Duration::from_secs(10), something()));
        simulator.stirred(&mut steps).await;

        // Nobody says that this clock jumped; the event is due when it is next looked at.
        simulator.clock().advance(Duration::from_secs(20));
        simulator.stirred(&mut steps).await;
    }

    #[tokio::test]
    async fn somebody_who_waits_is_told_when_the_moment_has_come() {
        let wall = Timestamp::now();
        let simulator = Simulator::new(Scenario::default(), Pace::Times(1000.0), wall);
        simulator.with(|azure| azure.after(Duration::from_secs(5), something()));
        let mut steps = simulator.steps();
        simulator.stirred(&mut steps).await;
        assert!(simulator.with(|azure| azure.queue.is_empty()));
    }
}
